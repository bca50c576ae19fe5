/**
 * What a search may spend. Time and memory are arguments: a verdict is never a pass because a search gave up; it is
 * `unknown`, loudly, and the report names what ran out.
 */

/** Bounds of one search, shared by all keys that it judges. */
export interface SearchBudget {
  /** Monotonic clock, milliseconds. */
  readonly nowMs: () => number;
  /** On the clock of `nowMs`; at or after it the search answers `unknown`. */
  readonly deadlineMs: number;
  /** Bytes that the memo tables of one key may hold. A full table is emptied and the search goes on, only slower. */
  readonly memoBytes: number;
}

/** Memo bytes when the caller names none. */
export const defaultMemoBytes = 256 * 1024 * 1024;

/** A budget that never runs out of time; for tests and short histories. */
export function unlimitedBudget(memoBytes = defaultMemoBytes): SearchBudget {
  return { nowMs: () => 0, deadlineMs: Infinity, memoBytes };
}

/** The same budget, but with at most `sliceMs` from now on. */
export function sliceOf(budget: SearchBudget, sliceMs: number): SearchBudget {
  return { ...budget, deadlineMs: Math.min(budget.deadlineMs, budget.nowMs() + sliceMs) };
}

/** True when the time is over. */
export function isOutOfTime(budget: SearchBudget): boolean {
  return budget.nowMs() >= budget.deadlineMs;
}
