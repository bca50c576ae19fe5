import { describe, expect, it } from 'vitest';
import { finalStatuses, transientStatuses } from '../model/status.ts';
import {
  type AttemptEnd,
  decideRetry,
  defaultRetryPolicy,
  refreshesFirst,
  RetryBudget,
  retryDelayMs,
} from './retry.ts';

const middle = 0.5;
const ends: AttemptEnd[] = [...finalStatuses, ...transientStatuses, 'TransportError'];
/** [retried, refreshes after the first, after the second in a row, wait after attempt 1, after attempt 2]. */
const table: Record<AttemptEnd, readonly [boolean, boolean, boolean, number, number]> = {
  Ok: [false, false, false, 0, 0],
  NotFound: [false, false, false, 0, 0],
  Conflict: [false, false, false, 0, 0],
  InvalidInput: [false, false, false, 0, 0],
  Lost: [false, false, false, 0, 0],
  Unauthorized: [false, false, false, 0, 0],
  Moved: [true, true, true, 100, 200],
  OwnershipChanging: [true, true, true, 100, 200],
  ReplicaWriteRejected: [true, true, true, 100, 200],
  Migrating: [true, false, true, 800, 1600],
  Unavailable: [true, false, true, 100, 200],
  TransportError: [true, true, true, 100, 200],
};
const deadlines: readonly (readonly [string, number])[] = [
  ['none', Infinity],
  ['far', 1_060_000],
  ['near', 1_000_050],
  ['reached', 1_000_000],
];

describe('every status × attempt × deadline', () => {
  for (const end of ends) {
    for (const attempt of [1, 2, 3]) {
      for (const [name, deadlineMs] of deadlines) {
        it(`${end}, attempt ${attempt}, deadline ${name}`, () => {
          const [retried, ...rest] = table[end];
          const decision = decideRetry(
            { end, attempt, inARow: attempt, nowMs: 1_000_000, deadlineMs, chance: middle },
            defaultRetryPolicy,
          );
          if (!retried || attempt === 3 || name === 'reached') return expect(decision).toEqual({ kind: 'settle' });
          const waitMs = rest[attempt + 1] as number;
          expect(decision).toEqual({
            kind: 'retry',
            refreshFirst: rest[attempt - 1],
            notBeforeMs: Math.min(1_000_000 + waitMs, deadlineMs),
          });
        });
      }
    }
  }

  it('names every end', () => expect(Object.keys(table).sort()).toEqual([...ends].sort()));
  it('refreshes on Unavailable only from the second in a row', () => {
    expect([1, 2, 3].map((inARow) => refreshesFirst('Unavailable', inARow))).toEqual([false, true, true]);
  });
});

describe('retryDelayMs', () => {
  it('jitters by 20 % both ways and never passes the cap', () => {
    expect(retryDelayMs('Moved', 1, defaultRetryPolicy, 0)).toBeCloseTo(80);
    expect(retryDelayMs('Moved', 1, defaultRetryPolicy, 0.999999)).toBeCloseTo(120, 2);
    for (const chance of [0, 0.5, 0.99]) {
      expect(retryDelayMs('Migrating', 9, defaultRetryPolicy, chance)).toBe(2000);
      expect(retryDelayMs('Migrating', 2, defaultRetryPolicy, chance)).toBeLessThanOrEqual(2000);
    }
  });
});

describe('RetryBudget', () => {
  it('lets a burst through, spreads the rest, and recovers', () => {
    const budget = new RetryBudget(3, 10);
    expect([0, 0, 0, 0, 0].map((now) => budget.reserve(now))).toEqual([0, 0, 0, 100, 200]);
    expect(budget.reserve(10_000)).toBe(10_000);
  });
});
