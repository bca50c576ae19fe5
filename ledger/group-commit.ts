/**
 * The front's side of the writer thread: what is handed in is gathered, sent as one batch, and its promise kept once the
 * thread says that the batch is committed.
 *
 * Invariants: at most one batch is under way; batches reach the thread in the order in which they were filled; after a failure no
 * promise resolves any more. If a promise resolved too early, an operation would be sent whose intent a crash could hide.
 * Group commit needs no timer: while one batch is being committed the next fills, so a batch is as large as the load asks.
 */
import type { Worker } from 'node:worker_threads';
import { assert } from '../lib/assert.ts';
import {
  type FromWriter,
  type PlainTable,
  RecordBuffer,
  type SideRow,
  type SideValue,
  type ToWriter,
} from './batch.ts';
import { sideTables } from './schema.ts';

/** Rows waiting for the writer above which new operations are refused (other rows at twice as many): a caller does not await. */
export const maxQueuedRows = 200_000;

/** No room on the disk: new operations are refused, everything else is still recorded. The verdict is `inconclusive`. */
export class DiskGuardError extends Error {
  override readonly name = 'DiskGuardError';
}

/** The writer failed; nothing that was not acknowledged before is on disk. The run cannot go on. */
export class LedgerWriteError extends Error {
  override readonly name = 'LedgerWriteError';
}

interface Pending {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

function newPending(): Pending {
  const { promise, resolve: settle, reject } = Promise.withResolvers<void>();
  // A caller may ignore the promise of a row; the next intent then reports the failure.
  promise.catch(() => {});
  return { promise, resolve: settle, reject };
}

export interface GroupCommitOptions {
  /** The writer thread, which has said that the file is open. */
  readonly worker: Worker;
  /** Room beside the file when it was opened, bytes. */
  readonly freeBytes: number;
  /** Asked once per batch: a row that goes with it, or null. */
  readonly rowOfBatch: () => SideRow | null;
}

/** Gathers rows into transactions; see the file's header. */
export class GroupCommit {
  private readonly worker: Worker;
  private readonly rowOfBatch: () => SideRow | null;
  private readonly filled = new RecordBuffer();
  private sideRows: SideRow[] = [];
  private filling: Pending = newPending();
  private committing: Pending | null = null;
  private committingRows = 0;
  private flushScheduled = false;
  private failure: Error | null = null;
  private closing: Pending | null = null;
  private room: { freeBytes: number; fileBytes: number };

  constructor({ worker, freeBytes, rowOfBatch }: GroupCommitOptions) {
    this.worker = worker;
    this.rowOfBatch = rowOfBatch;
    this.room = { freeBytes, fileBytes: 0 };
    worker.on('message', (message: FromWriter) => this.received(message));
    worker.on('error', (error) =>
      this.failed(new LedgerWriteError(`the ledger's writer thread died: ${error.message}`)),
    );
  }

  /** Size of the file and room beside it, bytes, as the last commit saw them. */
  get space(): { readonly freeBytes: number; readonly fileBytes: number } {
    return this.room;
  }

  /** Rows that no commit has confirmed yet. */
  get queuedRows(): number {
    return this.waitingRows + this.committingRows;
  }

  /** Why nothing more is taken, or null. */
  refusal(limit = 2 * maxQueuedRows): Error | null {
    if (this.failure !== null) return this.failure;
    if (this.closing !== null) return new LedgerWriteError('the ledger is closed');
    if (this.waitingRows > limit)
      return new LedgerWriteError(`more than ${limit} rows wait for the ledger; intents must be awaited`);
    return null;
  }

  /** The records of the batch that is being filled; whoever appends one has asked for {@link refusal}, and calls {@link queued} in the same turn. */
  get records(): RecordBuffer {
    return this.filled;
  }

  /** Adds a row to the batch without asking for its commit: what follows in the same turn does. */
  name(row: SideRow): void {
    this.sideRows.push(row);
  }

  /** Adds a row; resolves once it is committed. Rejects as {@link refusal} says. */
  side(table: PlainTable, ...values: SideValue[]): Promise<void> {
    const refused = this.refusal();
    if (refused !== null) return Promise.reject(refused);
    assert(values.length === sideTables[table].length, `columns of ${table}`);
    this.sideRows.push([table, ...values]);
    return this.queued();
  }

  /** Asks for a commit of what the batch holds; resolves once it is done. */
  queued(): Promise<void> {
    if (!this.flushScheduled && this.committing === null) {
      this.flushScheduled = true;
      setImmediate(() => {
        this.flushScheduled = false;
        if (this.committing === null) this.commit();
      });
    }
    return this.filling.promise;
  }

  /** Resolves once everything handed in so far is committed. */
  flush(): Promise<void> {
    return this.waitingRows > 0 ? this.queued() : (this.committing?.promise ?? Promise.resolve());
  }

  /** Commits what is queued and ends the thread. Rejects with what the writer failed with. */
  async close(): Promise<void> {
    if (this.closing === null) {
      this.closing = newPending();
      await this.flush().catch(() => {});
      if (this.failure === null) {
        this.post({ kind: 'close' });
        await this.closing.promise;
      }
      await this.worker.terminate();
    }
    if (this.failure !== null) throw this.failure;
  }

  private get waitingRows(): number {
    return this.filled.count + this.sideRows.length;
  }

  private commit(): void {
    if (this.failure !== null || this.waitingRows === 0) return;
    const extra = this.rowOfBatch();
    if (extra !== null) this.sideRows.push(extra);
    this.committing = this.filling;
    this.committingRows = this.waitingRows;
    this.filling = newPending();
    const rows = this.sideRows;
    this.sideRows = [];
    const records = this.filled.take();
    this.post({ kind: 'batch', records, rows }, [records.numbers.buffer]);
  }

  private post(message: ToWriter, moved: readonly ArrayBuffer[] = []): void {
    this.worker.postMessage(message, moved);
  }

  private received(message: FromWriter): void {
    switch (message.kind) {
      case 'committed': {
        this.room = { freeBytes: message.freeBytes, fileBytes: message.fileBytes };
        const done = this.committing;
        this.committing = null;
        this.committingRows = 0;
        done?.resolve();
        this.commit();
        return;
      }
      case 'failed':
        this.failed(
          message.diskFull
            ? new DiskGuardError('the disk is full; the ledger cannot be written.')
            : new LedgerWriteError(`the ledger cannot be written: ${message.reason}`),
        );
        return;
      case 'closed':
        this.closing?.resolve();
        return;
      case 'open':
        return;
    }
  }

  private failed(error: Error): void {
    this.failure ??= error;
    this.committing?.reject(this.failure);
    this.filling.reject(this.failure);
    this.closing?.resolve();
    this.committing = null;
  }
}
