/**
 * Virtual time for tests: a clock and a sleeper over one heap of timers.
 *
 * Invariant: time moves only when everything that can run has run; timers of one moment fire in the order they were set.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Sleeper } from '../ports.ts';

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly fire: () => void;
}

/** Turns of the event loop given to promises before time moves on. */
const settleTurns = 2;

export class VirtualTime implements Clock, Sleeper {
  private now = 1_000;
  private order = 0;
  private timers: Timer[] = [];

  nowMs(): number {
    return this.now;
  }

  wallMs(): number {
    return this.now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve();
        return;
      }
      const timer: Timer = {
        atMs: this.now + Math.max(0, ms),
        order: this.order++,
        fire: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      const onAbort = (): void => {
        this.timers = this.timers.filter((other) => other !== timer);
        resolve();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.timers.push(timer);
    });
  }

  /** Calls `action` every `periodMs` of virtual time, for as long as anything runs. */
  every(periodMs: number, action: () => void): void {
    const fire = (): void => {
      action();
      this.timers.push({ atMs: this.now + periodMs, order: this.order++, fire });
    };
    this.timers.push({ atMs: this.now + periodMs, order: this.order++, fire });
  }

  at(delayMs: number, action: () => void): void {
    this.timers.push({ atMs: this.now + delayMs, order: this.order++, fire: action });
  }

  /** Runs until the promise settles. Throws when nothing is left that could settle it. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let isOver = false;
    const watched = promise.finally(() => {
      isOver = true;
    });
    watched.catch(() => undefined);
    for (;;) {
      for (let turn = 0; turn < settleTurns; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (isOver) return watched;
      let next: Timer | undefined;
      for (const timer of this.timers) {
        if (next === undefined || timer.atMs < next.atMs || (timer.atMs === next.atMs && timer.order < next.order))
          next = timer;
      }
      if (next === undefined) throw new Error('nothing left to wait for');
      this.timers.splice(this.timers.indexOf(next), 1);
      this.now = Math.max(this.now, next.atMs);
      next.fire();
    }
  }
}
