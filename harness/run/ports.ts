/**
 * What the run loop needs from the ledger, in its own words, so that the loop can be tested without a file.
 *
 * Ordering duty: `intent` resolves once the intent, and every outcome handed over before it, is committed; the request is
 * sent only then. A session hands its outcome over before its next intent. If it were otherwise, a crash of the harness
 * could hide an acknowledged write from the verdict. Times are monotonic milliseconds of the run's clock.
 */
import type { FaultJournal } from '../../chaos/journal.ts';
import type { Completion, Operation } from '../../workloads/port.ts';
import type { Peeked } from '../systems/system.ts';

/** Why an operation was run: load, final read-back, retiring of a key, the canary. */
export type OperationPurpose = 'load' | 'read-back' | 'retire' | 'canary';

export interface Intent {
  readonly operationId: number;
  readonly session: number;
  readonly purpose: OperationPurpose;
  readonly partition: number;
  readonly operation: Operation;
  readonly atMs: number;
}

export interface Outcome {
  readonly operationId: number;
  /** Just before the send. */
  readonly invokedAtMs: number;
  readonly returnedAtMs: number;
  readonly completion: Completion;
}

/** One edge of a partition's runtime, as watched from outside. */
export interface EpochChange {
  readonly atMs: number;
  readonly partition: number;
  readonly epoch: number;
  readonly term: number;
  readonly primary: string | null;
  readonly health: string;
  readonly kind: 'failover' | 'handoff' | 'edge';
  /** Edges between this one and the last one seen that were too quick to be watched. */
  readonly missed: number;
}

/** A node's registration, as watched from outside. */
export interface IncarnationChange {
  readonly atMs: number;
  readonly nodeId: string;
  readonly incarnation: number;
  readonly alive: boolean;
}

/** What one replica answered about keys of a partition; `peeked` null: it did not answer. */
export interface ReplicaRead {
  readonly atMs: number;
  readonly nodeId: string;
  readonly partition: number;
  readonly keys: readonly string[];
  readonly peeked: Peeked | null;
  /** It had applied the primary's commit seq; without that its copy proves nothing. */
  readonly caughtUp: boolean;
}

export interface PhaseRecord {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface RunLedger extends FaultJournal {
  intent(intent: Intent): Promise<void>;
  outcome(outcome: Outcome): void;
  epochChange(change: EpochChange): void;
  incarnationChange(change: IncarnationChange): void;
  replicaRead(read: ReplicaRead): void;
  /** The key was read through the client and from every replica; the ledgered delete follows. */
  retiring(keys: readonly string[], exposed: boolean, atMs: number): void;
  phase(record: PhaseRecord): void;
  meta(name: string, value: unknown): void;
  /** Size of the file so far, estimated. */
  bytes(): number;
  /** Resolves when everything handed over is committed; rejects when anything could not be written. */
  flush(): Promise<void>;
  /** Flushes and closes. */
  close(): Promise<void>;
}
