/**
 * What `certify sim` and `certify selftest --cluster sim` do, without a command line: options in, lines and an exit code out.
 * The harness wires the words to it and turns a single run into a ledger and a report.
 */
import { brokenStores } from './broken/catalogue.ts';
import { drawOptions, type Pins, SimOptionError } from './options.ts';
import { currentCommit, seedOfCommit, seedsFrom } from './seeds.ts';
import { type SelfTestRow, selfTest } from './selftest.ts';
import { sweep, type SweepTotals } from './sweep.ts';

export interface SweepCommand {
  /** How many seeds. */
  readonly seeds: number;
  /** First seed; null: follows from the commit. */
  readonly firstSeed: number | null;
  readonly pins: Pins;
  readonly jobs: number;
  readonly stopAtFirst: boolean;
  readonly print: (line: string) => void;
}

/** A progress line at most this often, ms. */
const progressEveryMs = 5_000;
const secondsOf = (ms: number): string => (ms / 1_000).toFixed(1);

/** Plays a sweep and prints what it came to; the exit code is 0 only when every seed passed. */
export async function runSweepCommand(command: SweepCommand): Promise<number> {
  const { print, pins } = command;
  const firstSeed = command.firstSeed ?? commitSeed(print);
  // Wrong pins are the user's error, said before anything starts.
  drawOptions(firstSeed, pins);
  const startedMs = performance.now();
  let saidMs = startedMs;
  const totals = await sweep({
    seeds: seedsFrom(firstSeed, command.seeds),
    pins,
    jobs: command.jobs,
    stopAtFirst: command.stopAtFirst,
    onPlayed: (now) => {
      if (performance.now() - saidMs < progressEveryMs) return;
      saidMs = performance.now();
      print(
        `${now.seeds} of ${command.seeds} seeds, ${now.failures.length} failures, ${(now.virtualMs / 3_600_000).toFixed(2)} h simulated in ${secondsOf(saidMs - startedMs)} s`,
      );
    },
  });
  sayTotals(totals, command.seeds, performance.now() - startedMs, print);
  return totals.failures.length === 0
    ? 0
    : totals.failures.some(({ kind }) => kind === 'violated' || kind === 'invariant')
      ? 1
      : 3;
}

function commitSeed(print: (line: string) => void): number {
  const commit = currentCommit();
  if (commit === null)
    throw new SimOptionError('There is no commit to draw the seeds from; name the first one with --seed.');
  const seed = seedOfCommit(commit);
  print(`Seeds from commit ${commit}: ${seed} and following`);
  return seed;
}

function sayTotals(totals: SweepTotals, planned: number, wallMs: number, print: (line: string) => void): void {
  for (const failure of totals.failures) {
    print(`seed ${failure.seed}: ${failure.kind}: ${failure.reasons[0] ?? ''}`);
    for (const reason of failure.reasons.slice(1)) print(`    ${reason}`);
    print(`    again: ${failure.replay}`);
  }
  print(
    `${totals.passed} of ${totals.seeds} seeds passed (${planned} planned), ${totals.playedTwice} played twice: ${totals.operations} operations, ${totals.acknowledgedWrites} acknowledged writes, ` +
      `${totals.confirmedFaults} faults, ${totals.failovers} failovers, ${totals.handoffs} handoffs`,
  );
  print(`${(totals.virtualMs / 3_600_000).toFixed(2)} h simulated in ${secondsOf(wallMs)} s (${totals.events} events)`);
  const missing = totals.coverage.missing();
  print(missing.length === 0 ? 'Everything on the coverage list was reached' : `Never reached: ${missing.join(', ')}`);
}

export interface SelfTestCommand {
  readonly only: string | null;
  readonly firstSeed: number | null;
  readonly boundMs: number;
  readonly print: (line: string) => void;
  readonly onRow?: (row: SelfTestRow) => void;
}

/** Plays every broken store (or one) until it is caught; rows in the order of the catalogue. Throws {@link SimOptionError} for an unknown name. */
export async function runSelfTestCommand(command: SelfTestCommand): Promise<SelfTestRow[]> {
  const chosen = brokenStores.filter((store) => command.only === null || store.name === command.only);
  if (chosen.length === 0)
    throw new SimOptionError(
      `There is no broken store "${command.only}"; there are ${brokenStores.map((store) => store.name).join(', ')}.`,
    );
  const rows: SelfTestRow[] = [];
  for (const store of chosen) {
    const row = await selfTest(store, command.firstSeed ?? 1, command.boundMs);
    rows.push(row);
    command.onRow?.(row);
    command.print(
      `${row.isCaught ? 'caught' : 'MISSED'}  ${row.name}: ${row.finding ?? 'nothing of what it must show was reported'} (${row.seeds} seeds, ${row.operations} operations, ${row.faults} faults, ${secondsOf(row.wallMs)} s)`,
    );
  }
  return rows;
}
