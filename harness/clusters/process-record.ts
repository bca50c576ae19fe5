/**
 * The record of a run's local processes, in the run's folder, and what is made of it once the harness is dead.
 *
 * Invariant: a process is ended only when it is provably the one that was recorded (same boot, same id, same start time) and
 * its harness is provably dead, or when a person names the run. A wrong guess would kill somebody else's process.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { currentHost, type HostView, judgeOwner, type Owner } from '../../docker/labels.ts';
import { writeWhole } from '../results.ts';
import { kernelState } from './kernel-state.ts';
import type { ProcessName } from './links/commands.ts';

const fileName = 'processes.json';

/** What is kept of a run's processes. */
export interface ProcessRecord {
  readonly runId: string;
  readonly owner: Owner;
  /** True: no sweep takes it; only {@link endRecorded} by name. */
  readonly kept: boolean;
  readonly processes: readonly ProcessName[];
}

/** What was ended of one run. */
export interface EndedRun {
  readonly runId: string;
  readonly ended: number;
  /** Why its harness is known to be dead; null when it was named. */
  readonly proof: string | null;
}

/** `runFolder`: the folder of the run. */
export function writeRecord(runFolder: string, record: ProcessRecord): void {
  writeWhole(join(runFolder, fileName), `${JSON.stringify(record, null, 2)}\n`);
}

export function removeRecord(runFolder: string): void {
  rmSync(join(runFolder, fileName), { force: true });
}

function readRecord(runFolder: string): ProcessRecord | null {
  try {
    return JSON.parse(readFileSync(join(runFolder, fileName), 'utf8')) as ProcessRecord;
  } catch {
    return null;
  }
}

/** Ends what dead harnesses left running, of all runs beside this one. */
export function sweepProcesses(resultsDir: string, host: HostView = currentHost()): EndedRun[] {
  const swept: EndedRun[] = [];
  if (!existsSync(resultsDir)) return swept;
  for (const entry of readdirSync(resultsDir, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const runFolder = join(resultsDir, entry.name);
    const record = readRecord(runFolder);
    if (record === null || record.kept) continue;
    const verdict = judgeOwner(record.owner, host);
    if (verdict.kind !== 'dead') continue;
    swept.push({ runId: record.runId, ended: endProcesses(record, host), proof: verdict.proof });
    removeRecord(runFolder);
  }
  return swept;
}

/** Ends what is recorded of one run, kept or not; null when there is no record. */
export function endRecorded(runFolder: string, host: HostView = currentHost()): EndedRun | null {
  const record = readRecord(runFolder);
  if (record === null) return null;
  const ended = endProcesses(record, host);
  removeRecord(runFolder);
  return { runId: record.runId, ended, proof: null };
}

/** The folder of the run whose logs are here, and that of all runs. */
export const foldersOf = (logsDir: string): { readonly run: string; readonly results: string } => ({
  run: dirname(logsDir),
  results: dirname(dirname(logsDir)),
});

function endProcesses({ owner, processes }: ProcessRecord, host: HostView): number {
  if (owner.boot !== host.boot || owner.machine !== host.machine || owner.pidNamespace !== host.pidNamespace) return 0;
  let ended = 0;
  for (const { pid, startTicks } of processes) {
    if (startTicks === '' || host.startTicks(pid) !== startTicks || kernelState(pid) === 'Z') continue;
    try {
      process.kill(pid, 'SIGKILL');
      ended++;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
  return ended;
}
