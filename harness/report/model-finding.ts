/**
 * The part of the report that says what went wrong: one finding per bad write or read, and the groups by cause.
 * A group's numbers are taken before the cap, so that "37 of 37" stays true when fewer are listed.
 */
import { z } from 'zod';

const count = z.int().nonnegative();
const millis = z.number().nonnegative();

/** Verdicts on a write that are findings (DESIGN §2), and those on the protocol (§9). */
export const findingKinds = [
  'lost',
  'stale',
  'resurrected',
  'phantom',
  'duplicated',
  'diverged',
  'corrupt',
  'non-monotone',
  'not-linearizable',
  'ttl',
  'fencing',
  'client-promise',
  'unknown',
] as const;

export const findingKindShape = z.enum(findingKinds);

/** A read (live, read-back or autopsy) that bears on a finding. */
const sightingShape = z.strictObject({
  atMs: millis,
  operationId: count.nullable(),
  session: count.nullable(),
  /** Null: the key was absent. */
  value: z.string().nullable(),
  version: z.string().nullable(),
  node: z.string().nullable(),
  epoch: count.nullable(),
});

export const replicaAnswers = ['has-it', 'absent', 'older', 'newer', 'other', 'no-answer'] as const;

const replicaShape = z.strictObject({
  node: z.string(),
  role: z.string(),
  answer: z.enum(replicaAnswers),
  value: z.string().nullable(),
  version: z.string().nullable(),
});

export const keyEventKinds = ['write', 'read', 'delete', 'fault', 'heal', 'epoch', 'read-back'] as const;

/** One event in the life of a key, with the faults and epoch changes around it. */
const keyEventShape = z.strictObject({
  kind: z.enum(keyEventKinds),
  atMs: millis,
  /** End of an operation, where known. */
  endMs: millis.nullable(),
  /** ok, fail, info; empty for what is no operation. */
  outcome: z.string(),
  text: z.string(),
  node: z.string().nullable(),
  epoch: count.nullable(),
});

export const findingShape = z.strictObject({
  /** Short and unique in the run, such as "L12"; stable when the run is rendered again. */
  id: z.string(),
  kind: findingKindShape,
  key: z.string(),
  /** One sentence of the checker: what it expected and what it found. */
  reason: z.string(),
  operation: z.strictObject({
    operationId: count,
    session: count,
    /** write, create, cas, delete, add, read. */
    f: z.string(),
    value: z.string().nullable(),
    version: z.string().nullable(),
    invokedAtMs: millis,
    /** Null when it was never acknowledged. */
    acknowledgedAtMs: millis.nullable(),
    attempts: count,
  }),
  partition: count.nullable(),
  epoch: count.nullable(),
  /** Who acknowledged. */
  node: z.string().nullable(),
  /** Ids of the faults open between invocation and acknowledgement. */
  openFaults: z.array(z.string()),
  lastSeen: sightingShape.nullable(),
  firstMissed: sightingShape.nullable(),
  replicas: z.array(replicaShape),
  timeline: z.array(keyEventShape),
  /** Id of its group. */
  group: z.string(),
});

/** Findings of one kind that share a cause. */
export const causeGroupShape = z.strictObject({
  id: z.string(),
  kind: findingKindShape,
  /** "37 of 37 lost writes were acknowledged ≤ 340 ms before the kill of n2 (fault F12)". */
  sentence: z.string(),
  /** Where the values are now, over the whole group. */
  whereNow: z.string(),
  count,
  faultId: z.string().nullable(),
  partitions: z.array(count),
  /** "8 → 9" per partition would be long: the epochs under which the group was acknowledged, ascending, at most 8. */
  epochs: z.array(count),
  nodes: z.array(z.string()),
  firstAtMs: millis.nullable(),
  lastAtMs: millis.nullable(),
});

export type FindingKind = z.infer<typeof findingKindShape>;
export type Finding = z.infer<typeof findingShape>;
export type CauseGroup = z.infer<typeof causeGroupShape>;
export type Sighting = NonNullable<Finding['lastSeen']>;
export type ReplicaAnswer = Finding['replicas'][number];
export type KeyEvent = Finding['timeline'][number];
