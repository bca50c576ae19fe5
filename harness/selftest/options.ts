/** The command line of `certify selftest`. Pure: it starts nothing and prints nothing. */
import type { Argv } from 'yargs';
import { brokenStores } from '../../sim/broken/catalogue.ts';
import type { BrokenStore } from '../../sim/broken/store.ts';
import { UsageError } from '../errors.ts';
import { parseOwn, word } from '../own-parser.ts';
import { parseDuration, parseList, parseSeed } from '../parse.ts';
import { defaults } from '../settings.ts';
import { type RealCluster, storesOf, usualNames } from './broken-runs.ts';

export type SelfTest =
  | {
      readonly kind: 'sim';
      readonly stores: readonly BrokenStore[];
      readonly firstSeed: number | null;
      /** Time for each store, ms. */
      readonly limitMs: number;
    }
  | {
      readonly kind: 'real';
      readonly cluster: RealCluster;
      readonly stores: readonly BrokenStore[];
      readonly firstSeed: number | null;
      /** Load and faults for each store at most, ms. */
      readonly totalMs: number;
      readonly resultsDir: string;
    }
  | { readonly kind: 'text'; readonly text: string };

const clusters = ['sim', 'docker', 'process'] as const;
const defaultLimit = '2m';
const defaultDuration = '5m';
/** Shortest time in which a fault, its heal and a failover have room, ms. */
const minTotalMs = 10_000;
const maxTotalMs = 3_600_000;

const options = (parser: Argv) =>
  parser
    .usage(
      'Runs deliberately broken stores; the verifier must catch every one of them, from what clients saw or from the read-back.\n' +
        'A crash, a stall or a run without evidence is no catch.\n\nUsage: $0 [--cluster docker] [--only NAME] [options]',
    )
    .options({
      cluster: {
        ...word,
        default: 'sim' as const,
        choices: clusters,
        describe: 'Where they run: sim (virtual time, all of them), docker (containers), process (local processes)',
      },
      only: {
        string: true,
        requiresArg: true,
        array: true,
        default: [] as string[],
        describe: `Broken stores by name, a list or more than once; all: every one. In containers else ${usualNames.join(', ')}`,
      },
      seed: { ...word, describe: 'First seed (sim: else 1; else fresh, printed)' },
      limit: { ...word, describe: `sim: time for each store (default ${defaultLimit})` },
      duration: {
        ...word,
        describe: `docker, process: load and faults for each store at most, over several runs (default ${defaultDuration})`,
      },
      results: {
        ...word,
        describe: `docker, process: the runs go to selftest/ in there (default ${defaults.results})`,
      },
    })
    .epilogue(
      `The broken stores:\n${brokenStores.map(({ name, doc }) => `  ${name}: ${doc}`).join('\n')}\n\n` +
        'Exit codes: 0 all were caught, 1 some were not, 4 no engine, 64 usage, 130 interrupted.',
    );

/** Reads the words after `selftest`. Throws {@link UsageError}. */
export async function parseSelfTest(argv: readonly string[]): Promise<SelfTest> {
  const parsed = await parseOwn(argv, options, 'selftest');
  if (parsed.kind === 'text') return parsed;
  const { cluster, only, seed, limit, duration, results } = parsed.options;
  const names = only.flatMap((text) => parseList(text, '--only'));
  const firstSeed = seed === undefined ? null : parseSeed(seed);
  const chosen = storesOf(names.length > 0 ? names : cluster === 'sim' ? ['all'] : usualNames);
  if ('unknown' in chosen)
    throw new UsageError(
      `There is no broken store "${chosen.unknown}"; there are ${brokenStores.map(({ name }) => name).join(', ')}.`,
    );
  if (cluster === 'sim') {
    for (const [flag, value] of [
      ['--duration', duration],
      ['--results', results],
    ])
      if (value !== undefined)
        throw new UsageError(
          `${flag} is for real nodes; add --cluster docker, or leave it out. --limit bounds the simulator.`,
        );
    return { kind: 'sim', stores: chosen, firstSeed, limitMs: parseDuration(limit ?? defaultLimit, '--limit') };
  }
  if (limit !== undefined)
    throw new UsageError(`--limit is for the simulator; with --cluster ${cluster} say --duration.`);
  const totalMs = parseDuration(duration ?? defaultDuration, '--duration');
  if (totalMs < minTotalMs || totalMs > maxTotalMs)
    throw new UsageError(`--duration must be from ${minTotalMs / 1_000}s to ${maxTotalMs / 60_000}m for each store.`);
  return { kind: 'real', cluster, stores: chosen, firstSeed, totalMs, resultsDir: results ?? defaults.results };
}
