/**
 * What `certify sim` and `certify selftest --cluster sim` do, without a command line: options in, lines and an exit code out.
 * The harness wires the words to it and turns a single run into a ledger and a report.
 */
import { mkdirSync } from 'node:fs';
import { relative } from 'node:path';
import { brokenStoreOf, brokenStores } from './broken/catalogue.ts';
import type { BrokenStore } from './broken/store.ts';
import { listCounterexamples, playCounterexample, readCounterexample, writeCounterexample } from './counterexample.ts';
import { shrinkFailure, traceCounterexample } from './investigate.ts';
import { drawOptions, type Pins, SimOptionError } from './options.ts';
import { drawSchedule } from './schedule.ts';
import { currentCommit, seedOfCommit, seedsFrom } from './seeds.ts';
import { type SelfTestRow, selfTest } from './selftest.ts';
import { sweep, type SweepFailure, type SweepTotals } from './sweep.ts';

export interface SweepCommand {
  /** How many seeds. */
  readonly seeds: number;
  /** First seed; null: follows from the commit. */
  readonly firstSeed: number | null;
  readonly pins: Pins;
  readonly jobs: number;
  readonly stopAtFirst: boolean;
  readonly print: (line: string) => void;
  /** Aborted: seeds under way are played to their end, no other is started. */
  readonly interrupted?: AbortSignal;
  /** What such a sweep ends with when no seed failed. */
  readonly interruptedExitCode?: number;
}

/** A progress line at most this often, ms. */
const progressEveryMs = 5_000;
/** How fast a run or a sweep was, all included; `cpuMs` is what its thread had of a processor, which a busy machine does not change. */
export const speedLine = (virtualMs: number, wallMs: number, cpuMs?: number): string =>
  `${(virtualMs / 3_600_000).toFixed(2)} h simulated in ${secondsOf(wallMs)} s${cpuMs === undefined ? '' : ` (${secondsOf(cpuMs)} s of one processor)`}, ` +
  `verification included: ${(virtualMs / 60 / wallMs).toFixed(2)} simulated hours per minute`;

const secondsOf = (ms: number): string => (ms / 1_000).toFixed(1);

/** Plays a sweep and prints what it came to; the exit code is 0 only when every seed passed. */
export async function runSweepCommand(command: SweepCommand): Promise<number> {
  const { print, pins } = command;
  const firstSeed = command.firstSeed ?? commitSeed(print);
  // Wrong pins are the user's error, said before anything starts.
  drawOptions(firstSeed, pins);
  const broken = await replayAll(print);
  if (broken > 0) return 1;
  const startedMs = performance.now();
  let saidMs = startedMs;
  let said = 0;
  const totals = await sweep({
    seeds: seedsFrom(firstSeed, command.seeds),
    pins,
    jobs: command.jobs,
    stopAtFirst: command.stopAtFirst,
    ...(command.interrupted === undefined ? {} : { interrupted: command.interrupted }),
    onPlayed: (now) => {
      for (; said < now.failures.length; said++) print(failureLine(now.failures[said] as SweepFailure));
      if (performance.now() - saidMs < progressEveryMs) return;
      saidMs = performance.now();
      print(
        `${now.seeds} of ${command.seeds} seeds, ${now.failures.length} failures, ${(now.virtualMs / 3_600_000).toFixed(2)} h simulated in ${secondsOf(saidMs - startedMs)} s`,
      );
    },
  });
  sayTotals(totals, command.seeds, performance.now() - startedMs, print);
  const ending = command.interrupted?.aborted === true ? (command.interruptedExitCode ?? 1) : 0;
  return totals.failures.length === 0
    ? ending
    : totals.failures.some(({ kind }) => kind === 'violated' || kind === 'invariant')
      ? 1
      : 3;
}

/** Plays every kept counterexample; returns how many do not end as they must. */
export async function replayAll(print: (line: string) => void): Promise<number> {
  let wrong = 0;
  for (const path of listCounterexamples()) {
    const example = readCounterexample(path);
    const { why } = await playCounterexample(example);
    if (why === null) continue;
    wrong += 1;
    print(`regression ${example.name}: ${why}`);
    print(`    again: npm run certify -- sim --replay ${relative(process.cwd(), path)}`);
  }
  return wrong;
}

/** Plays one counterexample and writes its trace; the exit code is 0 when it ends as it must. */
export async function runReplayCommand(
  path: string,
  traceFolder: string,
  print: (line: string) => void,
): Promise<number> {
  const example = readCounterexample(path);
  const { result, why } = await playCounterexample(example);
  print(`${example.name}: ${example.note}`);
  print(why === null ? `It ends as it must (trace ${result.traceHash}).` : `It does not end as it must: ${why}`);
  mkdirSync(traceFolder, { recursive: true });
  for (const written of await traceCounterexample(example, storeOf(example.store), traceFolder)) print(written);
  return why === null ? 0 : 1;
}

function storeOf(name: string | null): BrokenStore | undefined {
  if (name === null) return undefined;
  const store = brokenStoreOf(name);
  if (store === undefined)
    throw new SimOptionError(
      `There is no broken store "${name}"; there are ${brokenStores.map((each) => each.name).join(', ')}.`,
    );
  return store;
}

export interface ShrinkCommand {
  readonly name: string;
  readonly note: string | null;
  readonly seed: number;
  readonly pins: Pins;
  /** A broken store by name, or null. */
  readonly store: string | null;
  /** Where the counterexample is kept, and where its trace is written. */
  readonly folder: string;
  readonly traceFolder: string;
  readonly print: (line: string) => void;
}

/** Bounds of one reduction. */
const shrinkRuns = 400;
const shrinkBoundMs = 10 * 60_000;

/** Reduces a failing seed, keeps it and writes its trace. The exit code is 0 when that was done. */
export async function runShrinkCommand(command: ShrinkCommand): Promise<number> {
  const store = storeOf(command.store);
  const options = drawOptions(command.seed, { ...store?.pins, ...command.pins });
  const first = { seed: command.seed, options, schedule: drawSchedule(command.seed, options) };
  const { candidate, runs, failure } = await shrinkFailure({
    first,
    ...(store === undefined ? {} : { store }),
    maxRuns: shrinkRuns,
    boundMs: shrinkBoundMs,
    print: command.print,
  });
  const note =
    command.note ?? (store === undefined ? `${failure}, found by seed ${command.seed}` : `The store that ${store.doc}`);
  const example = { name: command.name, note, store: command.store, ...candidate };
  command.print(
    `${writeCounterexample(command.folder, example)} after ${runs} runs: ${candidate.schedule.events.length} fault events`,
  );
  mkdirSync(command.traceFolder, { recursive: true });
  for (const written of await traceCounterexample(example, store, command.traceFolder)) command.print(written);
  return 0;
}

function commitSeed(print: (line: string) => void): number {
  const commit = currentCommit();
  if (commit === null)
    throw new SimOptionError('There is no commit to draw the seeds from; name the first one with --seed.');
  const seed = seedOfCommit(commit);
  print(`Seeds from commit ${commit}: ${seed} and following`);
  return seed;
}

const failureLine = ({ seed, kind, reasons, replay }: SweepFailure): string =>
  `seed ${seed}: ${kind}: ${reasons[0] ?? ''}\n    again: ${replay}`;

function sayTotals(totals: SweepTotals, planned: number, wallMs: number, print: (line: string) => void): void {
  for (const { seed, reasons } of totals.failures)
    for (const reason of reasons.slice(1)) print(`seed ${seed}, also: ${reason}`);
  print(
    `${totals.passed} of ${totals.seeds} seeds passed (${planned} planned), ${totals.playedTwice} played twice: ${totals.operations} operations, ${totals.acknowledgedWrites} acknowledged writes, ` +
      `${totals.confirmedFaults} faults, ${totals.failovers} failovers, ${totals.handoffs} handoffs`,
  );
  print(`${speedLine(totals.virtualMs, wallMs)} (${totals.events} events)`);
  const missing = totals.coverage.missing();
  print(missing.length === 0 ? 'Everything on the coverage list was reached' : `Never reached: ${missing.join(', ')}`);
}

export interface SelfTestCommand {
  readonly stores: readonly BrokenStore[];
  readonly firstSeed: number | null;
  readonly boundMs: number;
  readonly print: (line: string) => void;
}

/** Plays each broken store until it is caught; rows in the order given. */
export async function runSelfTestCommand(command: SelfTestCommand): Promise<SelfTestRow[]> {
  const rows: SelfTestRow[] = [];
  for (const store of command.stores) {
    const row = await selfTest(store, command.firstSeed ?? 1, command.boundMs);
    rows.push(row);
    command.print(
      `${row.isCaught ? 'caught' : 'MISSED'}  ${row.name}: ${row.finding ?? 'nothing of what it must show was reported'} (${row.seeds} seeds, ${row.operations} operations, ${row.faults} faults, ${secondsOf(row.wallMs)} s)`,
    );
  }
  return rows;
}
