/**
 * The part of the report that lies on the time axis: series, faults, epoch changes, node lanes, and what is drawn from
 * them (recovery, coverage). Series may be down-sampled; faults and epoch changes never are.
 */
import { z } from 'zod';

const count = z.int().nonnegative();
const millis = z.number().nonnegative();
const column = z.array(z.number().nullable());

/** Columns of equal length; bucket i covers [fromMs + i × bucketMs, + bucketMs). Null: no sample in the bucket. */
export const seriesShape = z.strictObject({
  fromMs: millis,
  bucketMs: z.number().positive(),
  ackedPerSecond: column,
  p50Ms: column,
  p99Ms: column,
  /** Largest latency of the bucket, never an average of maxima. */
  maxMs: column,
  inFlight: column,
  /** Refusals counted per bucket, by status. */
  refusals: z.array(z.strictObject({ status: z.string(), counts: z.array(count) })),
});

export const faultOutcomes = ['confirmed', 'unconfirmed', 'skipped', 'failed'] as const;

export const faultShape = z.strictObject({
  /** Short and unique, such as "F12". */
  id: z.string(),
  kind: z.string(),
  targets: z.array(z.string()),
  /** What the targets were at injection: control leader, primary, replica, joiner … */
  roles: z.array(z.string()),
  partition: count.nullable(),
  trigger: z.string(),
  outcome: z.enum(faultOutcomes),
  /** Why it was skipped, failed or could not be confirmed; null when confirmed. */
  reason: z.string().nullable(),
  stages: z.strictObject({
    plannedMs: millis,
    injectedMs: millis.nullable(),
    confirmedMs: millis.nullable(),
    healedMs: millis.nullable(),
    healVerifiedMs: millis.nullable(),
  }),
  /** What the probes saw, in order. */
  evidence: z.array(z.strictObject({ stage: z.string(), text: z.string() })),
  overlapsOther: z.boolean(),
  hitUnhealthy: z.boolean(),
  /** It went past the fault budget; the run is inconclusive. */
  overshoot: z.boolean(),
});

export const epochKinds = ['failover', 'handoff', 'edge'] as const;

/** One committed edge of a partition's runtime. */
export const epochChangeShape = z.strictObject({
  atMs: millis,
  partition: count,
  epoch: count,
  term: count,
  owner: z.string().nullable(),
  health: z.string(),
  kind: z.enum(epochKinds),
});

export const nodeStates = ['up', 'paused', 'cut-off', 'killed', 'stopped', 'catching-up'] as const;

export const nodeLaneShape = z.strictObject({
  nodeId: z.string(),
  /** Disjoint, in order; a hole means nothing is known. */
  spans: z.array(
    z.strictObject({ state: z.enum(nodeStates), fromMs: millis, toMs: millis, incarnation: count.nullable() }),
  ),
});

const quantiles = z.strictObject({ count, p50Ms: millis, p99Ms: millis, maxMs: millis }).nullable();

/** From a fault's injection, per partition that it touched. `faultKind` "all" sums every kind up. */
export const recoveryShape = z.strictObject({
  faultKind: z.string(),
  faults: count,
  /** To the first acknowledged write. */
  firstAck: quantiles,
  /** Back to Healthy. */
  healthy: quantiles,
  neverRecovered: count,
});

export const coverageShape = z.strictObject({
  kinds: z.array(z.string()),
  roles: z.array(z.string()),
  /** `confirmed[kind][role]`, same orders. */
  confirmed: z.array(z.array(count)),
  /** Kinds that this run could or did not inject, with the reason. */
  notInjected: z.array(z.strictObject({ kind: z.string(), reason: z.string() })),
});

export type Series = z.infer<typeof seriesShape>;
export type Fault = z.infer<typeof faultShape>;
export type EpochChange = z.infer<typeof epochChangeShape>;
export type NodeLane = z.infer<typeof nodeLaneShape>;
export type NodeStateName = NodeLane['spans'][number]['state'];
export type Recovery = z.infer<typeof recoveryShape>;
export type Coverage = z.infer<typeof coverageShape>;
