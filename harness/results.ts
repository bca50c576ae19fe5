/**
 * The results folder: one folder per run and a link `latest` (DESIGN §3).
 *
 * `verdict.json` is written last and atomically: a run without it ended without a verdict, whatever its exit code says.
 */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { messageOf, UsageError } from './errors.ts';
import type { Verdict } from './verdict.ts';

/** Paths inside one run's folder. */
export interface RunFolder {
  readonly runId: string;
  readonly path: string;
  readonly ledger: string;
  readonly schedule: string;
  readonly logs: string;
  readonly harnessLog: string;
  readonly verdict: string;
}

/** What `verdict.json` says. */
export interface VerdictFile {
  readonly runId: string;
  readonly verdict: Verdict;
  readonly exitCode: number;
  readonly headline: string;
}

const layout = (resultsDir: string, runId: string): RunFolder => {
  const path = resolve(resultsDir, runId);
  return {
    runId,
    path,
    ledger: join(path, 'ledger.sqlite'),
    schedule: join(path, 'schedule.json'),
    logs: join(path, 'logs'),
    harnessLog: join(path, 'logs', 'harness.log'),
    verdict: join(path, 'verdict.json'),
  };
};

/** Makes the folder of a new run and points `latest` at it. Throws UsageError when it cannot be written. */
export function createRunFolder(resultsDir: string, runId: string): RunFolder {
  const folder = layout(resultsDir, runId);
  inResults(resultsDir, () => {
    mkdirSync(folder.path);
    mkdirSync(folder.logs);
  });
  pointLatest(resultsDir, runId);
  return folder;
}

/** A hidden folder in there for what is not a run yet; the caller removes it. Throws UsageError where it cannot be made. */
export function createHiddenFolder(resultsDir: string): string {
  return inResults(resultsDir, () => mkdtempSync(join(resultsDir, '.unfinished-')));
}

function inResults<T>(resultsDir: string, make: () => T): T {
  try {
    makeFolder(resolve(resultsDir));
    accessSync(resultsDir, constants.W_OK);
    return make();
  } catch (error) {
    throw new UsageError(
      `The results folder ${resolve(resultsDir)} cannot be written (${messageOf(error)}); choose another with --results.`,
    );
  }
}

/** Step by step: on a file system that refuses new folders (such as /proc) Node's own recursion never ends. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path);
}

/** The folder of an existing run: an id, `latest`, or a path. Throws UsageError when there is none. */
export function openRunFolder(resultsDir: string, run: string): RunFolder {
  const named = join(resultsDir, run);
  const path = existsSync(named) ? named : run;
  if (!existsSync(join(path, 'ledger.sqlite'))) {
    throw new UsageError(`There is no run "${run}" in ${resolve(resultsDir)}; "certify list" shows what there is.`);
  }
  // Through the link: `latest` may point elsewhere a moment later.
  const absolute = realpathSync(path);
  const runId = run === 'latest' ? absolute : run;
  return { ...layout(absolute, '.'), runId: readVerdict(join(absolute, 'verdict.json'))?.runId ?? runId };
}

/** Writes a file so that a reader sees the whole of it or nothing. */
export function writeWhole(path: string, text: string): void {
  const part = `${path}.part`;
  writeFileSync(part, text);
  renameSync(part, path);
}

export function writeVerdict(folder: RunFolder, verdict: VerdictFile): void {
  writeWhole(folder.verdict, `${JSON.stringify(verdict, null, 2)}\n`);
}

/** The verdict of a run, or null when it ended without one. */
export function readVerdict(path: string): VerdictFile | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as VerdictFile;
  } catch {
    return null;
  }
}

function pointLatest(resultsDir: string, runId: string): void {
  const latest = join(resultsDir, 'latest');
  const existing = lstatSync(latest, { throwIfNoEntry: false });
  if (existing !== undefined && !existing.isSymbolicLink()) return;
  const part = join(resultsDir, `.latest-${runId}`);
  rmSync(part, { force: true });
  symlinkSync(runId, part);
  renameSync(part, latest);
}

/** A run's id: wall-clock time in UTC and the seed, so that ids sort by time and never meet by chance. */
export function runIdOf(wallMs: number, seed: number, processId: number): string {
  const stamp = new Date(wallMs).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  return `${stamp}-${seed.toString(16).padStart(8, '0')}-${processId.toString(36)}`;
}
