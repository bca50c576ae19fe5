/**
 * Virtual time for code that awaits: the chaos driver, which is written with promises, runs beside the event heap.
 *
 * Invariant: time does not move while anything that was awaited can go on. Everything awaited here resolves from the heap alone
 * (no sockets, no real timers), so one turn of the event loop drains all of it, and the order is the same in every run.
 */
import type { Clock } from '../lib/clock.ts';
import type { Sleeper } from '../chaos/ports.ts';
import type { World } from './world.ts';

/** Events after which real time is let in. */
const eventsPerBreath = 20_000;

export class Turns implements Clock, Sleeper {
  private readonly world: World;
  private hasNews = false;
  /** Since real time was let in last. */
  private events = 0;
  /** Asked now and then: what it returns is waited for, in real time only. */
  pace: () => Promise<void> | null = () => null;

  constructor(world: World) {
    this.world = world;
  }

  nowMs(): number {
    return this.world.nowMs;
  }

  /** The simulated wall clock is the monotonic one; nothing decides by it. */
  wallMs(): number {
    return this.world.nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve();
        return;
      }
      let isOver = false;
      const end = (): void => {
        if (isOver) return;
        isOver = true;
        signal?.removeEventListener('abort', end);
        this.hasNews = true;
        resolve();
      };
      signal?.addEventListener('abort', end, { once: true });
      this.world.at(this.world.nowMs + Math.max(0, ms), end);
    });
  }

  /** To be called wherever a promise that somebody awaits is resolved from within the heap. */
  news(): void {
    this.hasNews = true;
  }

  /** Runs the world until `untilMs` or until `done` holds; true when it does. */
  async run(untilMs: number, done: (() => boolean) | null = null): Promise<boolean> {
    const isDone = (): boolean => done !== null && done();
    // Asked after every event: the cheap questions first.
    const isOver = (): boolean => {
      this.events += 1;
      return this.hasNews || this.events >= eventsPerBreath || isDone();
    };
    for (;;) {
      this.world.run(untilMs, isOver);
      if (isDone()) return true;
      const isBreath = this.events >= eventsPerBreath;
      if (isBreath) await this.breathe();
      if (this.hasNews) await this.settle();
      else if (!isBreath) return false;
      if (isDone()) return true;
    }
  }

  /** Lets real time in: whoever takes the history may catch up. Nothing that is simulated waits for it. */
  private async breathe(): Promise<void> {
    this.events = 0;
    const caughtUp = this.pace();
    if (caughtUp !== null) await caughtUp;
  }

  /** Lets everything that can go on do so, without moving time. */
  async settle(): Promise<void> {
    this.hasNews = false;
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
}
