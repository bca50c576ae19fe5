/** `certify sim`: the simulator's command line. A single seed ends in a ledger and the normal report. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Argv } from 'yargs';
import { runReplayCommand, runShrinkCommand, runSweepCommand } from '../../sim/command.ts';
import { CounterexampleError, regressionsFolder } from '../../sim/counterexample.ts';
import { drawOptions, type Pins, SimOptionError } from '../../sim/options.ts';
import { UsageError } from '../errors.ts';
import { parseOwn, word } from '../own-parser.ts';
import { parseDuration, parseInteger, parseSeed } from '../parse.ts';
import { createHiddenFolder } from '../results.ts';
import type { Interruption } from '../run/interruption.ts';
import { randomSeed } from '../seed.ts';
import { defaults } from '../settings.ts';
import { exitCodeOf } from '../verdict.ts';
import type { SimRunReply, SimRunTask } from './sim-run-thread.ts';

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const simOptions = (parser: Argv) =>
  parser
    .usage(
      'Certifies Zaris on virtual time: the same node, client, workloads, faults and verifier, hours in seconds.\n\nUsage: $0 --seed N [options]   one run with the normal report\n       $0 --seeds COUNT [options]  a sweep',
    )
    .options({
      seed: { ...word, describe: 'Seed of the run, or the first of a sweep (else they follow from the commit)' },
      seeds: { ...word, describe: 'Play so many seeds' },
      duration: { ...word, default: '10m', describe: 'Virtual time of load and faults' },
      rf: { ...word, describe: 'Replication factor (else drawn)' },
      nodes: { ...word, describe: 'Nodes (else drawn)' },
      pin: {
        string: true,
        requiresArg: true,
        array: true,
        default: [] as string[],
        describe: 'Pin an option, as in --pin sessions=16; may stand more than once',
      },
      jobs: { ...word, default: '2', describe: 'Threads of a sweep' },
      shrink: { ...word, describe: 'Reduce a seed that fails, keep it as regressions/NAME.json, and trace it' },
      note: { ...word, describe: 'What went wrong, for --shrink' },
      store: { ...word, describe: 'With --shrink: a broken store by name (see selftest)' },
      replay: { ...word, describe: 'Play a kept counterexample, and write its trace as text and as a diagram' },
      'stop-at-first': { boolean: true, default: false, describe: 'End a sweep at its first failure' },
      results: { ...word, default: defaults.results, describe: 'Folder of the results' },
    });

/** Plays what the words say. The first signal ends it: a run leaves nothing, a sweep says what it has come to. */
export async function simCommand(argv: readonly string[], interruption: Interruption): Promise<number> {
  const parsed = await parseOwn(argv, simOptions, 'sim');
  if (parsed.kind === 'text') {
    print(parsed.text);
    return 0;
  }
  const { options } = parsed;
  const pins = pinsOf(options);
  const seed = options.seed === undefined ? null : parseSeed(options.seed);
  return asUsage(async () => {
    const traceFolder = join(options.results, 'traces');
    if (options.replay !== undefined || options.shrink !== undefined)
      interruption.early.addEventListener('abort', () => process.exit(exitCodeOf('interrupted')), { once: true });
    if (options.replay !== undefined) return runReplayCommand(options.replay, traceFolder, print);
    if (options.shrink !== undefined) {
      if (!/^[a-z0-9-]+$/.test(options.shrink))
        throw new UsageError(`--shrink must be a name of small letters, digits and hyphens, not "${options.shrink}".`);
      if (seed === null) throw new UsageError('--shrink reduces one seed; name it with --seed.');
      // A broken store brings options of its own; only what was typed goes above them.
      const typed = options.store === undefined || argv.includes('--duration') ? pins : withoutDuration(pins);
      return runShrinkCommand({
        name: options.shrink,
        note: options.note ?? null,
        seed,
        pins: typed,
        store: options.store ?? null,
        folder: regressionsFolder,
        traceFolder,
        print,
      });
    }
    if (options.seeds === undefined) {
      const chosen = seed ?? randomSeed();
      // What makes no sense is said here, before a thread starts.
      drawOptions(chosen, pins);
      return oneSeed(chosen, pins, options.results, interruption.early);
    }
    const seeds = parseInteger(options.seeds, '--seeds', 1, 10_000_000);
    return runSweepCommand({
      seeds,
      firstSeed: seed,
      pins,
      jobs: parseInteger(options.jobs, '--jobs', 1, 64),
      stopAtFirst: options['stop-at-first'],
      print,
      interrupted: interruption.early,
      interruptedExitCode: exitCodeOf('interrupted'),
    });
  });
}

function pinsOf(options: {
  readonly pin: readonly string[];
  readonly duration: string;
  readonly rf?: string | undefined;
  readonly nodes?: string | undefined;
}): Pins {
  const pins: Record<string, string> = { durationMs: String(parseDuration(options.duration, '--duration')) };
  if (options.rf !== undefined) pins['rf'] = options.rf;
  if (options.nodes !== undefined) pins['nodes'] = options.nodes;
  for (const pair of options.pin) {
    const at = pair.indexOf('=');
    if (at <= 0) throw new UsageError(`--pin must look like sessions=16, not "${pair}".`);
    pins[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return pins;
}

function withoutDuration({ durationMs: _durationMs, ...rest }: Pins): Pins {
  return rest;
}

async function asUsage<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SimOptionError || error instanceof CounterexampleError) throw new UsageError(error.message);
    throw error;
  }
}

/** Young objects of a run of hours are many: a larger nursery spares a fifth of the time. */
const nurseryMb = 192;
/** From 2 GiB on the engine lets garbage grow to three times of what lives, and a day of simulation with it; below, to as much again. */
const heapMb = 2_000;

/** Plays one seed in a thread of its own, with room for the objects of hours. Resolves with the exit code. */
async function oneSeed(seed: number, pins: Pins, resultsDir: string, interrupted: AbortSignal): Promise<number> {
  // The run gets its folder once it is told in full; one that is broken off leaves nothing.
  const unfinished = createHiddenFolder(resultsDir);
  const worker = new Worker(new URL('./sim-run-thread.ts', import.meta.url), {
    workerData: { seed, pins, resultsDir, unfinished, colour: process.stdout.isTTY === true } satisfies SimRunTask,
    resourceLimits: { maxYoungGenerationSizeMb: nurseryMb, maxOldGenerationSizeMb: heapMb },
  });
  try {
    return await new Promise<number>((resolve, reject) => {
      worker.on('message', (message: SimRunReply) => {
        if (message.kind === 'line') print(message.line);
        else resolve(message.exitCode);
      });
      worker.once('error', reject);
      worker.once('exit', (code) => reject(new Error(`the simulator's thread ended with code ${code} and no verdict`)));
      const stop = (): void => {
        print('Interrupted: the run is broken off, and leaves nothing.');
        resolve(exitCodeOf('interrupted'));
      };
      interrupted.addEventListener('abort', stop, { once: true });
      if (interrupted.aborted) stop();
    });
  } finally {
    await worker.terminate();
    rmSync(unfinished, { recursive: true, force: true });
  }
}
