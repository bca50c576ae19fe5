/** For tests of the run loop: a ledger in arrays, which commits a moment later, and one line per event in the order of commit. */
import type * as rows from '../../ledger/rows.ts';
import type { RunLedger } from '../run/ports.ts';

export class MemoryLedger implements RunLedger {
  readonly intents: rows.IntentRow[] = [];
  readonly outcomes: rows.OutcomeRow[] = [];
  readonly faults: rows.FaultRow[] = [];
  readonly epochChanges: rows.EpochChangeRow[] = [];
  readonly finalReads: rows.FinalReadRow[] = [];
  readonly replicaReads: rows.ReplicaReadRow[] = [];
  readonly retirements: rows.RetireRow[] = [];
  readonly metas = new Map<string, unknown>();
  /** Operation ids whose intent is committed. */
  readonly committed = new Set<number>();
  closed = false;
  /** Set to make every further row fail. */
  failure: Error | null = null;
  private readonly startedMs = performance.now();
  private nextId = 1;

  nowNs(): number {
    return Math.round((performance.now() - this.startedMs) * 1e6);
  }

  nextOperationId(): number {
    return this.nextId++;
  }

  async intent(row: rows.IntentRow): Promise<void> {
    this.intents.push(row);
    await this.kept();
    this.committed.add(row.operationId);
  }

  outcome(row: rows.OutcomeRow): Promise<void> {
    this.outcomes.push(row);
    return this.kept();
  }

  fault(row: rows.FaultRow): Promise<void> {
    this.faults.push(row);
    return this.kept();
  }

  epochChange(row: rows.EpochChangeRow): Promise<void> {
    this.epochChanges.push(row);
    return this.kept();
  }

  incarnation(): Promise<void> {
    return this.kept();
  }

  finalRead(row: rows.FinalReadRow): Promise<void> {
    this.finalReads.push(row);
    return this.kept();
  }

  replicaRead(row: rows.ReplicaReadRow): Promise<void> {
    this.replicaReads.push(row);
    return this.kept();
  }

  digest(): Promise<void> {
    return this.kept();
  }

  retire(row: rows.RetireRow): Promise<void> {
    this.retirements.push(row);
    return this.kept();
  }

  release(): Promise<void> {
    return this.kept();
  }

  gap(): Promise<void> {
    return this.kept();
  }

  meta(key: string, json: unknown): Promise<void> {
    this.metas.set(key, structuredClone(json));
    return this.kept();
  }

  usage(): { fileBytes: number; freeBytes: number } {
    return { fileBytes: 0, freeBytes: Infinity };
  }

  flush(): Promise<void> {
    return this.kept();
  }

  async close(): Promise<void> {
    await this.kept();
    this.closed = true;
  }

  private async kept(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (this.failure !== null) throw this.failure;
  }
}
