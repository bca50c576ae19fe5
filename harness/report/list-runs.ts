/** The results folder as a list of runs, newest first. A folder without a readable report is named, never skipped in silence. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Table from 'cli-table3';
import { verdictWords } from './first-screen.ts';
import type { RunReport } from './model.ts';
import { formatCount, formatDuration, formatWall, visible } from './text.ts';
import { readReport } from './write-report.ts';

export type ListedRun =
  | {
      readonly kind: 'read';
      readonly folder: string;
      readonly name: string;
      readonly kept: boolean;
      readonly report: RunReport;
    }
  /** No report yet (running, or ended without a verdict), or one that cannot be read. */
  | {
      readonly kind: 'unreadable';
      readonly folder: string;
      readonly name: string;
      readonly kept: boolean;
      readonly problem: string;
    };

/** A file of this name in a run's folder keeps the run from `prune`. */
export const keptMarker = 'kept';

/** Said of a run whose folder has no report. */
const noReport = 'no report yet: it is running, or its harness died (resume it)';

/** What makes a folder a run's folder. */
const runFiles = ['report.json', 'ledger.sqlite', 'schedule.json'];

function readRun(resultsFolder: string, name: string): ListedRun | null {
  const folder = join(resultsFolder, name);
  if (!runFiles.some((file) => existsSync(join(folder, file)))) return null;
  const kept = existsSync(join(folder, keptMarker));
  try {
    return { kind: 'read', folder, name, kept, report: readReport(folder) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const problem = existsSync(join(folder, 'report.json')) ? why : noReport;
    return { kind: 'unreadable', folder, name, kept, problem };
  }
}

const startOf = (run: ListedRun): number =>
  run.kind === 'read' ? Date.parse(run.report.run.startedAt) || 0 : statSync(run.folder).mtimeMs;

/** Runs of a results folder, newest first. Links (such as `latest`) are not runs. Throws an Error when the folder cannot be read. */
export function listRuns(resultsFolder: string): ListedRun[] {
  let names: string[];
  try {
    names = readdirSync(resultsFolder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    throw new Error(`cannot read the results folder ${resultsFolder}`);
  }
  const runs = names.flatMap((name) => readRun(resultsFolder, name) ?? []);
  return runs.toSorted((a, b) => startOf(b) - startOf(a) || b.name.localeCompare(a.name));
}

/** A run by name or by a prefix that only one has; `latest` is the newest with a report. Throws an Error of one sentence. */
export function findRun(resultsFolder: string, name: string): Extract<ListedRun, { kind: 'read' }> {
  const runs = listRuns(resultsFolder);
  const exact = runs.filter((run) => run.name === name);
  const matches =
    name === 'latest'
      ? runs.filter((run) => run.kind === 'read').slice(0, 1)
      : exact.length > 0
        ? exact
        : runs.filter((run) => run.name.startsWith(name));
  const [first] = matches;
  if (first === undefined) throw new Error(`no run named '${visible(name)}' in ${resultsFolder}`);
  if (matches.length > 1)
    throw new Error(
      `'${visible(name)}' fits ${matches.length} runs: ${matches
        .slice(0, 5)
        .map((run) => run.name)
        .join(', ')}`,
    );
  if (first.kind === 'unreadable') throw new Error(first.problem);
  return first;
}

/** Columns of the list, for the terminal and for the browser. */
export const runColumns = [
  'run',
  'started (UTC)',
  'verdict',
  'exit',
  'took',
  'cluster',
  'rf',
  'acknowledged',
  'failovers',
  'findings',
  '',
] as const;

export function runCells(run: ListedRun): string[] {
  const kept = run.kept ? 'kept' : '';
  if (run.kind === 'unreadable') return [run.name, '', run.problem, '', '', '', '', '', '', '', kept];
  const { report } = run;
  const { sign } = verdictWords(report.verdict.kind);
  return [
    run.name,
    formatWall(report.run.startedAt, 0),
    `${sign} ${report.verdict.kind}${report.preliminary ? ' (preliminary)' : ''}`,
    String(report.verdict.exitCode),
    formatDuration(report.run.durationMs),
    report.run.cluster,
    String(report.system.replicationFactor),
    formatCount(report.counts.acknowledgedWrites),
    formatCount(report.strength.failovers),
    formatCount(report.findings.total),
    kept,
  ];
}

/** Rows as a plain table for a terminal. */
export function plainTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: [...heads],
    style: { head: [], border: [], compact: true },
    chars: {
      top: '',
      'top-mid': '',
      'top-left': '',
      'top-right': '',
      bottom: '',
      'bottom-mid': '',
      'bottom-left': '',
      'bottom-right': '',
      left: '',
      'left-mid': '',
      mid: '',
      'mid-mid': '',
      right: '',
      'right-mid': '',
      middle: ' ',
    },
  });
  for (const row of rows) table.push(row.map(visible));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** `certify list`. */
export const runsTable = (runs: readonly ListedRun[]): string => plainTable(runColumns, runs.map(runCells));
