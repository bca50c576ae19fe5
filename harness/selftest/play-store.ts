/**
 * Plays one broken store on real nodes: run after run, each with a seed of its own, until one has caught it or its time is over.
 *
 * Invariant: every run is an ordinary one, judged from its own ledger; what it came to is read from there and from its report.
 */
import { openLedgerReader } from '../../ledger/reader.ts';
import type { BrokenStore } from '../../sim/broken/store.ts';
import { parseCommandLine } from '../cli.ts';
import { UsageError } from '../errors.ts';
import type { RunReport } from '../report/model.ts';
import { readReport } from '../report/write-report.ts';
import type { RunFolder } from '../results.ts';
import type { Judged } from '../run/world.ts';
import type { RunSettings } from '../settings.ts';
import type { Verdict } from '../verdict.ts';
import { type RealCluster, runLengths, runWords } from './broken-runs.ts';
import { type Catch, judgeCatch, type RunFacts } from './judge-catch.ts';

export interface PlayOptions {
  readonly store: BrokenStore;
  readonly cluster: RealCluster;
  /** Load and faults of all its runs together, ms. */
  readonly totalMs: number;
  readonly firstSeed: number;
  readonly resultsDir: string;
  /** False: the shipped store in its place; it must not be caught. */
  readonly isBroken: boolean;
  /** Plays one run to its verdict. */
  readonly certify: (settings: RunSettings) => Promise<{ readonly folder: RunFolder; readonly judged: Judged }>;
  /** True: no further run is started. */
  readonly isOver: () => boolean;
  readonly nowMs: () => number;
}

/** What the runs of one store came to. */
export interface PlayedStore {
  readonly name: string;
  /** Of the run that caught it, else of the last one. */
  readonly outcome: Catch;
  readonly lastVerdict: Verdict | null;
  readonly runs: number;
  /** Of the last run; null when none was played. */
  readonly runId: string | null;
  readonly acknowledged: number;
  readonly operations: number;
  readonly confirmedFaults: number;
  readonly failovers: number;
  readonly wallMs: number;
}

/** Verdicts after which another run would end alike, and not for the store's sake. */
const hopeless: ReadonlySet<Verdict> = new Set(['environment', 'harness-fault', 'interrupted']);

/** Plays until it is caught. Rejects only where a run itself does. */
export async function playStore(options: PlayOptions): Promise<PlayedStore> {
  const { store, totalMs, firstSeed, certify, isOver, nowMs } = options;
  const startedMs = nowMs();
  let played: PlayedStore = nothing(store.name);
  for (const [index, durationMs] of runLengths(totalMs).entries()) {
    if (isOver()) break;
    const { folder, judged } = await certify(await settingsOf({ ...options, durationMs, seed: firstSeed + index }));
    const report = reportIn(folder);
    const outcome = judgeCatch(store.expects, factsOf(folder, judged, report));
    played = { ...added(played, report), outcome, lastVerdict: judged.verdict, runId: folder.runId };
    if (outcome.kind === 'caught' || hopeless.has(judged.verdict)) break;
  }
  return { ...played, wallMs: nowMs() - startedMs };
}

/** Settings of one run, resolved and checked like those that are typed. */
export async function settingsOf(run: Parameters<typeof runWords>[0]): Promise<RunSettings> {
  const command = await parseCommandLine(runWords(run), '');
  if (command.kind !== 'run') throw new UsageError(`The words for ${run.store.name} make no run.`);
  return command.settings;
}

/** The facts of a finished run. */
export function factsOf(folder: RunFolder, judged: Judged, report: RunReport | null): RunFacts {
  return {
    verdict: judged.verdict,
    headline: judged.headline,
    found: judged.found ?? [],
    overshoots: (report?.faults ?? []).filter((fault) => fault.overshoot).map((fault) => fault.id),
    crashed: crashedIn(folder),
  };
}

function crashedIn(folder: RunFolder): readonly string[] {
  using reader = openLedgerReader(folder.path);
  return (reader.meta('crashed') ?? []) as readonly string[];
}

/** Null where the run ended without a report. */
function reportIn(folder: RunFolder): RunReport | null {
  try {
    return readReport(folder.path);
  } catch {
    return null;
  }
}

const nothing = (name: string): PlayedStore => ({
  name,
  outcome: { kind: 'missed', why: 'it was not played' },
  lastVerdict: null,
  runs: 0,
  runId: null,
  acknowledged: 0,
  operations: 0,
  confirmedFaults: 0,
  failovers: 0,
  wallMs: 0,
});

function added(before: PlayedStore, report: RunReport | null): PlayedStore {
  const runs = before.runs + 1;
  if (report === null) return { ...before, runs };
  const operations = report.counts.operations.reduce((sum, { ok, fail, info }) => sum + ok + fail + info, 0);
  return {
    ...before,
    runs,
    acknowledged: before.acknowledged + report.counts.acknowledgedWrites,
    operations: before.operations + operations,
    confirmedFaults: before.confirmedFaults + report.faults.filter((fault) => fault.outcome === 'confirmed').length,
    failovers: before.failovers + report.strength.failovers,
  };
}
