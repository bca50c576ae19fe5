/**
 * `certify trend`: the newest run against the ones before it, with noise bands.
 *
 * The band is median ± 3 × 1.4826 × MAD (a robust three sigma; Leys et al., "Detecting outliers", 2013), never narrower than
 * 5 % of the median. Only runs of the same shape are compared; the others are counted, not mixed in: a run on another rf
 * would widen the band until nothing stood out.
 */
import { plainTable } from './list-runs.ts';
import type { RunReport } from './model.ts';
import { formatMetric, type Metric, type MetricUnit, runMetrics } from './run-metrics.ts';
import { formatShare, plural } from './text.ts';

export interface TrendRow {
  readonly name: string;
  readonly unit: MetricUnit;
  readonly latest: number;
  readonly median: number;
  readonly low: number;
  readonly high: number;
  readonly runs: number;
  readonly outside: 'worse' | 'better' | 'no';
  /** Oldest first, the latest run last. */
  readonly history: readonly number[];
}

export interface Trend {
  readonly latest: string;
  readonly compared: number;
  /** Runs left out because their shape differs, or they have no complete verdict. */
  readonly leftOut: number;
  readonly rows: readonly TrendRow[];
  /** "recovery.p99 is 2.1 × the median of 14 runs". */
  readonly sentences: readonly string[];
}

/** Earlier runs compared at most. */
export const trendRunsLimit = 30;
/** With fewer earlier runs there is no band. */
export const trendRunsMinimum = 4;
const bandWidths = 3 * 1.4826;
const bandFloor = 0.05;

const shownMetrics = [
  'acked.rate',
  'latency.p50',
  'latency.p99',
  'recovery.p50',
  'recovery.p99',
  'recovery.max',
  'healthy.p99',
  'failovers',
  'refusals',
  'exposed',
  'memory.peak',
  'ledger.bytes',
  'duration',
];

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** What must be equal for two runs to be compared. */
function shapeOf(report: RunReport): string {
  const { run, system } = report;
  return JSON.stringify([
    system.name,
    run.cluster,
    run.nodeCount,
    system.replicationFactor,
    system.partitions,
    run.preset,
    run.chaosLevel,
    run.plannedMs,
  ]);
}

const complete = (report: RunReport): boolean =>
  !report.preliminary && ['certified', 'violated', 'not-recovered', 'inconclusive'].includes(report.verdict.kind);

function rowOf(metric: Metric, earlier: readonly (number | null)[]): TrendRow | null {
  const values = earlier.filter((value) => value !== null);
  if (metric.value === null || values.length < trendRunsMinimum) return null;
  const median = medianOf(values);
  const deviation = medianOf(values.map((value) => Math.abs(value - median)));
  const half = Math.max(bandWidths * deviation, Math.abs(median) * bandFloor);
  const [low, high] = [Math.max(0, median - half), median + half];
  const over = metric.value > high;
  const outside =
    (!over && metric.value >= low) || metric.worse === 'neither'
      ? 'no'
      : over === (metric.worse === 'more')
        ? 'worse'
        : 'better';
  return {
    name: metric.name,
    unit: metric.unit,
    latest: metric.value,
    median,
    low,
    high,
    runs: values.length,
    outside,
    history: [...values, metric.value],
  };
}

function sentence(row: TrendRow): string {
  const factor = row.median === 0 ? null : row.latest / row.median;
  const compared =
    factor === null || !Number.isFinite(factor)
      ? `${formatMetric(row.latest, row.unit)}, against a median of ${formatMetric(row.median, row.unit)}`
      : factor >= 1.5
        ? `${factor.toFixed(1)} × the median`
        : `${formatShare(Math.abs(factor - 1))} ${factor > 1 ? 'above' : 'below'} the median`;
  return `${row.name} is ${compared} of ${plural(row.runs, 'run')} (${row.outside}; band ${formatMetric(row.low, row.unit)} to ${formatMetric(row.high, row.unit)})`;
}

/** `reports` newest first, as `listRuns` gives them. Null when there is no complete run. */
export function trendRuns(reports: readonly RunReport[]): Trend | null {
  const usable = reports.filter(complete);
  const [latest, ...others] = usable;
  if (latest === undefined) return null;
  const alike = others
    .filter((report) => shapeOf(report) === shapeOf(latest))
    .slice(0, trendRunsLimit)
    .toReversed();
  const tables = alike.map((report) => new Map(runMetrics(report).map((metric) => [metric.name, metric.value])));
  const metrics = runMetrics(latest).filter((metric) => shownMetrics.includes(metric.name));
  const rows = metrics.flatMap(
    (metric) =>
      rowOf(
        metric,
        tables.map((table) => table.get(metric.name) ?? null),
      ) ?? [],
  );
  return {
    latest: latest.run.runId,
    compared: alike.length,
    leftOut: reports.length - 1 - alike.length,
    rows,
    sentences: rows.filter((row) => row.outside !== 'no').map(sentence),
  };
}

const bars = '▁▂▃▄▅▆▇█';

/** Spans below this share of the largest value are drawn as if they were this wide: noise must not look like a mountain. */
const sparkFloor = 0.2;

/** A history as eight heights; "·" where the value is not finite. */
export function sparkline(values: readonly number[]): string {
  const finite = values.filter(Number.isFinite);
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const spread = Math.max(most - least, most * sparkFloor);
  const low = (least + most - spread) / 2;
  const height = (value: number): number =>
    spread === 0 ? 0 : Math.round(((value - low) / spread) * (bars.length - 1));
  return values.map((value) => (Number.isFinite(value) ? (bars[height(value)] ?? '') : '·')).join('');
}

export const trendColumns = ['', 'latest', 'median', 'band', 'runs', '', 'history'] as const;

export function trendTableRows(trend: Trend): string[][] {
  return trend.rows.map((row) => [
    row.name,
    formatMetric(row.latest, row.unit),
    formatMetric(row.median, row.unit),
    `${formatMetric(row.low, row.unit)} – ${formatMetric(row.high, row.unit)}`,
    String(row.runs),
    row.outside === 'no' ? '' : row.outside,
    sparkline(row.history),
  ]);
}

/** Says why there is no table when there is none. */
export function trendText(trend: Trend | null): string {
  if (trend === null) return 'No complete run to show a trend of.';
  const leftOut =
    trend.leftOut === 0
      ? ''
      : ` (${plural(trend.leftOut, 'run')} of another shape or without a complete verdict left out)`;
  const head = `${trend.latest} against ${plural(trend.compared, 'earlier run')} like it${leftOut}`;
  if (trend.rows.length === 0) return `${head}: at least ${trendRunsMinimum} are needed for a noise band.`;
  const verdict = trend.sentences.length === 0 ? ['Everything is within its noise band.'] : trend.sentences;
  return [head, ...verdict, '', plainTable(trendColumns, trendTableRows(trend))].join('\n');
}
