/**
 * Calls between attempts: each waits for its backoff, for the map where it must, for a token of the retry budget, and is then sent on;
 * never later than its deadline, which the owner's timer watches. A call that leaves (cancelled, settled) takes nothing away from the others.
 */
import type { Call } from './call.ts';
import { RetryBudget } from './retry.ts';
import type { Timed, Timers } from './timers.ts';

export interface WaitingRoomParts {
  readonly timers: Timers<Timed>;
  readonly budget: RetryBudget;
  /** Whether the map shows what this call waits for. */
  readonly isReleased: (call: Call) => boolean;
  /** Starts the next attempt. */
  readonly dispatch: (call: Call, nowMs: number) => void;
}

export class WaitingRoom {
  private readonly parts: WaitingRoomParts;
  /** Those that wait for the map. */
  private readonly riders = new Set<Call>();

  constructor(parts: WaitingRoomParts) {
    this.parts = parts;
  }

  /** Whether anybody waits for the map. */
  get hasRiders(): boolean {
    return this.riders.size > 0;
  }

  /** Waits for the map, until `untilMs` at most, and for the call's `notBeforeMs`. */
  ride(call: Call, needEpoch: number, untilMs: number, nowMs: number): void {
    call.state = 'waiting';
    call.rides = true;
    call.needEpoch = needEpoch;
    call.riderUntilMs = untilMs;
    this.riders.add(call);
    this.advance(call, nowMs);
  }

  /** Waits for the call's `notBeforeMs` only. */
  backOff(call: Call, nowMs: number): void {
    call.state = 'waiting';
    call.rides = false;
    this.advance(call, nowMs);
  }

  /** Moves a waiting call on when nothing holds it any longer; else sets its timer. */
  advance(call: Call, nowMs: number): void {
    const { timers, budget, isReleased, dispatch } = this.parts;
    if (call.rides) {
      if (nowMs < call.riderUntilMs && !isReleased(call)) return this.sleep(call, call.riderUntilMs);
      call.rides = false;
      this.riders.delete(call);
    }
    if (nowMs < call.notBeforeMs) return this.sleep(call, call.notBeforeMs);
    if (call.attempts > 0 && !call.hasToken) {
      call.hasToken = true;
      call.notBeforeMs = budget.reserve(nowMs);
      if (nowMs < call.notBeforeMs) return this.sleep(call, call.notBeforeMs);
    }
    timers.arm(call, call.deadlineMs);
    dispatch(call, nowMs);
  }

  private sleep(call: Call, untilMs: number): void {
    this.parts.timers.arm(call, Math.min(call.deadlineMs, untilMs));
  }

  /** The map or the connections have changed: whoever waited for that goes on. */
  release(nowMs: number): void {
    for (const call of [...this.riders]) {
      if (call.rides && call.state === 'waiting' && this.parts.isReleased(call)) this.advance(call, nowMs);
    }
  }

  leave(call: Call): void {
    this.riders.delete(call);
  }
}
