/**
 * Closed-loop load: each writer sends its next put when the last one is acknowledged. All systems get the same loop, so that what differs
 * is the system and its client. A put that is not acknowledged as promised is a failure and is in no rate.
 */
import { build } from 'hdr-histogram-js';
import { CpuWatch } from './cpu-time.ts';

/** One connection's worth of a client. */
export interface Writer {
  /** Resolves once acknowledged as the system promises; rejects otherwise. */
  put(key: string, value: string): Promise<void>;
}

/** What one measured stretch gave. */
export interface Round {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly failures: number;
  readonly firstFailure: string | null;
  /** CPUs used by the process that makes the load, and by each process of the system, busiest first. */
  readonly loadCpu: number;
  readonly systemCpus: readonly number[];
}

export interface LoadOptions {
  readonly valueBytes: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly keysPerWriter: number;
  readonly signal: AbortSignal;
}

const microsecondsPerMs = 1000;
/** Failures in a row after which a writer rests, ms: a system that refuses everything must not look fast. */
const failurePauseMs = 20;

/** The key that a writer uses in a turn. */
export const keyOf = (writer: number, turn: number): string => `bench-${writer}-${turn}`;

/** Runs all writers for a while; `pids` are the system's processes. */
export async function measure(
  writers: readonly Writer[],
  pids: readonly number[],
  options: LoadOptions,
): Promise<Round> {
  const histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: 120_000_000,
    numberOfSignificantValueDigits: 3,
  });
  const value = 'v'.repeat(options.valueBytes);
  let failures = 0;
  let firstFailure: string | null = null;
  let isCounting = false;
  const end = { isOver: false };
  const run = async (writer: Writer, index: number): Promise<void> => {
    for (let turn = 0; !end.isOver; turn++) {
      const beganMs = performance.now();
      try {
        await writer.put(keyOf(index, turn % options.keysPerWriter), value);
        if (isCounting)
          histogram.recordValue(Math.max(1, Math.round((performance.now() - beganMs) * microsecondsPerMs)));
      } catch (error) {
        if (isCounting) failures++;
        firstFailure ??= error instanceof Error ? error.message : String(error);
        await sleep(failurePauseMs);
      }
    }
  };
  const running = writers.map(run);
  await sleep(options.warmUpMs, options.signal);
  const watch = new CpuWatch(pids);
  isCounting = true;
  const sinceMs = performance.now();
  await sleep(options.measureMs, options.signal);
  isCounting = false;
  const seconds = (performance.now() - sinceMs) / 1000;
  const { own, others } = watch.read();
  end.isOver = true;
  await Promise.all(running);
  return {
    perSecond: histogram.totalCount / seconds,
    p50Ms: histogram.getValueAtPercentile(50) / microsecondsPerMs,
    p99Ms: histogram.getValueAtPercentile(99) / microsecondsPerMs,
    maxMs: histogram.maxValue / microsecondsPerMs,
    failures,
    firstFailure,
    loadCpu: own,
    systemCpus: others,
  };
}

/** Resolves after `ms`, or early on Ctrl-C: a round that was cut short is thrown away by whoever asked. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
