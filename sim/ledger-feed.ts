/**
 * A simulated run as a ledger's file, row for row what the harness writes of a real one, so that the same report, re-judgement
 * and comparison work on it. Rows go to the writer's thread while the run goes on: on a second core, and out of memory.
 *
 * Invariant: what the history takes stands in the file once {@link LedgerFeed.finish} has resolved, or that rejects. A row left out
 * here would be a write that nobody judges. Nothing depends on the order of disk and network: the network is simulated.
 */
import { type Ledger, openLedger } from '../ledger/ledger.ts';
import { defaultClientOptions } from '../zaris/client/contract.ts';
import { noRows } from '../ledger/row-counts.ts';
import type { DigestRow, EpochChangeRow, FinalReadRow, ReplicaReadRow, RetireRow } from '../ledger/rows.ts';
import type { EndedOperation, HistorySink, RecordedOperation } from './history.ts';
import type { SimPlayed } from './job.ts';

/** Rows that gather before they go to the writer together: each trip costs both threads. */
const rowsPerBatch = 4_000;
/** Rows under way above which the run waits for the writer. */
const maxWaitingRows = 60_000;
/** Sessions of operations that never ended, where one of the same session stands open already. */
const otherSessions = 1_000_000;

/** How a row of one kind goes to the ledger. */
type Way<Row> = (ledger: Ledger, row: Row) => Promise<void>;
const ways = {
  finalRead: ((ledger, row) => ledger.finalRead(row)) satisfies Way<FinalReadRow>,
  replicaRead: ((ledger, row) => ledger.replicaRead(row)) satisfies Way<ReplicaReadRow>,
  retire: ((ledger, row) => ledger.retire(row)) satisfies Way<RetireRow>,
  release: ((ledger, key) => ledger.release(key)) satisfies Way<string>,
  epochChange: ((ledger, row) => ledger.epochChange(row)) satisfies Way<EpochChangeRow>,
  digest: ((ledger, row) => ledger.digest(row)) satisfies Way<DigestRow>,
};

export interface SimLedgerFacts {
  readonly runId: string;
  /** Settings of the run as the report shows them. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly contract: unknown;
  readonly host: unknown;
  readonly build: string;
  /** What stands against a certificate beside the verifier's findings. */
  readonly reasons: readonly { readonly verdict: string; readonly reason: string }[];
}

export class LedgerFeed implements HistorySink {
  private readonly ledger: Ledger;
  private failure: Error | null = null;
  private operations: EndedOperation[] = [];
  /** Rows of all other kinds in the order in which they came, and the way of each: a row costs no object beside itself. */
  private others: unknown[] = [];
  private waysOfOthers: Way<never>[] = [];
  /** Rows that are committed together share a promise. */
  private watched: Promise<void> | null = null;
  private readonly readBackKeys = new Set<string>();
  private readonly replicas = { asked: 0, answered: 0 };
  /** Rows handed over, by table: kept in the file, so that the judgement can tell that some are missing. */
  private readonly rows = noRows();

  private constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  /** Makes the file. Rejects with LedgerFileError where that cannot be. */
  static async open(path: string, runTag: string): Promise<LedgerFeed> {
    return new LedgerFeed(await openLedger({ path, runTag }));
  }

  ended(operation: EndedOperation): void {
    this.rows.intents++;
    this.rows.operations++;
    if (this.operations.push(operation) >= rowsPerBatch) this.handIn();
  }

  finalRead(row: FinalReadRow): void {
    if (row.phase === 'final' && row.completion.kind === 'ok') this.readBackKeys.add(row.key);
    this.rows.finalReads++;
    this.gather(ways.finalRead, row);
  }

  replicaRead(row: ReplicaReadRow): void {
    if (row.phase === 'final') {
      this.replicas.asked += 1;
      if (row.kind === 'answered') this.replicas.answered += 1;
    }
    this.rows.replicaReads++;
    this.gather(ways.replicaRead, row);
  }

  retire(row: RetireRow): void {
    this.rows.retirements++;
    this.gather(ways.retire, row);
  }

  /** After the rows of its operations, which are handed in first. */
  released(key: string): void {
    this.gather(ways.release, key);
  }

  epochChange(row: EpochChangeRow): void {
    this.rows.epochChanges++;
    this.gather(ways.epochChange, row);
  }

  digest(row: DigestRow): void {
    this.rows.digests++;
    this.gather(ways.digest, row);
  }

  /** Names of keys that the ledger holds in memory: those that live, and what was not handed in yet. */
  get keysInMemory(): number {
    return this.ledger.usage().keysInMemory;
  }

  /** Resolves when the writer has caught up; null where the run need not wait. */
  pace(): Promise<void> | null {
    if (this.failure !== null) throw this.failure;
    return this.ledger.usage().queuedRows > maxWaitingRows ? this.ledger.flush() : null;
  }

  /** Writes what is told at the end and closes the file. Rejects when any row could not be written. */
  async finish(played: SimPlayed, facts: SimLedgerFacts): Promise<void> {
    const { ledger } = this;
    const { history } = played;
    this.handIn();
    const openSessions = new Set<number>();
    for (const operation of history.recorded()) {
      // The file allows one open operation per session.
      let { session } = operation;
      while (openSessions.has(session)) session += otherSessions;
      openSessions.add(session);
      this.rows.intents++;
      this.put(ledger.intent({ ...intentOf(operation), session }));
    }
    this.rows.faults += history.faultRows.length;
    for (const row of history.faultRows) this.put(ledger.fault(row));
    for (const row of history.incarnationRows) this.put(ledger.incarnation(row));
    await this.writeMeta(played, facts);
    await ledger.flush();
    if (this.failure !== null) throw this.failure;
    await ledger.close();
  }

  /** Ends the writer's thread; does nothing after {@link finish}. */
  async abandon(): Promise<void> {
    await this.ledger.close().catch(() => undefined);
  }

  private gather<Row>(way: Way<Row>, row: Row): void {
    this.waysOfOthers.push(way);
    if (this.others.push(row) >= rowsPerBatch) this.handIn();
  }

  private handIn(): void {
    const { operations, others, waysOfOthers, ledger } = this;
    this.operations = [];
    this.others = [];
    this.waysOfOthers = [];
    for (const operation of operations) this.put(ledger.ended(intentOf(operation), operation));
    let index = 0;
    for (const way of waysOfOthers) this.put(way(ledger, others[index++] as never));
  }

  /** Rows are not waited for one by one: the first that failed ends the run. */
  private put(row: Promise<void>): void {
    if (row === this.watched) return;
    this.watched = row;
    row.catch((error: unknown) => (this.failure ??= error as Error));
  }

  private async writeMeta(played: SimPlayed, facts: SimLedgerFacts): Promise<void> {
    const { options, history, phases } = played;
    const meta = (key: string, json: unknown): void => this.put(this.ledger.meta(key, json));
    const canary = (history.meta('canary') ?? []) as readonly { readonly key: string }[];
    meta('settings', facts.settings);
    meta('runId', facts.runId);
    meta('host', facts.host);
    meta('versions', [{ name: 'node.js', value: process.version }]);
    meta('facts', {
      build: facts.build,
      engine: null,
      replicationFactor: options.rf,
      minInSync: options.minInSync,
      partitions: options.partitions,
      versions: [],
      contract: facts.contract,
      promises: { maxAttempts: defaultClientOptions.retry.maxAttempts, deadlineMs: options.requestTimeoutMs },
      peek: true,
    });
    meta('schedule', played.schedule);
    meta('unsupported', []);
    for (const { name, fromMs, toMs } of phases)
      meta(`phase:${name}`, { fromNs: Math.round(fromMs * 1e6), toNs: Math.round(toMs * 1e6) });
    meta('canary', canary);
    meta('written', this.rows);
    meta('end', {
      interruptedBy: null,
      reasons: facts.reasons,
      readBack: { expected: played.keysAtEnd, done: this.readBackKeys.size },
      replicas: this.replicas,
      canaryDeleted: canary.map(({ key }) => key),
      canarySeenLive: played.canariesSeen,
      peakMemoryBytes: process.memoryUsage.rss(),
    });
    meta('endedAtNs', Math.round(played.virtualMs * 1e6));
  }
}

const intentOf = ({ operationId, session, operation, invokeNs, canary }: RecordedOperation) => ({
  operationId,
  session,
  operation,
  atNs: invokeNs,
  canary,
});
