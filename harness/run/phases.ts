/**
 * The phases of a run and their time limits, stated before the run starts. A phase that runs out of time ends with what it
 * has; the verdict says so. Without limits, a hung store or checker would hang the night's job.
 */
import type { Clock } from '../../lib/clock.ts';

/** When a phase ran, monotonic milliseconds. */
export interface PhaseRecord {
  readonly name: PhaseName;
  readonly fromMs: number;
  readonly toMs: number;
}

export const phaseNames = ['start', 'load', 'heal', 'settle', 'read-back', 'autopsy', 'verify', 'report'] as const;
export type PhaseName = (typeof phaseNames)[number];

export type PhaseLimits = Readonly<Record<PhaseName, number>>;

const secondMs = 1_000;
const minuteMs = 60 * secondMs;

/** Keys that the read-back is given time for, per second; a slow machine does several times this. */
const readBackKeysPerSecond = 1_000;
/** Operations that the verifier is given time for, per second. */
const verifiedPerSecond = 50_000;

/** Limits by what the run is expected to write. */
export function phaseLimits(durationMs: number, operations: number, liveKeys: number): PhaseLimits {
  return {
    start: 3 * minuteMs,
    load: durationMs + minuteMs,
    heal: 2 * minuteMs,
    settle: 2 * minuteMs,
    'read-back': 2 * minuteMs + (liveKeys / readBackKeysPerSecond) * secondMs,
    autopsy: 2 * minuteMs + (liveKeys / readBackKeysPerSecond) * secondMs,
    verify: 2 * minuteMs + (operations / verifiedPerSecond) * secondMs,
    report: 2 * minuteMs,
  };
}

/** Limits after a signal: judged and saved within a minute. */
export const interruptedLimits: Omit<PhaseLimits, 'start' | 'load'> = {
  heal: 10 * secondMs,
  settle: 10 * secondMs,
  'read-back': 12 * secondMs,
  autopsy: 5 * secondMs,
  verify: 15 * secondMs,
  report: 8 * secondMs,
};

export type PhaseEnd<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'out-of-time'; readonly limitMs: number };

/** Time that a phase gets after its signal was aborted, to hand over what it has, ms. */
const graceMs = 5_000;

export class PhaseRunner {
  private readonly clock: Clock;
  private readonly onPhase: (record: PhaseRecord) => void;
  private readonly onStart: (name: PhaseName) => void;
  current: PhaseName | null = null;

  constructor(clock: Clock, onStart: (name: PhaseName) => void, onPhase: (record: PhaseRecord) => void) {
    this.clock = clock;
    this.onStart = onStart;
    this.onPhase = onPhase;
  }

  /**
   * Runs one phase. Its signal is aborted when the limit has passed or when one of `also` is; it then has a short grace to
   * return what it has. What the phase throws passes through.
   */
  async run<T>(
    name: PhaseName,
    limitMs: number,
    also: readonly AbortSignal[],
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<PhaseEnd<T>> {
    const fromMs = this.clock.nowMs();
    this.current = name;
    this.onStart(name);
    const limit = new AbortController();
    const signal = AbortSignal.any([limit.signal, ...also]);
    let timer: NodeJS.Timeout | undefined;
    const outOfTime = new Promise<PhaseEnd<T>>((resolve) => {
      const give = (): void => {
        timer = setTimeout(() => resolve({ kind: 'out-of-time', limitMs }), graceMs);
      };
      timer = setTimeout(() => {
        limit.abort(new Error(`phase ${name} is out of time`));
      }, limitMs);
      signal.addEventListener(
        'abort',
        () => {
          clearTimeout(timer);
          give();
        },
        { once: true },
      );
      if (signal.aborted) give();
    });
    try {
      const done = work(signal).then((value): PhaseEnd<T> => ({ kind: 'done', value }));
      done.catch(() => undefined);
      return await Promise.race([done, outOfTime]);
    } finally {
      clearTimeout(timer);
      this.onPhase({ name, fromMs, toMs: this.clock.nowMs() });
    }
  }
}
