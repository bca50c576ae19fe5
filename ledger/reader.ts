/**
 * Reads a ledger, finished or cut short by a crash: streams, in bounded memory, without changing the file.
 *
 * Invariant: an operation whose intent stands without an outcome is `info`, never absent and never `fail`. If it were left
 * out, a value that it wrote would be called a phantom; if it were failed, a good store would be called bad.
 */
import type { RowCounts } from './row-counts.ts';
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Database, { type Database as Db } from 'better-sqlite3';
import { type Extremes, readHistories } from './history-passes.ts';
import { type OperationOutline, readOutlines } from './operation-outline.ts';
import * as rows from './rows.ts';
import { checkIdentity, LedgerFileError, schemaVersion } from './schema.ts';
import {
  type StoredOperation,
  storedOperations,
  type StoredRead,
  storedReads,
  type WhichOperations,
} from './stored-operations.ts';
import { TableRows } from './table-rows.ts';
import type { KeyHistory } from './verify/history.ts';
import type { HistorySource, OperationDetails } from './verify/source.ts';

/** Name of the ledger inside a run's folder. */
export const ledgerFileName = 'ledger.sqlite';
const sqliteMagic = 'SQLite format 3\u0000';
/** Pages cached while reading, KiB; with the sorter's memory this bounds a reader. */
const readCacheKib = 65_536;

type Cell = number | null;

/** Opens a run's folder or a ledger's file for reading. Throws {@link LedgerFileError}, one sentence. */
export function openLedgerReader(path: string): LedgerReader {
  let file = resolve(path);
  if (existsSync(file) && statSync(file).isDirectory()) file = join(file, ledgerFileName);
  if (!existsSync(file))
    throw new LedgerFileError('missing', `${file} does not exist; name the results folder of a run.`);
  checkMagic(file);
  let db: Db;
  try {
    db = new Database(file, { readonly: true, fileMustExist: true });
  } catch (error) {
    throw new LedgerFileError(
      'damaged',
      `${file} cannot be opened (${(error as Error).message}); if its run crashed, the folder must be writable once for recovery.`,
    );
  }
  try {
    const version = checkIdentity(db, file);
    if (version < schemaVersion)
      throw new LedgerFileError(
        'older',
        `${file} has schema version ${version}; resume or migrate it with this build before reading (it knows ${schemaVersion}).`,
      );
    db.pragma(`cache_size = -${readCacheKib}`);
    db.pragma('temp_store = FILE');
    return new LedgerReader(db, file);
  } catch (error) {
    db.close();
    throw error;
  }
}

function checkMagic(file: string): void {
  const head = Buffer.alloc(16);
  let length: number;
  try {
    const descriptor = openSync(file, 'r');
    length = readSync(descriptor, head, 0, 16, 0);
    closeSync(descriptor);
  } catch (error) {
    throw new LedgerFileError('damaged', `${file} cannot be read (${(error as Error).message}).`);
  }
  if (length === 0)
    throw new LedgerFileError('damaged', `${file} is empty; its run ended before anything was recorded.`);
  if (head.toString('latin1') !== sqliteMagic)
    throw new LedgerFileError('not-a-ledger', `${file} is not a SQLite file; name the ledger.sqlite of a run.`);
}

export class LedgerReader implements HistorySource {
  readonly path: string;
  private readonly db: Db;
  private readonly nodes: Map<number, string>;
  private readonly rows: TableRows;
  /** Of all histories read so far. */
  private readonly seen: Extremes = { attempts: 0, durationNs: 0 };

  /** @internal Use {@link openLedgerReader}. */
  constructor(db: Db, path: string) {
    this.db = db;
    this.path = path;
    this.rows = new TableRows(path, db);
    this.nodes = new Map(db.prepare('SELECT node_id, name FROM nodes').raw().all() as [number, string][]);
  }

  close(): void {
    this.db.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  meta(key: string): unknown {
    const json = this.db.prepare('SELECT json FROM meta WHERE key = ?').pluck().get(key) as string | undefined;
    return json === undefined ? undefined : this.parse(json);
  }

  nodeName(nodeId: number): string {
    return this.nodes.get(nodeId) ?? `node ${nodeId}`;
  }

  *faults(): Iterable<rows.FaultRow> {
    type Row = [string, string, rows.FaultStage, number, number, string, string | null, string];
    for (const row of this.all<Row>(
      'SELECT fault_id, kind, stage, at_ns, wall_ms, targets, partitions, evidence FROM faults ORDER BY row_id',
    )) {
      const partitions = row[6] === null ? {} : { partitions: this.parse(row[6]) as number[] };
      yield {
        faultId: row[0],
        kind: row[1],
        stage: row[2],
        atNs: row[3],
        wallMs: row[4],
        targets: this.parse(row[5]) as string[],
        ...partitions,
        evidence: this.parse(row[7]),
      };
    }
  }

  *epochChanges(): Iterable<rows.EpochChangeRow> {
    type Row = [Cell, number, number, Cell, Cell, rows.EpochKind, string, number];
    for (const [partition, epoch, term, node, incarnation, kind, health, atNs] of this.all<Row>(
      'SELECT partition, epoch, term, node_id, incarnation, kind, health, at_ns FROM epoch_changes ORDER BY row_id',
    )) {
      yield {
        partition,
        epoch,
        term,
        node: node === null ? null : this.nodeName(node),
        incarnation,
        kind,
        health,
        atNs,
      };
    }
  }

  *incarnations(): Iterable<rows.IncarnationRow> {
    for (const [node, incarnation, atNs, wallMs] of this.all<[number, number, number, number]>(
      'SELECT node_id, incarnation, at_ns, wall_ms FROM incarnations ORDER BY row_id',
    )) {
      yield { node: this.nodeName(node), incarnation, atNs, wallMs };
    }
  }

  *digests(): Iterable<rows.DigestRow> {
    type Row = [number, number, Cell, string, number, number, number, string, number];
    for (const [partition, node, incarnation, role, atNs, appliedTerm, appliedSeq, digest, keyCount] of this.all<Row>(
      'SELECT partition, node_id, incarnation, role, at_ns, applied_term, applied_seq, digest, key_count FROM digests ORDER BY row_id',
    )) {
      yield {
        partition,
        node: this.nodeName(node),
        incarnation,
        role,
        atNs,
        appliedTerm,
        appliedSeq,
        digest,
        keyCount,
      };
    }
  }

  *gaps(): Iterable<rows.GapRow> {
    for (const [fromNs, toNs, reason] of this.all<[number, number, string]>(
      'SELECT from_ns, to_ns, reason FROM gaps ORDER BY row_id',
    ))
      yield { fromNs, toNs, reason };
  }

  details(operationId: number): OperationDetails | null {
    const row = this.db
      .prepare('SELECT session, attempts, text FROM operations LEFT JOIN errors USING (error_id) WHERE op_id = ?')
      .raw()
      .get(operationId) as [number, Cell, string | null] | undefined;
    if (row !== undefined) return { session: row[0], attempts: row[1] ?? 1, error: row[2] };
    const open = this.db.prepare('SELECT session FROM open_operations WHERE op_id = ?').pluck().get(operationId) as
      | number
      | undefined;
    return open === undefined ? null : { session: open, attempts: 1, error: null };
  }

  extremes(): { attempts: number; durationNs: number } {
    return this.seen;
  }

  /** Number of finished operations and the id range; for progress and sizes. */
  size(): { readonly operations: number; readonly keys: number; readonly fileBytes: number } {
    const count = (sql: string) => this.db.prepare(sql).pluck().get() as number;
    return {
      operations: count('SELECT count(*) FROM operations'),
      keys: count('SELECT count(*) FROM keys'),
      fileBytes: statSync(this.path).size,
    };
  }

  /** Rows by table; `intents` are finished operations and those still open. */
  rowCounts(): RowCounts {
    const count = (from: string) => this.db.prepare(`SELECT count(*) FROM ${from}`).pluck().get() as number;
    const operations = count('operations');
    return {
      intents: operations + count('open_operations WHERE op_id NOT IN (SELECT op_id FROM operations)'),
      operations,
      faults: count('faults'),
      epochChanges: count('epoch_changes'),
      finalReads: count('final_reads'),
      replicaReads: count('replica_reads'),
      digests: count('digests'),
      retirements: count('retirements'),
    };
  }

  /** Operations without an outcome, in the order of their ids. */
  openOperations(): StoredOperation[] {
    return [...this.operations('', 'open')];
  }

  /** Operations with an outcome, in the order of their ids. */
  finishedOperations(): Iterable<StoredOperation> {
    return this.operations('', 'finished');
  }

  /** Read-backs through the client in the order in which they were recorded; for exports. */
  finalReads(): Iterable<StoredRead> {
    return storedReads(this.db, (nodeId) => this.nodeName(nodeId));
  }

  /** All operations of one key (a scan of the whole table), in the order of their ids, then those still open. */
  operationsOf(key: string): StoredOperation[] {
    const keyId = this.db.prepare('SELECT key_id FROM keys WHERE name = ?').pluck().get(key) as number | undefined;
    return keyId === undefined ? [] : [...this.operations(`WHERE key_id = ${keyId}`)];
  }

  /** Every operation in the order of the ids, then those still open; for exports and the life of a key. */
  operations(where = '', which: WhichOperations = 'all'): Iterable<StoredOperation> {
    return storedOperations(this.db, (nodeId) => this.nodeName(nodeId), where, which);
  }

  /** See HistorySource. Keys ascend within a pass; a ledger that fits one pass is read in one. */
  histories(bytesPerPass?: number): Iterable<KeyHistory> {
    return readHistories(this.db, this.path, this.rows, {
      seen: this.seen,
      ...(bytesPerPass === undefined ? {} : { bytesPerPass }),
    });
  }

  /** Every operation as series and counts need it, in the order of the ids, then those still open. What `visit` is given is valid during the call only. */
  outlines(visit: (operation: OperationOutline) => void): void {
    readOutlines(this.db, this.rows, visit);
  }

  private parse(json: string): unknown {
    try {
      return JSON.parse(json);
    } catch {
      const part = json.length > 40 ? `${json.slice(0, 40)}…` : json;
      throw new LedgerFileError(
        'damaged',
        `${this.path} cannot be read as a ledger (a row of it is not JSON: ${JSON.stringify(part)}); restore it from a copy.`,
      );
    }
  }

  private all<Row>(sql: string): IterableIterator<Row> {
    return this.db.prepare(sql).raw().iterate() as IterableIterator<Row>;
  }
}
