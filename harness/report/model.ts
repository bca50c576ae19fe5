/**
 * The content of `report.json`: everything that the report says about a run, as plain JSON.
 *
 * Owns the vocabulary shared by the harness (which fills it from ledger and judgement) and every renderer (which only
 * reads it). Invariant: a renderer needs nothing but this object, so any saved run can be rendered again. If a field lied
 * here, a red run could be shown green; hence no defaults, no optional verdict, and strict objects. Source: DESIGN §9, issue 7.
 *
 * Times are milliseconds since the start of the run (`run.startedAt`), fractions allowed, unless a name says otherwise.
 */
import { z } from 'zod';
import {
  coverageShape,
  epochChangeShape,
  faultShape,
  nodeLaneShape,
  recoveryShape,
  seriesShape,
} from './model-timeline.ts';
import { causeGroupShape, findingKindShape, findingShape } from './model-finding.ts';

/** Raised when a field changes its meaning or goes away; readers refuse what they do not know. */
export const reportFormatVersion = 1;

const count = z.int().nonnegative();
const millis = z.number().nonnegative();

/** How a run ended; each has one exit code (DESIGN §9). */
export const verdictKinds = [
  'certified',
  'violated',
  'not-recovered',
  'inconclusive',
  'interrupted',
  'environment',
  'harness-fault',
] as const;

const verdictShape = z.strictObject({
  kind: z.enum(verdictKinds),
  exitCode: z.int(),
  /** One sentence for people; see `composeHeadline`. */
  headline: z.string(),
  /** What stands between this run and a certificate; empty when certified. One sentence each. */
  missing: z.array(z.string()),
  contract: z.enum(['durable', 'declared']),
  /** Losses that the declared contract permits; 0 under `durable`. */
  permittedLosses: count,
  /** Other findings that the declared contract permits; 0 under `durable`. */
  permittedAnomalies: count,
  /** A signal's name when the run was cut short. */
  interruptedBy: z.string().nullable(),
});

const strengthShape = z.strictObject({
  /** Upper bound (95 %) on the share of failovers that lose an acknowledged write, 3/n; null when nothing can be claimed. */
  perFailoverBound95: z.number().positive().nullable(),
  /** The same with all failovers of one moment counted as one: nearer to independent, so the weaker and more honest claim. */
  perIncidentBound95: z.number().positive().nullable(),
  /** The same per judged write; optimistic, since writes of one failover share its fate. */
  perWriteBound95: z.number().positive().nullable(),
  failovers: count,
  /** Failovers grouped by moment: one dead node moves many partitions at once. */
  incidents: count,
  handoffs: count,
  /** Acknowledged writes on which there is evidence. */
  judged: count,
  /** Judged writes that lived through at least one failover of their partition: the denominator. */
  exposed: count,
  /** Replaced before anything looked: no evidence either way. */
  superseded: count,
  neverRead: count,
});

const countsShape = z.strictObject({
  operations: z.array(z.strictObject({ kind: z.string(), ok: count, fail: count, info: count })),
  acknowledgedWrites: count,
  sessions: count,
  keys: count,
  retiredKeys: count,
  readBack: z.strictObject({ expected: count, done: count }),
  replicas: z.strictObject({ asked: count, answered: count }),
});

const runShape = z.strictObject({
  runId: z.string(),
  /** ISO 8601, UTC. */
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  durationMs: millis,
  plannedMs: millis,
  seed: z.string(),
  preset: z.string(),
  chaosLevel: z.string(),
  cluster: z.enum(['docker', 'process', 'sim']),
  nodeCount: count,
  /** The command that plays this run's schedule again. */
  replay: z.string(),
});

const systemShape = z.strictObject({
  name: z.string(),
  /** Image with digest, build folder or command under test. */
  build: z.string(),
  /** Read from the live cluster, not from flags. */
  replicationFactor: count,
  minInSync: count,
  partitions: count,
  /** What an acknowledgement promises, one sentence. */
  contract: z.string(),
});

const hostShape = z.strictObject({
  name: z.string(),
  os: z.string(),
  kernel: z.string(),
  cpus: count,
  memoryBytes: count,
  engine: z.string().nullable(),
});

const namedShape = z.strictObject({ name: z.string(), value: z.string() });

/** `broken` fails a run; `unknown` is missing evidence and never a pass; `not-tested` is named among the limits. */
export const promiseOutcomes = ['held', 'broken', 'unknown', 'not-tested'] as const;

const promiseShape = z.strictObject({
  id: z.string(),
  title: z.string(),
  outcome: z.enum(promiseOutcomes),
  detail: z.string(),
});

const canaryShape = z.strictObject({
  outcome: z.enum(['caught', 'missed', 'not-run']),
  checks: z.array(
    z.strictObject({
      /** What was forged or deleted. */
      name: z.string(),
      kind: findingKindShape,
      planted: count,
      reported: count,
      /** Where it must be seen: live check, read-back, autopsy, shadow history. */
      where: z.string(),
    }),
  ),
});

const gateShape = z.strictObject({
  expression: z.string(),
  /** `failed`: the condition holds, so the run fails. `unknown`: a number it needs is missing; fails too. */
  outcome: z.enum(['passed', 'failed', 'unknown']),
  detail: z.string(),
});

const performanceShape = z.strictObject({
  ackedPerSecond: z.number().nonnegative(),
  latencyMs: z.strictObject({ p50: millis, p99: millis, p999: millis, max: millis }).nullable(),
});

const findingsShape = z.strictObject({
  /** All findings, before the cap. */
  total: count,
  totals: z.array(z.strictObject({ kind: findingKindShape, count })),
  groups: z.array(causeGroupShape),
  /** At most the cap; every group keeps some. */
  items: z.array(findingShape),
});

export const runReportShape = z
  .strictObject({
    formatVersion: z.literal(reportFormatVersion),
    /** True for the report written at the first signal, before the judgement is complete. */
    preliminary: z.boolean(),
    run: runShape,
    verdict: verdictShape,
    strength: strengthShape,
    counts: countsShape,
    performance: performanceShape,
    system: systemShape,
    host: hostShape,
    settings: z.array(namedShape),
    versions: z.array(namedShape),
    phases: z.array(z.strictObject({ name: z.string(), fromMs: millis, toMs: millis })),
    series: seriesShape,
    faults: z.array(faultShape),
    /** Share (0 … 1) of confirmed faults that overlapped another or hit a partition not yet Healthy. */
    overlapShare: z.number().min(0).max(1),
    epochs: z.array(epochChangeShape),
    nodes: z.array(nodeLaneShape),
    findings: findingsShape,
    recovery: z.array(recoveryShape),
    coverage: coverageShape,
    canary: canaryShape,
    promises: z.array(promiseShape),
    gates: z.array(gateShape),
    /** What this run did not test, one sentence each. */
    limits: z.array(z.string()),
    ledger: z.strictObject({
      bytes: count,
      gaps: z.array(z.strictObject({ fromMs: millis, toMs: millis, reason: z.string() })),
    }),
    peakMemoryBytes: count,
  })
  .meta({ id: 'RunReport', title: 'Report of a certification run' });

export type RunReport = z.infer<typeof runReportShape>;
export type VerdictKind = RunReport['verdict']['kind'];
export type Strength = RunReport['strength'];
export type RunPromise = RunReport['promises'][number];
export type GateResult = RunReport['gates'][number];

/** Parses what stands in a report.json. Throws an Error of one sentence when it is no report of this format. */
export function parseReport(value: unknown): RunReport {
  const version = (value as { formatVersion?: unknown } | null)?.formatVersion;
  if (version !== reportFormatVersion) {
    throw new Error(`not a report of format ${reportFormatVersion} (formatVersion is ${JSON.stringify(version)})`);
  }
  const result = runReportShape.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new Error(`report is malformed at ${issue?.path.join('.') ?? '?'}: ${issue?.message ?? 'unknown problem'}`);
}
