/**
 * The clocks of a run: one monotonic clock for every decision, and the nanoseconds since the start that the ledger keeps.
 *
 * Every part of the harness takes its times from here; two origins in one ledger would order operations that were concurrent.
 */
import type { Clock } from '../../lib/clock.ts';

export class RunClock implements Clock {
  private readonly clock: Clock;
  /** Monotonic milliseconds at which the run started. */
  readonly startedAtMs: number;
  /** Wall clock at the same moment. */
  readonly startedWallMs: number;

  /** `elapsedNs`: nanoseconds since the start of the run, now; the ledger's own count, so that a resumed run goes on. */
  constructor(clock: Clock, elapsedNs: number) {
    this.clock = clock;
    this.startedAtMs = clock.nowMs() - elapsedNs / 1e6;
    this.startedWallMs = clock.wallMs() - elapsedNs / 1e6;
  }

  nowMs(): number {
    return this.clock.nowMs();
  }

  wallMs(): number {
    return this.clock.wallMs();
  }

  /** Nanoseconds since the start of the run, now. */
  nowNs(): number {
    return this.nsOf(this.clock.nowMs());
  }

  /** Nanoseconds since the start of the run of a monotonic time; never negative. */
  nsOf(atMs: number): number {
    return Math.max(0, Math.round((atMs - this.startedAtMs) * 1e6));
  }

  /** Wall clock of a monotonic time, from the clocks' distance at the start. */
  wallOf(atMs: number): number {
    return this.startedWallMs + (atMs - this.startedAtMs);
  }
}
