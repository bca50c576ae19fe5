/**
 * What is written to a ledger, as its callers say it: operations and their outcomes, faults, epochs, final reads.
 *
 * All times named `Ns` are nanoseconds since the start of the run (JS-safe numbers, monotonic); `wallMs` is the wall clock
 * beside them, for people. If a time here were not monotonic, the verifier would order operations that were concurrent.
 */
import type { Completion, Operation, Version } from '../workloads/port.ts';

/** Codes of `operations.f`; the index is what stands in the file, so only append. */
export const operationCodes = ['read', 'write', 'create', 'cas', 'delete', 'add'] as const;
export const outcomeCodes = ['ok', 'fail', 'info'] as const;
/** Why an operation failed; stored as outcome 1 plus this code in `why`. */
export const whyCodes = ['condition', 'refused', 'invalid'] as const;
export const phaseCodes = ['final', 'retire'] as const;
export const faultStages = [
  'planned',
  'changed',
  'skipped',
  'injecting',
  'injected',
  'confirmed',
  'unconfirmed',
  'healing',
  'healed',
  'heal-verified',
  'heal-unverified',
  'failed',
  'overshoot',
] as const;
export const epochKinds = ['failover', 'handoff', 'edge'] as const;

export type FaultStage = (typeof faultStages)[number];
export type EpochKind = (typeof epochKinds)[number];
export type Phase = (typeof phaseCodes)[number];

/** An operation about to be sent. `operationId` is unique in the run; `session` has none open. */
export interface IntentRow {
  readonly operationId: number;
  readonly session: number;
  readonly operation: Operation;
  /** Stands in for the invoke time only while the operation has no outcome. */
  readonly atNs: number;
  /** Planted to be lost: judged apart and left out of every count. Fixed by the first intent that names the key. */
  readonly canary?: boolean;
}

/** How the session's open operation ended. `invokeNs` is taken just before the send. */
export interface OutcomeRow {
  readonly session: number;
  readonly completion: Completion;
  readonly invokeNs: number;
  readonly returnNs: number;
}

/** One stage of one fault; a fault has one row per stage that it reached. */
export interface FaultRow {
  readonly faultId: string;
  readonly kind: string;
  readonly stage: FaultStage;
  readonly atNs: number;
  readonly wallMs: number;
  readonly targets: readonly string[];
  /** Partitions that the fault touched, where known at this stage. */
  readonly partitions?: readonly number[];
  /** What the probe saw, or why it was skipped. */
  readonly evidence: unknown;
}

/** One committed edge of a partition's runtime. */
export interface EpochChangeRow {
  /** Null where the store is not partitioned: the change concerns every key. */
  readonly partition: number | null;
  readonly epoch: number;
  readonly term: number;
  readonly node: string | null;
  readonly incarnation: number | null;
  readonly kind: EpochKind;
  readonly health: string;
  readonly atNs: number;
}

export interface IncarnationRow {
  readonly node: string;
  readonly incarnation: number;
  readonly atNs: number;
  readonly wallMs: number;
}

/** A read-back through the client, after the last heal (`final`) or before a key is retired. */
export interface FinalReadRow {
  readonly key: string;
  readonly phase: Phase;
  readonly invokeNs: number;
  readonly returnNs: number;
  readonly completion: Completion;
}

/** What one replica itself holds. `missing`: it was asked, or should have been, and gave no answer. */
export type ReplicaReadRow = {
  readonly key: string;
  readonly phase: Phase;
  readonly node: string;
  readonly incarnation: number | null;
  readonly role: string;
  readonly atNs: number;
} & (
  | { readonly kind: 'missing'; readonly reason: string }
  | {
      readonly kind: 'answered';
      readonly value: string | null;
      readonly version: Version | null;
      /** Last entry applied by this copy; null where the store does not say. */
      readonly appliedSeq: number | null;
      /** Commit seq of the primary that this copy had to reach; null where the store does not say. */
      readonly commitSeq: number | null;
    }
);

/** Digest of one copy of a partition: equal at equal (appliedTerm, appliedSeq) on sound copies. */
export interface DigestRow {
  readonly partition: number;
  readonly node: string;
  readonly incarnation: number | null;
  readonly role: string;
  readonly atNs: number;
  readonly appliedTerm: number;
  readonly appliedSeq: number;
  readonly digest: string;
  readonly keyCount: number;
}

/** The key was read back and asked of every replica; a ledgered delete follows. `exposed`: a later failover of its partition was seen. */
export interface RetireRow {
  readonly key: string;
  readonly atNs: number;
  readonly exposed: boolean;
}

/** A stretch in which nothing was recorded. */
export interface GapRow {
  readonly fromNs: number;
  readonly toNs: number;
  readonly reason: string;
}
