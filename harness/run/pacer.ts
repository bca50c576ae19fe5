/**
 * Keeps the overall rate of operations: sessions ask for a turn each time.
 *
 * Turns not used while sessions were stuck are given later, up to a bound and at no more than twice the rate, so that the
 * average over a run holds although every failover stalls some sessions. Unbounded catching up would turn each recovery
 * into an overload of its own.
 */
import type { Clock } from '../../lib/clock.ts';

/** Unused turns that are kept, in seconds of the rate. */
const backlogSeconds = 30;
/** Fastest rate while catching up, in multiples of the rate. */
const catchUpFactor = 2;
/** Turns given at once at most, in seconds of the fastest rate. */
const burstSeconds = 0.02;
/** How often waiting sessions are looked at, ms. */
const tickMs = 4;

export class Pacer {
  private readonly clock: Clock;
  private readonly ratePerMs: number;
  private readonly waiting: (() => void)[] = [];
  private backlog = 0;
  private burst = 0;
  private lastMs: number;
  private timer: NodeJS.Timeout | null = null;
  private stopped = false;

  constructor(ratePerSecond: number, clock: Clock) {
    this.clock = clock;
    this.ratePerMs = ratePerSecond / 1_000;
    this.lastMs = clock.nowMs();
  }

  /** Resolves when the caller may start one operation, or at once when the pacer has been stopped. */
  turn(): Promise<void> | null {
    if (this.stopped || this.ratePerMs === Infinity) return null;
    if (this.waiting.length === 0) {
      this.refill();
      if (this.take()) return null;
    }
    this.timer ??= setInterval(() => this.grant(), tickMs);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Lets everybody through from now on; they will see that the run is stopping. */
  stop(): void {
    this.stopped = true;
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  private grant(): void {
    this.refill();
    while (this.waiting.length > 0 && this.take()) this.waiting.shift()?.();
    if (this.waiting.length > 0 || this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
  }

  private refill(): void {
    const nowMs = this.clock.nowMs();
    const elapsedMs = nowMs - this.lastMs;
    this.lastMs = nowMs;
    const fastest = this.ratePerMs * catchUpFactor;
    this.backlog = Math.min(
      this.backlog + elapsedMs * this.ratePerMs,
      Math.max(1, this.ratePerMs * 1_000 * backlogSeconds),
    );
    this.burst = Math.min(this.burst + elapsedMs * fastest, Math.max(1, fastest * 1_000 * burstSeconds));
  }

  private take(): boolean {
    if (this.backlog < 1 || this.burst < 1) return false;
    this.backlog--;
    this.burst--;
    return true;
  }
}
