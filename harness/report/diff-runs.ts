/** `certify diff A B`: what changed between two runs: metrics, then what in their settings makes them hard to compare. */
import { plainTable } from './list-runs.ts';
import type { RunReport } from './model.ts';
import { formatMetric, runMetrics } from './run-metrics.ts';
import { formatShare, shortened } from './text.ts';

export interface RunDiff {
  /** What differs in the set-up; empty when the runs are alike. */
  readonly setup: readonly { readonly name: string; readonly before: string; readonly after: string }[];
  readonly verdict: { readonly before: string; readonly after: string };
  readonly metrics: readonly {
    readonly name: string;
    readonly before: string;
    readonly after: string;
    /** (after − before) / before; null where that says nothing. */
    readonly change: number | null;
    readonly judgement: 'worse' | 'better' | 'same' | 'changed';
  }[];
}

/** Changes below this share are called the same: two runs are never equal. */
const sameWithin = 0.05;

function setupOf(report: RunReport): Map<string, string> {
  const { run, system, host } = report;
  return new Map([
    ['system', system.name],
    ['build', system.build],
    ['cluster', run.cluster],
    ['nodes', String(run.nodeCount)],
    ['rf', String(system.replicationFactor)],
    ['min in sync', String(system.minInSync)],
    ['partitions', String(system.partitions)],
    ['preset', run.preset],
    ['chaos level', run.chaosLevel],
    ['seed', run.seed],
    ['contract', report.verdict.contract],
    ['host', `${host.name}, ${host.cpus} cpus`],
    // A simulated run keeps its replay command as a setting; it says nothing that the others do not.
    ...report.settings.flatMap((row): [string, string][] => (row.name === 'replay' ? [] : [[row.name, row.value]])),
    ...report.versions.map((row): [string, string] => [`version of ${row.name}`, row.value]),
  ]);
}

/** Compares two reports; metrics that are nought or missing in both are left out. */
export function diffRuns(before: RunReport, after: RunReport): RunDiff {
  const [setupBefore, setupAfter] = [setupOf(before), setupOf(after)];
  const names = new Set([...setupBefore.keys(), ...setupAfter.keys()]);
  const setup = [...names].flatMap((name) => {
    const [a, b] = [setupBefore.get(name) ?? 'unset', setupAfter.get(name) ?? 'unset'];
    return a === b ? [] : [{ name, before: a, after: b }];
  });
  const metricsBefore = new Map(runMetrics(before).map((metric) => [metric.name, metric]));
  const metricsAfter = new Map(runMetrics(after).map((metric) => [metric.name, metric]));
  const metrics: RunDiff['metrics'][number][] = [];
  for (const name of new Set([...metricsBefore.keys(), ...metricsAfter.keys()])) {
    const metric = metricsAfter.get(name) ?? metricsBefore.get(name);
    const a = metricsBefore.get(name)?.value ?? null;
    const b = metricsAfter.get(name)?.value ?? null;
    if (metric === undefined || (!a && !b)) continue;
    const change = a !== null && b !== null && a !== 0 && Number.isFinite(a) && Number.isFinite(b) ? (b - a) / a : null;
    const same = a === b || (change !== null && Math.abs(change) < sameWithin);
    const comparable = a !== null && b !== null && metric.worse !== 'neither';
    const judgement = same
      ? 'same'
      : !comparable
        ? 'changed'
        : b > a === (metric.worse === 'more')
          ? 'worse'
          : 'better';
    metrics.push({
      name,
      before: formatMetric(a, metric.unit),
      after: formatMetric(b, metric.unit),
      change,
      judgement,
    });
  }
  return { setup, verdict: { before: before.verdict.kind, after: after.verdict.kind }, metrics };
}

const signed = (change: number | null): string =>
  change === null ? '' : `${change < 0 ? '−' : '+'}${formatShare(Math.abs(change))}`;

/** The rows shown to people: the verdict, then what was measured, then what was set up otherwise. */
export function diffRows(diff: RunDiff): string[][] {
  return [
    [
      'verdict',
      diff.verdict.before,
      diff.verdict.after,
      '',
      diff.verdict.before === diff.verdict.after ? 'same' : 'changed',
    ],
    ...diff.metrics.map((row) => [row.name, row.before, row.after, signed(row.change), row.judgement]),
    ...diff.setup.map((row) => [row.name, shortened(row.before, 60), shortened(row.after, 60), '', 'set-up differs']),
  ];
}

export const diffColumns = ['', 'before', 'after', 'change', ''] as const;

export const diffTable = (diff: RunDiff): string => plainTable(diffColumns, diffRows(diff));
