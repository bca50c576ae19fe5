/** `certify selftest`: deliberately broken stores, in the simulator or on real nodes, and the table of how each was caught. */
import { join } from 'node:path';
import Table from 'cli-table3';
import { runSelfTestCommand } from '../../sim/command.ts';
import type { Interruption } from '../run/interruption.ts';
import { certify } from '../run/run.ts';
import { randomSeed } from '../seed.ts';
import { parseSelfTest, type SelfTest } from '../selftest/options.ts';
import { type PlayedStore, playStore } from '../selftest/play-store.ts';
import { exitCodeOf } from '../verdict.ts';
import { realWorld } from './real-world.ts';

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const countOf = (stores: number): string => `${stores} broken store${stores === 1 ? '' : 's'}`;
const secondsOf = (ms: number): string => (ms / 1_000).toFixed(ms < 10_000 ? 1 : 0);

/** Exit code of a self-test in which a store was not caught. */
const missedExitCode = 1;

/** Plays what the words say. The exit code is 0 only when every store was caught. */
export async function selfTestCommand(argv: readonly string[], interruption: Interruption): Promise<number> {
  const wish = await parseSelfTest(argv);
  switch (wish.kind) {
    case 'text':
      print(wish.text);
      return 0;
    case 'sim':
      return simulated(wish);
    case 'real':
      return onRealNodes(wish, interruption);
  }
}

async function simulated(wish: SelfTest & { readonly kind: 'sim' }): Promise<number> {
  const rows = await runSelfTestCommand({
    stores: wish.stores,
    firstSeed: wish.firstSeed,
    boundMs: wish.limitMs,
    print: (line) => process.stderr.write(`${line}\n`),
  });
  const table = tableOf([
    ['broken store', 28],
    ['finding', 60],
    ['seeds', 7],
    ['operations', 12],
    ['faults', 8],
    ['seconds', 9],
  ]);
  for (const { name, finding, seeds, operations, faults, wallMs } of rows)
    table.push([name, finding ?? 'NOT CAUGHT', seeds, operations, faults, (wallMs / 1_000).toFixed(1)]);
  print(table.toString());
  return sum(
    rows.length,
    rows.filter((row) => !row.isCaught).map((row) => row.name),
  );
}

/** Runs tell of themselves on standard error; on standard output stands one line per store, then the table. */
async function onRealNodes(wish: SelfTest & { readonly kind: 'real' }, interruption: Interruption): Promise<number> {
  const { stores, cluster, totalMs } = wish;
  // Without an engine every store would end alike: said once, before anything starts.
  if (cluster === 'docker') await (await import('../../docker/engine.ts')).ensureEngine({ say: toError });
  const resultsDir = join(wish.resultsDir, 'selftest');
  const firstSeed = wish.firstSeed ?? randomSeed();
  print(
    `${countOf(stores.length)} on ${cluster}, at most ${secondsOf(totalMs)} s of load each, seeds from 0x${firstSeed.toString(16)}; their runs are in ${resultsDir}`,
  );
  const played: PlayedStore[] = [];
  for (const [index, store] of stores.entries()) {
    if (interruption.early.aborted) break;
    const row = await playStore({
      store,
      cluster,
      totalMs,
      firstSeed,
      resultsDir,
      isBroken: true,
      certify: async (settings) =>
        certify(settings, { ...(await realWorld(settings, interruption)), out: process.stderr }),
      isOver: () => interruption.early.aborted,
      nowMs: () => performance.now(),
    });
    // Nothing ever ran here: it is the machine, and the others would end alike.
    if (played.length === 0 && row.lastVerdict === 'environment' && row.operations === 0) {
      if (row.outcome.kind === 'missed') print(row.outcome.why);
      return exitCodeOf('environment');
    }
    played.push(row);
    print(`${index + 1}/${stores.length} ${lineOf(row)}`);
  }
  print(realTable(played));
  if (interruption.early.aborted) {
    print(`Interrupted after ${played.length} of ${countOf(stores.length)}.`);
    return exitCodeOf('interrupted');
  }
  return sum(
    played.length,
    played.filter(({ outcome }) => outcome.kind === 'missed').map(({ name }) => name),
  );
}

const toError = (line: string): void => void process.stderr.write(`${line}\n`);

const findingOf = ({ outcome }: PlayedStore): string =>
  outcome.kind === 'missed'
    ? outcome.why
    : `${outcome.finding.kind} (${outcome.finding.rule}): ${outcome.finding.reason}`;

/** "tail-cut-on-promotion: caught after 41 s: lost (interval): …". */
export const lineOf = (row: PlayedStore): string =>
  `${row.name}: ${row.outcome.kind === 'caught' ? 'caught' : 'NOT CAUGHT'} after ${secondsOf(row.wallMs)} s: ${findingOf(row)}`;

/** One row per store. */
export function realTable(rows: readonly PlayedStore[]): string {
  const table = tableOf([
    ['broken store', 27],
    ['caught', 8],
    ['finding', 48],
    ['acked/operations', 18],
    ['faults', 8],
    ['failovers', 11],
    ['seconds', 9],
    ['runs, the last', 34],
  ]);
  for (const row of rows)
    table.push([
      row.name,
      row.outcome.kind === 'caught' ? 'yes' : 'NO',
      findingOf(row),
      `${row.acknowledged}/${row.operations}`,
      row.confirmedFaults,
      row.failovers,
      secondsOf(row.wallMs),
      `${row.runs}: ${row.runId ?? 'none'}`,
    ]);
  return table.toString();
}

const tableOf = (columns: readonly (readonly [head: string, width: number])[]): Table.Table =>
  new Table({
    head: columns.map(([head]) => head),
    style: { head: [], border: [] },
    wordWrap: true,
    colWidths: columns.map(([, width]) => width),
  });

/** Says what it came to; the exit code. */
function sum(count: number, missed: readonly string[]): number {
  print(
    missed.length === 0
      ? `${countOf(count)} played, all caught.`
      : `${countOf(count)} played, ${missed.length} not caught: ${missed.join(', ')}.`,
  );
  return missed.length === 0 ? 0 : missedExitCode;
}
