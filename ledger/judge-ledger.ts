/**
 * Judges a ledger's file in several threads, each with its own part of the keys, in bounded memory.
 *
 * A thread that crashes makes the judgement fail (the caller's verdict is then `inconclusive`); it never shortens it.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { assert } from '../lib/assert.ts';
import { mergeShadow } from './verify/canary.ts';
import { conclude, type JudgeOptions, judgePart, type Judgement, type PartResult } from './verify/judge.ts';
import { RunContext } from './verify/run-context.ts';
import { unlimitedBudget } from './verify/search/budget.ts';
import { mergeTally } from './verify/tally.ts';
import { openLedgerReader } from './reader.ts';

/** Threads at most; each may hold a sorter's cache and one key's history. */
export const maxJudgeThreads = 8;

/** As {@link JudgeOptions}, but plain data, so that it can cross threads. */
export interface LedgerJudgeOptions extends Omit<JudgeOptions, 'searchBudget'> {
  /** Time for one key whose store gives no versions, ms. */
  readonly searchMsPerKey: number;
  readonly searchMemoBytes: number;
}

export interface JudgeTask {
  readonly path: string;
  readonly part: number;
  readonly parts: number;
  readonly options: LedgerJudgeOptions;
}

/** One part, in the calling thread. */
export function judgeLedgerPart(task: JudgeTask): PartResult {
  using reader = openLedgerReader(task.path);
  return judgePart(reader, new RunContext(reader), withBudget(task.options), task.part, task.parts);
}

/** Judges the ledger at `path` (file or folder). Rejects with LedgerFileError when it cannot be read, or with the error of a checker that crashed. */
export async function judgeLedger(
  path: string,
  options: LedgerJudgeOptions,
  threads = Math.min(maxJudgeThreads, availableParallelism()),
): Promise<Judgement> {
  assert(threads >= 1 && threads <= maxJudgeThreads, 'number of threads');
  using reader = openLedgerReader(path);
  const tasks = Array.from({ length: threads }, (_, part): JudgeTask => ({ path, part, parts: threads, options }));
  const [first, ...others] =
    threads === 1 ? [judgeLedgerPart(tasks[0] as JudgeTask)] : await Promise.all(tasks.map(runInThread));
  assert(first !== undefined, 'at least one part');
  for (const other of others) {
    mergeTally(first.tally, other.tally);
    mergeShadow(first.shadow, other.shadow);
  }
  return conclude(reader, new RunContext(reader), first, withBudget(options));
}

function withBudget(options: LedgerJudgeOptions): JudgeOptions {
  return {
    ...options,
    searchBudget: () => ({
      ...unlimitedBudget(options.searchMemoBytes),
      nowMs: () => performance.now(),
      deadlineMs: performance.now() + options.searchMsPerKey,
    }),
  };
}

function runInThread(task: JudgeTask): Promise<PartResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./judge-thread.ts', import.meta.url), { workerData: task });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`a judging thread ended with code ${code} before it had judged`)));
  });
}
