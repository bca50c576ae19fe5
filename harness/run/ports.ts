/**
 * What the run loop needs from the ledger, so that the loop can be tested without a file.
 *
 * Ordering duty: `intent` resolves once the intent, and every outcome handed over before it, is committed; the request is
 * sent only then. A session hands its outcome over before its next intent. If it were otherwise, a crash of the harness
 * could hide an acknowledged write from the verdict.
 */
import type {
  DigestRow,
  EpochChangeRow,
  FaultRow,
  FinalReadRow,
  GapRow,
  IncarnationRow,
  IntentRow,
  OutcomeRow,
  ReplicaReadRow,
  RetireRow,
} from '../../ledger/rows.ts';

/** Promises resolve once the row is committed; only those of `intent`, `fault` and `flush` need be awaited, failures come back there. */
export interface RunLedger {
  /** Nanoseconds since the start of the run. */
  nowNs(): number;
  nextOperationId(): number;
  intent(row: IntentRow): Promise<void>;
  outcome(row: OutcomeRow): Promise<void>;
  fault(row: FaultRow): Promise<void>;
  epochChange(row: EpochChangeRow): Promise<void>;
  incarnation(row: IncarnationRow): Promise<void>;
  finalRead(row: FinalReadRow): Promise<void>;
  replicaRead(row: ReplicaReadRow): Promise<void>;
  digest(row: DigestRow): Promise<void>;
  retire(row: RetireRow): Promise<void>;
  release(key: string): Promise<void>;
  gap(row: GapRow): Promise<void>;
  meta(key: string, json: unknown): Promise<void>;
  usage(): { readonly fileBytes: number; readonly freeBytes: number };
  flush(): Promise<void>;
  /** Flushes and closes. */
  close(): Promise<void>;
}

/** For rows whose failure will be seen by the next awaited one. */
export function unawaited(written: Promise<void>): void {
  written.catch(() => undefined);
}
