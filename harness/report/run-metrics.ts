/** Numbers of a run by name: what gates compare, and what diff and trend show. One registry for all three. */
import type { Recovery } from './model-timeline.ts';
import type { RunReport } from './model.ts';
import { findingKinds } from './model-finding.ts';
import { formatBytes, formatCount, formatDuration, formatShare } from './text.ts';

export const metricUnits = ['ms', 'bytes', 'count', 'per-second', 'share'] as const;
export type MetricUnit = (typeof metricUnits)[number];

export interface Metric {
  readonly name: string;
  readonly unit: MetricUnit;
  /** Null: this run has no such number; a gate on it then fails. */
  readonly value: number | null;
  /** Which way is worse, for trends. */
  readonly worse: 'more' | 'less' | 'neither';
  readonly doc: string;
}

type Side = 'firstAck' | 'healthy';

function quantiles(prefix: string, row: Recovery | undefined, side: Side, doc: string): Metric[] {
  const found = row?.[side] ?? null;
  const never = (row?.neverRecovered ?? 0) > 0;
  const metric = (name: string, value: number | undefined): Metric => ({
    name: `${prefix}.${name}`,
    unit: 'ms',
    value: value ?? null,
    worse: 'more',
    doc: `${doc}, ${name}`,
  });
  // A partition that never recovered is slower than any number.
  const upper = (value: number | undefined): number | undefined => (never ? Infinity : value);
  return [metric('p50', found?.p50Ms), metric('p99', upper(found?.p99Ms)), metric('max', upper(found?.maxMs))];
}

const fixedKinds = new Set(['all']);

function recoveryMetrics(report: RunReport): Metric[] {
  const all = report.recovery.find((row) => row.faultKind === 'all');
  return [
    ...quantiles('recovery', all, 'firstAck', 'fault to first acknowledged write'),
    ...quantiles('healthy', all, 'healthy', 'fault to Healthy'),
    ...report.recovery
      .filter((row) => !fixedKinds.has(row.faultKind))
      .flatMap((row) => [
        ...quantiles(`recovery.${row.faultKind}`, row, 'firstAck', `${row.faultKind} to first acknowledged write`),
        ...quantiles(`healthy.${row.faultKind}`, row, 'healthy', `${row.faultKind} to Healthy`),
      ]),
  ];
}

/** All numbers of a run. The names do not depend on the run, save those per fault kind. */
export function runMetrics(report: RunReport): Metric[] {
  const { counts, strength, performance } = report;
  const latency = performance.latencyMs;
  const count = (name: string, value: number | null, worse: Metric['worse'], doc: string): Metric => ({
    name,
    unit: 'count',
    value,
    worse,
    doc,
  });
  const millis = (name: string, value: number | null, doc: string): Metric => ({
    name,
    unit: 'ms',
    value,
    worse: 'more',
    doc,
  });
  const totals = new Map(report.findings.totals.map((row) => [row.kind, row.count]));
  const refused = report.series.refusals.flatMap((row) => row.counts).reduce((sum, value) => sum + value, 0);
  return [
    {
      name: 'acked.rate',
      unit: 'per-second',
      value: performance.ackedPerSecond,
      worse: 'less',
      doc: 'acknowledged writes per second',
    },
    millis('latency.p50', latency?.p50 ?? null, 'operation latency, p50'),
    millis('latency.p99', latency?.p99 ?? null, 'operation latency, p99'),
    millis('latency.p999', latency?.p999 ?? null, 'operation latency, p99.9'),
    millis('latency.max', latency?.max ?? null, 'operation latency, largest'),
    ...recoveryMetrics(report),
    count('acked', counts.acknowledgedWrites, 'less', 'acknowledged writes'),
    count('failovers', strength.failovers, 'neither', 'failovers'),
    count('handoffs', strength.handoffs, 'neither', 'handoffs'),
    count('judged', strength.judged, 'less', 'acknowledged writes judged'),
    count('exposed', strength.exposed, 'less', 'judged writes exposed to a failover'),
    count('superseded', strength.superseded, 'more', 'writes without evidence'),
    count('refusals', refused, 'more', 'refusals seen by clients'),
    count('readback.missing', counts.readBack.expected - counts.readBack.done, 'more', 'keys not read back'),
    count('replicas.missing', counts.replicas.asked - counts.replicas.answered, 'more', 'replica answers missing'),
    count(
      'faults.confirmed',
      report.faults.filter((fault) => fault.outcome === 'confirmed').length,
      'less',
      'faults confirmed',
    ),
    count(
      'faults.skipped',
      report.faults.filter((fault) => fault.outcome === 'skipped').length,
      'more',
      'faults skipped',
    ),
    {
      name: 'faults.overlap',
      unit: 'share',
      value: report.overlapShare,
      worse: 'less',
      doc: 'share of faults that overlap',
    },
    count('findings', report.findings.total, 'more', 'findings of every kind'),
    ...findingKinds.map((kind) => count(`findings.${kind}`, totals.get(kind) ?? 0, 'more', `findings: ${kind}`)),
    count('lost', totals.get('lost') ?? 0, 'more', 'acknowledged writes lost'),
    millis('duration', report.run.durationMs, 'length of the run'),
    {
      name: 'memory.peak',
      unit: 'bytes',
      value: report.peakMemoryBytes,
      worse: 'more',
      doc: 'peak memory of the harness',
    },
    { name: 'ledger.bytes', unit: 'bytes', value: report.ledger.bytes, worse: 'neither', doc: 'size of the ledger' },
  ];
}

/** A metric's value for people. */
export function formatMetric(value: number | null, unit: MetricUnit): string {
  if (value === null) return 'none';
  if (!Number.isFinite(value)) return 'never';
  switch (unit) {
    case 'ms':
      return formatDuration(value);
    case 'bytes':
      return formatBytes(value);
    case 'share':
      return formatShare(value);
    case 'per-second':
      return `${formatCount(value)}/s`;
    case 'count':
      return formatCount(value);
  }
}
