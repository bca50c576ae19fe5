/** `zaris bench`: closed-loop writers or readers for a while; operations per second and latencies. It measures, it certifies nothing. */
import { build, type Histogram } from 'hdr-histogram-js';
import type { ZarisClient } from '../client/client.ts';
import { maxValueBytes } from '../model/limits.ts';
import { wholeNumber } from './arguments.ts';
import type { CommonArguments } from './connection.ts';
import { connectClient } from './connection.ts';

export interface BenchArguments extends CommonArguments {
  readonly operation: 'put' | 'get' | 'incr';
  readonly writers: number;
  readonly seconds: number;
  readonly bytes: number;
  readonly keys: number;
  /** One client (and connection per node) per writer instead of one for all. */
  readonly connectionEach: boolean;
}

export interface BenchResult {
  readonly operation: string;
  readonly writers: number;
  readonly operations: number;
  readonly failures: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

const warmUpMs = 500;
const maxWriters = 10_000;
const maxSeconds = 86_400;
const maxKeys = 1_000_000_000;
const microsecondsPerMs = 1000;

async function writer(
  client: ZarisClient,
  index: number,
  args: BenchArguments,
  histogram: Histogram,
  untilMs: number,
): Promise<[number, number]> {
  const value = 'v'.repeat(args.bytes);
  let operations = 0;
  let failures = 0;
  const startMs = performance.now();
  for (let round = 0; performance.now() < untilMs; round++) {
    const key = `bench-${args.operation}-${(index * 7919 + round) % args.keys}`;
    const beganMs = performance.now();
    const result =
      args.operation === 'put'
        ? await client.put(key, value)
        : args.operation === 'get'
          ? await client.get(key)
          : await client.add(key, 1);
    if (beganMs - startMs < warmUpMs) continue;
    operations++;
    if (!result.isSuccess && result.status !== 'NotFound') failures++;
    histogram.recordValue(Math.round((performance.now() - beganMs) * microsecondsPerMs));
  }
  return [operations, failures];
}

/** Runs the bench against the cluster of the arguments. */
export async function runBench(args: BenchArguments): Promise<BenchResult> {
  wholeNumber('--writers', args.writers, 1, maxWriters);
  wholeNumber('--seconds', args.seconds, 1, maxSeconds);
  wholeNumber('--bytes', args.bytes, 0, maxValueBytes);
  wholeNumber('--keys', args.keys, 1, maxKeys);
  const count = args.connectionEach ? args.writers : 1;
  const clients = await Promise.all(Array.from({ length: count }, () => connectClient(args)));
  try {
    const histogram = build({
      lowestDiscernibleValue: 1,
      highestTrackableValue: 60_000_000,
      numberOfSignificantValueDigits: 3,
    });
    const untilMs = performance.now() + warmUpMs + args.seconds * 1000;
    const counts = await Promise.all(
      Array.from({ length: args.writers }, (_, index) =>
        writer(clients[index % count] as ZarisClient, index, args, histogram, untilMs),
      ),
    );
    const operations = counts.reduce((sum, [done]) => sum + done, 0);
    return {
      operation: args.operation,
      writers: args.writers,
      operations,
      failures: counts.reduce((sum, [, failed]) => sum + failed, 0),
      perSecond: Math.round(operations / args.seconds),
      p50Ms: histogram.getValueAtPercentile(50) / microsecondsPerMs,
      p99Ms: histogram.getValueAtPercentile(99) / microsecondsPerMs,
      maxMs: histogram.maxValue / microsecondsPerMs,
    };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}
