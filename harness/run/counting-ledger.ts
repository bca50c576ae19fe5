/**
 * Counts every row that the run hands to its ledger, before the ledger sees it. The counts are kept beside the rows, so that the
 * judgement can tell that some are missing: a ledger that drops rows would otherwise make losses vanish together with them.
 */
import type * as rows from '../../ledger/rows.ts';
import { noRows, type RowCounts } from '../../ledger/row-counts.ts';
import type { RunLedger } from './ports.ts';

export class CountingLedger implements RunLedger {
  /** What has been handed over, and what an earlier harness of this run had written. */
  readonly counts: RowCounts;
  private readonly ledger: RunLedger;

  constructor(ledger: RunLedger, before: RowCounts = noRows()) {
    this.ledger = ledger;
    this.counts = { ...before };
  }

  nowNs(): number {
    return this.ledger.nowNs();
  }

  nextOperationId(): number {
    return this.ledger.nextOperationId();
  }

  async intent(row: rows.IntentRow): Promise<void> {
    await this.ledger.intent(row);
    // A refused intent was never sent, and is no row.
    this.counts.intents++;
  }

  outcome(row: rows.OutcomeRow): Promise<void> {
    this.counts.operations++;
    return this.ledger.outcome(row);
  }

  fault(row: rows.FaultRow): Promise<void> {
    this.counts.faults++;
    return this.ledger.fault(row);
  }

  epochChange(row: rows.EpochChangeRow): Promise<void> {
    this.counts.epochChanges++;
    return this.ledger.epochChange(row);
  }

  incarnation(row: rows.IncarnationRow): Promise<void> {
    return this.ledger.incarnation(row);
  }

  finalRead(row: rows.FinalReadRow): Promise<void> {
    this.counts.finalReads++;
    return this.ledger.finalRead(row);
  }

  replicaRead(row: rows.ReplicaReadRow): Promise<void> {
    this.counts.replicaReads++;
    return this.ledger.replicaRead(row);
  }

  digest(row: rows.DigestRow): Promise<void> {
    this.counts.digests++;
    return this.ledger.digest(row);
  }

  retire(row: rows.RetireRow): Promise<void> {
    this.counts.retirements++;
    return this.ledger.retire(row);
  }

  release(key: string): Promise<void> {
    return this.ledger.release(key);
  }

  gap(row: rows.GapRow): Promise<void> {
    return this.ledger.gap(row);
  }

  meta(key: string, json: unknown): Promise<void> {
    return this.ledger.meta(key, json);
  }

  usage(): { readonly fileBytes: number; readonly freeBytes: number } {
    return this.ledger.usage();
  }

  flush(): Promise<void> {
    return this.ledger.flush();
  }

  close(): Promise<void> {
    return this.ledger.close();
  }
}
