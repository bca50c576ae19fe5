/**
 * The retry brain, all of it: whether an attempt's end is worth another attempt, whether the map is refreshed first, and how long to
 * wait (DESIGN §5). Nothing else in the client decides any of this. If it were wrong, a final answer would be hidden behind retries,
 * or a storm of them would keep a failing cluster down.
 */
import { unreachable } from '../../lib/assert.ts';
import type { Status } from '../model/status.ts';

/** How an attempt ended: an answer's status, or no answer at all. */
export type AttemptEnd = Status | 'TransportError';

/** Bounds and waits of retrying; both bounds hold always. */
export interface RetryPolicy {
  readonly maxAttempts: number;
  /** First wait; grows linearly with the attempt. */
  readonly backoffMs: number;
  readonly migratingFactor: number;
  /** 0.2 means ±20 %. */
  readonly jitterFraction: number;
  readonly maxDelayMs: number;
}

export const defaultRetryPolicy: RetryPolicy = {
  maxAttempts: 3,
  backoffMs: 100,
  migratingFactor: 8,
  jitterFraction: 0.2,
  maxDelayMs: 2000,
};

/** Whether another attempt may change the answer. */
export function isRetried(end: AttemptEnd): boolean {
  switch (end) {
    case 'Moved':
    case 'OwnershipChanging':
    case 'ReplicaWriteRejected':
    case 'Migrating':
    case 'Unavailable':
    case 'TransportError':
      return true;
    case 'Ok':
    case 'NotFound':
    case 'Conflict':
    case 'InvalidInput':
    case 'Lost':
    case 'Unauthorized':
      return false;
    default:
      return unreachable(end, 'attempt end');
  }
}

/** Whether the map is refreshed before the next attempt. `inARow`: how many attempts ended this same way, this one included. */
export function refreshesFirst(end: AttemptEnd, inARow: number): boolean {
  switch (end) {
    case 'Moved':
    case 'OwnershipChanging':
    case 'ReplicaWriteRejected':
    case 'TransportError':
      return true;
    case 'Unavailable':
    case 'Migrating':
      return inARow >= 2;
    case 'Ok':
    case 'NotFound':
    case 'Conflict':
    case 'InvalidInput':
    case 'Lost':
    case 'Unauthorized':
      return false;
    default:
      return unreachable(end, 'attempt end');
  }
}

/** Wait after attempt number `attempt` (from 1), ms. `chance` in [0, 1) draws the jitter. */
export function retryDelayMs(end: AttemptEnd, attempt: number, policy: RetryPolicy, chance: number): number {
  const base = policy.backoffMs * attempt * (end === 'Migrating' ? policy.migratingFactor : 1);
  const jittered = base * (1 + policy.jitterFraction * (2 * chance - 1));
  return Math.min(jittered, policy.maxDelayMs);
}

/** What is known when an attempt has ended. Times are monotonic; `deadlineMs` may be Infinity. */
export interface RetryQuestion {
  readonly end: AttemptEnd;
  readonly attempt: number;
  readonly inARow: number;
  readonly nowMs: number;
  readonly deadlineMs: number;
  readonly chance: number;
}

export type RetryDecision =
  | { readonly kind: 'settle' }
  /** Next attempt not before `notBeforeMs`, and after a refresh where asked. */
  | { readonly kind: 'retry'; readonly refreshFirst: boolean; readonly notBeforeMs: number };

/** Settle with this end, or try again. */
export function decideRetry(question: RetryQuestion, policy: RetryPolicy): RetryDecision {
  const { end, attempt, nowMs, deadlineMs } = question;
  if (!isRetried(end) || attempt >= policy.maxAttempts || nowMs >= deadlineMs) return { kind: 'settle' };
  const notBeforeMs = Math.min(nowMs + retryDelayMs(end, attempt, policy, question.chance), deadlineMs);
  return { kind: 'retry', refreshFirst: refreshesFirst(end, question.inARow), notBeforeMs };
}

/**
 * Token bucket for retries: a burst goes through at once, a storm is spread out in time instead of refused. Each retry reserves
 * its own slot.
 */
export class RetryBudget {
  private readonly burst: number;
  private readonly intervalMs: number;
  /** When the bucket would be full again. */
  private fullAtMs = 0;

  constructor(burst: number, perSecond: number) {
    this.burst = burst;
    this.intervalMs = 1000 / perSecond;
  }

  /** Takes one token; returns when it may be used (`nowMs`, or later). */
  reserve(nowMs: number): number {
    this.fullAtMs = Math.max(this.fullAtMs, nowMs) + this.intervalMs;
    return Math.max(nowMs, this.fullAtMs - this.burst * this.intervalMs);
  }
}
