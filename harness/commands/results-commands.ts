/** `certify list`, `diff`, `trend`, `serve` and `prune`: the runs in the results folder, seen together. */
import { existsSync } from 'node:fs';
import { messageOf, UsageError } from '../errors.ts';
import { diffRuns, diffTable } from '../report/diff-runs.ts';
import { findRun, type ListedRun, listRuns, runsTable } from '../report/list-runs.ts';
import { pruneRuns } from '../report/prune-runs.ts';
import { serveResults } from '../report/serve-results.ts';
import { trendRuns, trendText } from '../report/trend-runs.ts';
import { aborted, type Interruption } from '../run/interruption.ts';

const print = (text: string): void => void process.stdout.write(`${text}\n`);

/** Runs of a folder; none when there is no folder yet. */
function runsIn(resultsDir: string): ListedRun[] {
  return existsSync(resultsDir) ? said(() => listRuns(resultsDir)) : [];
}

/** What the report's code says in one sentence is the user's to read. */
function said<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const sentence = messageOf(error);
    throw new UsageError(
      `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}; "certify list" shows what there is.`,
    );
  }
}

/** Prints a table, newest run first. */
export function listCommand(resultsDir: string): number {
  const runs = runsIn(resultsDir);
  print(runs.length === 0 ? `There are no runs in ${resultsDir}.` : runsTable(runs));
  return 0;
}

/** Prints what changed from one run to the other. */
export function diffCommand(resultsDir: string, before: string, after: string): number {
  const [first, second] = said(() => [findRun(resultsDir, before), findRun(resultsDir, after)] as const);
  print(diffTable(diffRuns(first.report, second.report)));
  return 0;
}

/** Prints the newest run against the band of those before it. */
export function trendCommand(resultsDir: string): number {
  const runs = runsIn(resultsDir);
  const reports = runs.flatMap((run) => (run.kind === 'read' ? [run.report] : []));
  print(trendText(trendRuns(reports)));
  return 0;
}

/** Removes the oldest runs beyond the newest `keep`, and says what it left alone. */
export function pruneCommand(resultsDir: string, keep: number): number {
  if (!existsSync(resultsDir)) {
    print(`There are no runs in ${resultsDir}.`);
    return 0;
  }
  const plan = said(() => pruneRuns(resultsDir, keep));
  for (const run of plan.remove) print(`Removed ${run.name}.`);
  for (const { run, why } of plan.spared) print(`Left ${run.name} alone: ${why}.`);
  if (plan.remove.length === 0) print('Nothing to remove.');
  return 0;
}

/** Serves the results on 127.0.0.1 until a signal. */
export async function serveCommand(resultsDir: string, port: number, interruption: Interruption): Promise<number> {
  if (!existsSync(resultsDir)) throw new UsageError(`There is no results folder ${resultsDir}; run something first.`);
  let serving: Awaited<ReturnType<typeof serveResults>>;
  try {
    serving = await serveResults(resultsDir, port);
  } catch (error) {
    throw new UsageError(`Port ${port} cannot be served (${messageOf(error)}); choose another with --port.`);
  }
  print(`${serving.url} shows the runs in ${resultsDir}, to this machine only; Ctrl-C ends it.`);
  await aborted(interruption.early);
  serving.server.closeAllConnections();
  await new Promise<void>((resolve) => serving.server.close(() => resolve()));
  return 0;
}
