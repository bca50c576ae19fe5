/**
 * Time shared among keys, in rounds, so that one hard key does not take it from the others. Owns the loop's end: every key
 * ends up decided, or `unknown` when the budget is over.
 */

import type { SearchBudget } from './budget.ts';
import { isOutOfTime, sliceOf } from './budget.ts';

/** In each round an undecided key gets its share of this part of the time left, but at least so many milliseconds. */
const shareOfTimeLeft = 0.25;
const minSliceMs = 100;

/**
 * Calls `judge` for every item until it answers something else than `unknown`, with a slice of the budget each time. Returns the
 * items on which the budget ended, in their order.
 */
export function decideInRounds<T>(
  items: readonly T[],
  budget: SearchBudget,
  judge: (item: T, slice: SearchBudget) => 'valid' | 'invalid' | 'unknown',
): T[] {
  let undecided = [...items];
  for (;;) {
    const isLast = undecided.length <= 1 || budget.deadlineMs === Infinity || isOutOfTime(budget);
    const timeLeftMs = budget.deadlineMs - budget.nowMs();
    const sliceMs = Math.max(minSliceMs, (timeLeftMs * shareOfTimeLeft) / undecided.length);
    undecided = undecided.filter((item) => judge(item, isLast ? budget : sliceOf(budget, sliceMs)) === 'unknown');
    if (isLast) return undecided;
  }
}
