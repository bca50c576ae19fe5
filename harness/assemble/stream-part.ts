/**
 * One pass over every operation of a run: series, latencies, counts, and the first acknowledged write of each partition after
 * each fault. Memory does not grow with the number of operations.
 */
import { build, type Histogram } from 'hdr-histogram-js';
import type { OperationOutline } from '../../ledger/operation-outline.ts';
import type { EpochChangeRow } from '../../ledger/rows.ts';
import type { Fault, Recovery } from '../report/model-timeline.ts';
import type { RunReport } from '../report/model.ts';
import { SeriesBuilder } from '../report/series-builder.ts';
import type { FaultAcks } from './fault-acks.ts';
import type { Reach } from './reach.ts';

const microseconds = 1_000;

export class StreamPart {
  private readonly series = new SeriesBuilder();
  private readonly latency: Histogram = newHistogram();
  private longestMs = 0;
  /** Last instant that any operation tells, ms. */
  lastMs = 0;
  private acknowledgedWrites = 0;
  private readonly counts = new Map<string, { ok: number; fail: number; info: number }>();
  private readonly reach: Reach;
  private readonly acks: FaultAcks;

  constructor(reach: Reach, acks: FaultAcks) {
    this.reach = reach;
    this.acks = acks;
  }

  /** Takes in one operation; any order. */
  add(operation: OperationOutline): void {
    const { f, outcome, invokeNs, returnNs, partition } = operation;
    let count = this.counts.get(f);
    if (count === undefined) this.counts.set(f, (count = { ok: 0, fail: 0, info: 0 }));
    count[outcome]++;
    const acknowledgedWrite = outcome === 'ok' && f !== 'read';
    const endedAtMs = returnNs === null ? null : returnNs / 1e6;
    this.lastMs = Math.max(this.lastMs, endedAtMs ?? invokeNs / 1e6);
    this.series.add({ invokedAtMs: invokeNs / 1e6, endedAtMs, acknowledgedWrite, refusal: refusalOf(operation) });
    if (!acknowledgedWrite || returnNs === null) return;
    this.acknowledgedWrites++;
    this.acks.acknowledged(invokeNs / 1e6, returnNs / 1e6);
    const durationMs = (returnNs - invokeNs) / 1e6;
    this.longestMs = Math.max(this.longestMs, durationMs);
    this.latency.recordValue(Math.max(1, Math.round(durationMs * microseconds)));
    if (partition !== null) this.reach.acknowledged(partition, invokeNs / 1e6, returnNs / 1e6);
  }

  operations(): RunReport['counts']['operations'] {
    return [...this.counts].map(([kind, count]) => ({ kind, ...count }));
  }

  get writes(): number {
    return this.acknowledgedWrites;
  }

  seriesUntil(endMs: number): RunReport['series'] {
    return this.series.build(endMs);
  }

  /** Rate and latencies of acknowledged writes over the load. */
  performance(loadMs: number): RunReport['performance'] {
    const at = (percent: number): number =>
      Math.min(this.longestMs, this.latency.getValueAtPercentile(percent) / microseconds);
    const latencyMs =
      this.acknowledgedWrites === 0 ? null : { p50: at(50), p99: at(99), p999: at(99.9), max: this.longestMs };
    return { ackedPerSecond: loadMs > 0 ? (this.acknowledgedWrites * 1_000) / loadMs : 0, latencyMs };
  }
}

const newHistogram = (): Histogram =>
  build({
    bitBucketSize: 32,
    autoResize: true,
    lowestDiscernibleValue: 1,
    highestTrackableValue: 2,
    numberOfSignificantValueDigits: 3,
  });

/** The status of a refusal or of an unknown outcome, without its details. */
function refusalOf(operation: OperationOutline): string | null {
  const { outcome, why, error } = operation;
  if (outcome === 'ok' || (outcome === 'fail' && why === 'condition')) return null;
  const status = /^[A-Za-z-]+/.exec(error ?? '')?.[0] ?? 'unknown';
  return outcome === 'info' ? `${status} (in doubt)` : status;
}

/** Recovery times by fault kind, and over all. */
export function recoveryOf(faults: readonly Fault[], reach: Reach, changes: readonly EpochChangeRow[]): Recovery[] {
  const confirmed = faults.filter((fault) => fault.outcome === 'confirmed');
  const ascending = changes.toSorted((a, b) => a.atNs - b.atNs);
  const kinds = [...new Set(confirmed.map((fault) => fault.kind))].toSorted();
  const rows = kinds.map((kind) =>
    recoveryRow(
      kind,
      confirmed.filter((fault) => fault.kind === kind),
      reach,
      ascending,
    ),
  );
  return confirmed.length === 0 ? [] : [recoveryRow('all', confirmed, reach, ascending), ...rows];
}

function recoveryRow(
  faultKind: string,
  faults: readonly Fault[],
  reach: Reach,
  changes: readonly EpochChangeRow[],
): Recovery {
  const firstAck: number[] = [];
  const healthy: number[] = [];
  let neverRecovered = 0;
  for (const fault of faults) {
    const acks = reach.firstAcks(fault.id);
    firstAck.push(...acks.filter(Number.isFinite));
    neverRecovered += acks.filter((ms) => !Number.isFinite(ms)).length;
    healthy.push(...healthyAgain(fault, changes));
  }
  return {
    faultKind,
    faults: faults.length,
    firstAck: quantiles(firstAck),
    healthy: quantiles(healthy),
    neverRecovered,
  };
}

/**
 * For each partition that left Healthy while the fault was open: how long after the injection it was Healthy again. `changes` ascend by
 * time.
 */
function healthyAgain(fault: Fault, changes: readonly EpochChangeRow[]): number[] {
  const { injectedMs, healedMs } = fault.stages;
  if (injectedMs === null) return [];
  const endMs = healedMs ?? Infinity;
  const hurt = new Set<number>();
  const times: number[] = [];
  for (let place = firstFrom(changes, injectedMs); place < changes.length; place++) {
    const change = changes[place] as EpochChangeRow;
    const atMs = change.atNs / 1e6;
    if (atMs > endMs && hurt.size === 0) break;
    if (change.partition === null) continue;
    if (change.health !== 'Healthy') {
      if (atMs <= endMs) hurt.add(change.partition);
    } else if (hurt.delete(change.partition)) times.push(atMs - injectedMs);
  }
  return times;
}

/** Place of the first change at `fromMs` or later. */
function firstFrom(changes: readonly EpochChangeRow[], fromMs: number): number {
  let low = 0;
  let high = changes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((changes[middle] as EpochChangeRow).atNs / 1e6 < fromMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

function quantiles(values: number[]): Recovery['firstAck'] {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] as number;
  return { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: sorted.at(-1) as number };
}
