/**
 * Gates of a job's own: `--fail-if 'recovery.p99>5s'`.
 *
 *   gate := clause ('or' clause)*      clause := comparison ('and' comparison)*
 *   comparison := metric ('>' | '>=' | '<' | '<=' | '=' | '!=') number [unit]
 *
 * `||` and `&&` stand for `or` and `and`. A gate whose number is missing is `unknown` and fails the run: a renamed metric or
 * an empty table must never turn a gate green. All errors are usage errors, one sentence each.
 */
import { present } from '../../lib/assert.ts';
import { emptyReport } from './empty-report.ts';
import type { GateResult, RunReport } from './model.ts';
import { formatMetric, type Metric, type MetricUnit, metricUnits, runMetrics } from './run-metrics.ts';

/** A gate that cannot be understood; the message is for the user. */
export class GateError extends Error {
  override readonly name = 'GateError';
}

const operators = ['>=', '<=', '!=', '==', '>', '<', '='] as const;
type Operator = (typeof operators)[number];

export interface Comparison {
  readonly metric: string;
  readonly operator: Operator;
  readonly value: number;
  /** Null: a bare number, taken in the metric's own unit. */
  readonly unit: MetricUnit | null;
}

export interface Gate {
  readonly expression: string;
  /** Fails the run when every comparison of any clause holds. */
  readonly clauses: readonly (readonly Comparison[])[];
}

const units: Readonly<Record<string, readonly [MetricUnit, number]>> = {
  ms: ['ms', 1],
  s: ['ms', 1000],
  m: ['ms', 60_000],
  min: ['ms', 60_000],
  h: ['ms', 3_600_000],
  b: ['bytes', 1],
  kb: ['bytes', 1e3],
  mb: ['bytes', 1e6],
  gb: ['bytes', 1e9],
  kib: ['bytes', 2 ** 10],
  mib: ['bytes', 2 ** 20],
  gib: ['bytes', 2 ** 30],
  '%': ['share', 0.01],
  '/s': ['per-second', 1],
};

/** Longest expression accepted. */
const expressionLimit = 500;

function parseComparison(text: string): Comparison {
  const found = /^([a-z][a-z0-9.-]*)\s*(>=|<=|!=|==|>|<|=)\s*(\d+(?:\.\d+)?)\s*([a-z%/]*)$/i.exec(text.trim());
  if (found === null) {
    throw new GateError(`cannot read the gate '${text.trim()}': write it like recovery.p99>5s`);
  }
  const [, metric, operator, number, suffix] = found;
  const unit = suffix === '' || suffix === undefined ? null : units[suffix.toLowerCase()];
  if (unit === undefined)
    throw new GateError(`unknown unit '${suffix}' in '${text.trim()}': use ms, s, m, h, kB, MB, GB, % or /s`);
  return {
    metric: present(metric, 'metric'),
    operator: present(operator, 'operator') as Operator,
    value: Number(number) * (unit === null ? 1 : unit[1]),
    unit: unit === null ? null : unit[0],
  };
}

/** Parses one `--fail-if`. Throws {@link GateError}. */
export function parseGate(expression: string): Gate {
  if (expression.trim() === '') throw new GateError('a gate is empty: write it like recovery.p99>5s');
  if (expression.length > expressionLimit) throw new GateError(`a gate is longer than ${expressionLimit} characters`);
  const clauses = expression
    .split(/\s+or\s+|\|\|/i)
    .map((clause) => clause.split(/\s+and\s+|&&/i).map(parseComparison));
  return { expression: expression.trim(), clauses };
}

const holds = (left: number, operator: Operator, right: number): boolean => {
  switch (operator) {
    case '>':
      return left > right;
    case '>=':
      return left >= right;
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '=':
    case '==':
      return left === right;
    case '!=':
      return left !== right;
  }
};

/** Fault kinds come and go with the run; every other name is known beforehand. */
const perKind = /^(recovery|healthy)\.[a-z0-9-]+\.(p50|p99|max)$/;

type Judged = { readonly outcome: 'holds' | 'fails' | 'unknown'; readonly detail: string };

function judge(comparison: Comparison, metrics: ReadonlyMap<string, Metric>): Judged {
  const metric = metrics.get(comparison.metric);
  if (metric === undefined || metric.value === null) {
    return { outcome: 'unknown', detail: `this run has no ${comparison.metric}` };
  }
  const detail = `${metric.name} is ${formatMetric(metric.value, metric.unit)}`;
  return { outcome: holds(metric.value, comparison.operator, comparison.value) ? 'holds' : 'fails', detail };
}

/** `failed` when the expression holds, `unknown` when a missing number could make it hold. */
export function evaluateGate(gate: Gate, report: RunReport): GateResult {
  const metrics = new Map(runMetrics(report).map((metric) => [metric.name, metric]));
  const details = new Set<string>();
  let outcome: GateResult['outcome'] = 'passed';
  for (const clause of gate.clauses) {
    const judged = clause.map((comparison) => judge(comparison, metrics));
    for (const one of judged) details.add(one.detail);
    if (judged.every((one) => one.outcome === 'holds')) outcome = 'failed';
    else if (outcome === 'passed' && judged.every((one) => one.outcome !== 'fails')) outcome = 'unknown';
  }
  return { expression: gate.expression, outcome, detail: [...details].join('; ') };
}

/** Checks names and units before a run of hours starts. Throws {@link GateError}. */
export function checkGate(gate: Gate): void {
  const known = runMetrics(emptyReport());
  const byName = new Map(known.map((metric) => [metric.name, metric]));
  for (const { metric, unit } of gate.clauses.flat()) {
    const found = byName.get(metric);
    if (found === undefined && !perKind.test(metric)) {
      throw new GateError(
        `unknown metric '${metric}' in a gate; known are ${known
          .map((one) => one.name)
          .filter((name) => !perKind.test(name))
          .join(', ')}`,
      );
    }
    const expected = found?.unit ?? 'ms';
    if (unit !== null && unit !== expected)
      throw new GateError(`'${metric}' is a ${unitNames[expected]}, not a ${unitNames[unit]}`);
  }
}

const unitNames: Readonly<Record<(typeof metricUnits)[number], string>> = {
  ms: 'duration',
  bytes: 'size',
  count: 'count',
  'per-second': 'rate',
  share: 'share',
};
