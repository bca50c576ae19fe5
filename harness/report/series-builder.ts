/**
 * Builds the report's series from operations as they stream by, in any order, in bounded memory.
 *
 * When a run outgrows the bucket bound, neighbours are merged and the buckets get twice as long: counts add up, histograms
 * merge, maxima stay maxima. If merging averaged, the one stall of the night could vanish from the chart.
 */
import { build, type Histogram } from 'hdr-histogram-js';
import type { Series } from './model-timeline.ts';
import { assert } from '../../lib/assert.ts';

/** Buckets in a finished series at most. */
export const bucketLimit = 2_400;
const firstBucketMs = 100;
const microseconds = 1000;
/** Latencies above this are counted as this: about 12 days. */
const longestMicroseconds = 2 ** 40;

export interface SeriesOperation {
  readonly invokedAtMs: number;
  /** Null: never ended, or unknown; it counts as in flight to the end of the run. */
  readonly endedAtMs: number | null;
  /** Acknowledged write: counts in `ackedPerSecond`. */
  readonly acknowledgedWrite: boolean;
  /** Status of a refusal as the client saw it; null for none. */
  readonly refusal: string | null;
}

interface Bucket {
  acked: number;
  latency: Histogram | null;
  maxMs: number;
  started: number;
  ended: number;
  refusals: Map<string, number>;
}

const emptyBucket = (): Bucket => ({ acked: 0, latency: null, maxMs: 0, started: 0, ended: 0, refusals: new Map() });

const newHistogram = (): Histogram =>
  build({
    bitBucketSize: 32,
    autoResize: true,
    lowestDiscernibleValue: 1,
    highestTrackableValue: 2,
    numberOfSignificantValueDigits: 2,
  });

function mergeInto(target: Bucket, other: Bucket): void {
  target.acked += other.acked;
  target.maxMs = Math.max(target.maxMs, other.maxMs);
  target.started += other.started;
  target.ended += other.ended;
  if (target.latency === null) target.latency = other.latency;
  else if (other.latency !== null) target.latency.add(other.latency);
  for (const [status, count] of other.refusals) target.refusals.set(status, (target.refusals.get(status) ?? 0) + count);
}

export class SeriesBuilder {
  private bucketMs = firstBucketMs;
  private buckets: Bucket[] = [];
  private readonly limit: number;

  constructor(limit = bucketLimit) {
    assert(limit >= 2, 'a series needs at least two buckets');
    this.limit = limit;
  }

  private bucketAt(atMs: number): Bucket {
    assert(atMs >= 0 && Number.isFinite(atMs), 'series times count from the start of the run');
    while (Math.floor(atMs / this.bucketMs) >= this.limit) this.halve();
    const index = Math.floor(atMs / this.bucketMs);
    while (this.buckets.length <= index) this.buckets.push(emptyBucket());
    return this.buckets[index] as Bucket;
  }

  private halve(): void {
    const merged: Bucket[] = [];
    for (const [index, bucket] of this.buckets.entries()) {
      if (index % 2 === 0) merged.push(bucket);
      else mergeInto(merged.at(-1) as Bucket, bucket);
    }
    this.buckets = merged;
    this.bucketMs *= 2;
  }

  /** An operation stands in the bucket of its end (its start, when it never ended). */
  add(operation: SeriesOperation): void {
    this.bucketAt(operation.invokedAtMs).started++;
    const bucket = this.bucketAt(operation.endedAtMs ?? operation.invokedAtMs);
    if (operation.refusal !== null) {
      bucket.refusals.set(operation.refusal, (bucket.refusals.get(operation.refusal) ?? 0) + 1);
    }
    if (operation.endedAtMs === null) return;
    bucket.ended++;
    if (operation.acknowledgedWrite) bucket.acked++;
    const latencyMs = Math.max(0, operation.endedAtMs - operation.invokedAtMs);
    bucket.maxMs = Math.max(bucket.maxMs, latencyMs);
    bucket.latency ??= newHistogram();
    bucket.latency.recordValue(Math.min(longestMicroseconds, Math.max(1, Math.round(latencyMs * microseconds))));
  }

  /** The series so far, up to `untilMs`. In flight is the number open at the end of each bucket. */
  build(untilMs: number): Series {
    if (untilMs > 0) this.bucketAt(untilMs - Number.EPSILON * untilMs);
    const statuses = [...new Set(this.buckets.flatMap((bucket) => [...bucket.refusals.keys()]))].toSorted();
    const rounded = (value: number): number => Number(value.toFixed(2));
    const quantile = (bucket: Bucket, percent: number): number | null =>
      bucket.latency === null
        ? null
        : rounded(Math.min(bucket.maxMs, bucket.latency.getValueAtPercentile(percent) / microseconds));
    let open = 0;
    return {
      fromMs: 0,
      bucketMs: this.bucketMs,
      ackedPerSecond: this.buckets.map((bucket) => rounded(bucket.acked / (this.bucketMs / 1000))),
      p50Ms: this.buckets.map((bucket) => quantile(bucket, 50)),
      p99Ms: this.buckets.map((bucket) => quantile(bucket, 99)),
      maxMs: this.buckets.map((bucket) => (bucket.latency === null ? null : rounded(bucket.maxMs))),
      inFlight: this.buckets.map((bucket) => (open += bucket.started - bucket.ended)),
      refusals: statuses.map((status) => ({
        status,
        counts: this.buckets.map((bucket) => bucket.refusals.get(status) ?? 0),
      })),
    };
  }
}
