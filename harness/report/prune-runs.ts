/**
 * `certify prune --keep N`: removes the oldest runs beyond the newest N.
 *
 * Never touched: a run marked kept, one without a readable report (it may be running, or be the only trace of a crash), the
 * one that `latest` points at, and whatever is no run. Deleting a kept run would destroy evidence that somebody asked for.
 */
import { readlinkSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type ListedRun, listRuns } from './list-runs.ts';

export interface PrunePlan {
  readonly remove: readonly ListedRun[];
  readonly spared: readonly { readonly run: ListedRun; readonly why: string }[];
}

/** Pure: what `keep` means for these runs (newest first). Kept and spared runs do not count towards `keep`. */
export function planPrune(runs: readonly ListedRun[], keep: number, latest: string | null): PrunePlan {
  if (!Number.isInteger(keep) || keep < 0) throw new Error('--keep must be a whole number, 0 or more');
  const remove: ListedRun[] = [];
  const spared: { run: ListedRun; why: string }[] = [];
  let counted = 0;
  for (const run of runs) {
    if (run.kept) spared.push({ run, why: 'marked kept' });
    else if (run.kind === 'unreadable') spared.push({ run, why: run.problem });
    else if (run.report.preliminary) spared.push({ run, why: 'its report is preliminary: it may still be running' });
    else if (counted < keep) counted++;
    else if (run.name === latest) spared.push({ run, why: 'latest points at it' });
    else remove.push(run);
  }
  return { remove, spared };
}

function latestTarget(resultsFolder: string): string | null {
  try {
    return basename(readlinkSync(join(resultsFolder, 'latest')));
  } catch {
    return null;
  }
}

/** Plans and removes; gives back what was done. */
export function pruneRuns(resultsFolder: string, keep: number): PrunePlan {
  const plan = planPrune(listRuns(resultsFolder), keep, latestTarget(resultsFolder));
  for (const run of plan.remove) rmSync(run.folder, { recursive: true, force: true });
  return plan;
}
