/**
 * `certify reproduce`: plays a run again several times, and says how often what it found came again.
 *
 * Container runs are seeded, not deterministic: one run that finds nothing proves little, so the rate stands with its interval.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openLedgerReader } from '../../ledger/reader.ts';
import { UsageError } from '../errors.ts';
import { plainTable } from '../report/list-runs.ts';
import { formatShare } from '../report/text.ts';
import { readReport } from '../report/write-report.ts';
import { openRunFolder, type RunFolder } from '../results.ts';
import type { Interruption } from '../run/interruption.ts';
import { certify } from '../run/run.ts';
import type { RunSettings } from '../settings.ts';
import { settingsFrom } from '../stored-settings.ts';
import { decideVerdict, exitCodeOf, type Verdict } from '../verdict.ts';
import { wilsonInterval } from '../wilson.ts';
import { realWorld } from './real-world.ts';

/** One run again. */
export interface Replay {
  readonly runId: string;
  readonly verdict: Verdict;
  /** Kinds of findings. */
  readonly found: readonly string[];
}

/** Plays the run `times` times, stopping at a signal. Returns the exit code of the worst verdict among them. */
export async function reproduceCommand(
  resultsDir: string,
  run: string,
  times: number,
  interruption: Interruption,
): Promise<number> {
  const folder = openRunFolder(resultsDir, run);
  const settings = replaySettings(folder);
  const wanted = findingsOf(folder);
  process.stdout.write(
    `Playing ${folder.runId} again, ${times} times; it found ${wanted.length === 0 ? 'nothing' : wanted.join(', ')}.\n`,
  );
  const replays: Replay[] = [];
  for (let count = 0; count < times && !interruption.early.aborted; count++) {
    const { folder: own, judged } = await certify(settings, await realWorld(settings, interruption));
    replays.push({ runId: own.runId, verdict: judged.verdict, found: findingsOf(own) });
    process.stdout.write(`${count + 1} of ${times}: ${judged.verdict} (${judged.headline})\n`);
  }
  for (const line of summaryOf(replays, wanted)) process.stdout.write(`${line}\n`);
  if (replays.length === 0) return exitCodeOf('interrupted');
  const reasons = replays.flatMap(({ verdict }) => (verdict === 'certified' ? [] : [{ verdict, reason: '' }]));
  return exitCodeOf(decideVerdict(reasons));
}

/** Did it find what was wanted (any violation, where nothing in particular was)? */
export const isHit = ({ verdict, found }: Replay, wanted: readonly string[]): boolean =>
  wanted.length === 0 ? verdict === 'violated' : found.some((kind) => wanted.includes(kind));

/** The table and the rate. */
export function summaryOf(replays: readonly Replay[], wanted: readonly string[]): string[] {
  const table = plainTable(
    ['run', 'verdict', 'found'],
    replays.map(({ runId, verdict, found }) => [runId, verdict, found.join(', ')]),
  );
  const hit = (replay: Replay): boolean => isHit(replay, wanted);
  // A run that told nothing is no try: it could have found it or not.
  const tries = replays.filter(
    (replay) => hit(replay) || replay.verdict === 'certified' || replay.verdict === 'violated',
  );
  const hits = replays.filter(hit).length;
  const [low, high] = wilsonInterval(hits, tries.length);
  const what = wanted.length === 0 ? 'A violation' : 'What it found';
  const left = replays.length - tries.length;
  const rate = `${what} came in ${hits} of ${tries.length} runs (95 % interval ${formatShare(low)} to ${formatShare(high)})`;
  return [table, `${rate}${left === 0 ? '' : `; ${left} runs told nothing and do not count`}.`];
}

/** The settings of a run, with its own schedule as the file to play. Throws UsageError where there is none. */
export function replaySettings(folder: RunFolder): RunSettings {
  using reader = openLedgerReader(folder.path);
  const settings = settingsFrom(reader.meta('settings'), dirname(folder.path));
  if (!existsSync(folder.schedule))
    throw new UsageError(`There is no schedule.json in ${folder.path}: that run ended before its faults were drawn.`);
  return { ...settings, scheduleFile: join(folder.path, 'schedule.json') };
}

/** Kinds of findings in the run's report; none where there is no report. */
export function findingsOf(folder: RunFolder): string[] {
  try {
    return readReport(folder.path).findings.totals.map((each) => each.kind);
  } catch {
    return [];
  }
}
