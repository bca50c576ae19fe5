/**
 * Histories key by key out of a ledger in which rows stand in the order of time, without a sort: rows are thrown into an arena in
 * one pass over the tables, or in several, each over its own share of the keys, where one would take too much memory.
 *
 * Invariant: every row of every key is seen exactly once, in the order of the operations' ids. A row that was left out here would
 * be a write that nobody misses.
 */
import { statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { columnOf, decodeRecord, encodeRecord, maxEncodedBytes } from './record.ts';
import { RowArena } from './row-arena.ts';
import { LedgerFileError, openColumns, operationColumns, sideTables } from './schema.ts';
import type { TableRows } from './table-rows.ts';
import { KeyHistory, outcomeCode, replicaWhy, sourceCode } from './verify/history.ts';

/** Rows that a pass holds, bytes. */
const defaultBytesPerPass = 1 << 29;
/** Keys that are fetched at once. */
const keysPerFetch = 2_000;

/** Tables in the order in which a key's rows are to stand. */
const tables = { operations: 0, finalReads: 1, replicaReads: 2 } as const;
const keyColumn = 3;
const keyColumnOfReads = 1;

/** Largest figures of any finished operation. */
export interface Extremes {
  attempts: number;
  durationNs: number;
}

export interface PassOptions {
  /** Is told while the histories are read. */
  readonly seen: Extremes;
  readonly bytesPerPass?: number;
}

/** Every key's history; the object is valid until the next one. Keys ascend within a pass. */
export function* readHistories(
  db: Database,
  path: string,
  rows: TableRows,
  { seen, bytesPerPass = defaultBytesPerPass }: PassOptions,
): Iterable<KeyHistory> {
  const fileBytes = statSync(path).size;
  const passes = Math.max(1, Math.ceil(fileBytes / bytesPerPass));
  const lastKeyId = db.prepare('SELECT coalesce(max(key_id), 0) FROM keys').pluck().get() as number;
  const arena = new RowArena(Math.floor(lastKeyId / passes) + 1, fileBytes / passes);
  const reader = new RowDecoder(seen);
  for (let pass = 0; pass < passes; pass++) {
    arena.clear();
    const added = fill(arena, db, rows, { stride: passes, remainder: pass, lastKeyId });
    const visited = yield* histories(arena, db, reader, passes, pass);
    if (visited !== added) throw strayRows(path, added - visited);
  }
}

/** A write on a key that the ledger does not name would be judged by nobody. */
const strayRows = (path: string, count: number): LedgerFileError =>
  new LedgerFileError(
    'damaged',
    `${path} cannot be read as a ledger (${count} of its rows name a key that it does not hold); restore it from a copy.`,
  );

interface Share {
  readonly stride: number;
  readonly remainder: number;
  readonly lastKeyId: number;
}

/** Throws what is to be read into the arena; returns the number of rows of this share, also of those whose key is beyond the last. */
function fill(arena: RowArena, db: Database, rows: TableRows, { stride, remainder, lastKeyId }: Share): number {
  let added = 0;
  const take = (table: number, keyAt: number) => {
    return (bytes: Uint8Array, at: number, length: number, rowId: number): void => {
      const keyId = columnOf(bytes, at, keyAt);
      if (stride > 1 && keyId % stride !== remainder) return;
      added++;
      if (keyId > lastKeyId) return;
      arena.add(stride > 1 ? (keyId - remainder) / stride : keyId, table, rowId, bytes, at, length);
    };
  };
  const addOperation = take(tables.operations, keyColumn);
  // Open operations are few; they take their place in the order of ids, which the checkers rely on.
  const open = openRecords(db);
  let next = 0;
  const addOpen = (beforeId: number): void => {
    for (let row = open[next]; row !== undefined && row.rowId < beforeId; row = open[++next])
      addOperation(row.record, 0, row.record.length, row.rowId);
  };
  rows.scan('operations', (bytes, at, length, rowId) => {
    addOpen(rowId);
    addOperation(bytes, at, length, rowId);
  });
  addOpen(Infinity);
  rows.scan('final_reads', take(tables.finalReads, keyColumnOfReads));
  rows.scan('replica_reads', take(tables.replicaReads, keyColumnOfReads));
  return added;
}

/** Operations without an outcome as records of `operations` whose outcome is unknown. */
function openRecords(db: Database): { readonly rowId: number; readonly record: Uint8Array }[] {
  const columns = operationColumns.map((column) => {
    if (column === 'outcome') return `${outcomeCode.info}`;
    return (openColumns as readonly string[]).includes(column) && column !== 'op_id' ? column : 'NULL';
  });
  const sql = `SELECT op_id, ${columns.join(', ')} FROM open_operations WHERE op_id NOT IN (SELECT op_id FROM operations) ORDER BY op_id`;
  const scratch = new Uint8Array(maxEncodedBytes(columns.length));
  return (db.prepare(sql).raw().all() as (number | null)[][]).map(([rowId, ...values]) => ({
    rowId: rowId as number,
    record: scratch.slice(0, encodeRecord(values, scratch, 0)),
  }));
}

/** Returns the number of rows in what it yielded. */
function* histories(
  arena: RowArena,
  db: Database,
  reader: RowDecoder,
  stride: number,
  remainder: number,
): Generator<KeyHistory, number> {
  let visited = 0;
  const { history } = reader;
  const mine = `key_id > ? AND key_id % ${stride} = ${remainder}`;
  const statement = db
    .prepare(
      `SELECT key_id, name, canary, EXISTS (SELECT 1 FROM retirements r WHERE r.key_id = k.key_id) FROM keys k WHERE ${mine} ORDER BY key_id LIMIT ${keysPerFetch}`,
    )
    .raw();
  for (let after = -1, keys; (keys = statement.all(after) as [number, string, number, number][]).length > 0;) {
    for (const [keyId, name, canary, retired] of keys) {
      after = keyId;
      history.reset(keyId, name, canary === 1);
      history.retired = retired === 1;
      arena.visit((keyId - remainder) / stride, reader.add);
      reader.end();
      visited += history.size;
      yield history;
    }
  }
  return visited;
}

const orMinus = (cell: number): number => (cell === cell ? cell : -1);

/** Turns records into rows of a history. */
class RowDecoder {
  readonly history = new KeyHistory();
  private readonly operation = new Float64Array(operationColumns.length);
  private readonly final = new Float64Array(1 + sideTables.final_reads.length);
  private readonly replica = new Float64Array(1 + sideTables.replica_reads.length);
  private readonly seen: Extremes;
  private hasReads = false;

  constructor(seen: Extremes) {
    this.seen = seen;
  }

  readonly add = (table: number, rowId: number, bytes: Uint8Array, at: number): void => {
    if (table === tables.operations) {
      this.addOperation(rowId, bytes, at);
      return;
    }
    if (!this.hasReads) this.beginReads();
    if (table === tables.finalReads) this.addFinal(bytes, at);
    else this.addReplica(bytes, at);
  };

  /** All rows of the key are in. */
  end(): void {
    if (!this.hasReads) this.beginReads();
    this.hasReads = false;
  }

  private beginReads(): void {
    this.hasReads = true;
    this.history.operationCount = this.history.size;
  }

  /** op_id, session, f, key_id, outcome, why, error_id, invoke_ns, duration_ns, major, minor, partition, epoch, node_id, attempts, observed, number, arg, expected_major, expected_minor. */
  private addOperation(rowId: number, bytes: Uint8Array, at: number): void {
    const { history, operation: cells } = this;
    decodeRecord(bytes, at, cells);
    const i = history.grow();
    const outcome = cells[4] as number;
    const invokeNs = cells[7] as number;
    const durationNs = cells[8] as number;
    if (durationNs > this.seen.durationNs) this.seen.durationNs = durationNs;
    if ((cells[14] as number) > this.seen.attempts) this.seen.attempts = cells[14] as number;
    history.operationId[i] = rowId;
    history.f[i] = cells[2] as number;
    history.outcome[i] = outcome;
    history.source[i] = sourceCode.operation;
    history.why[i] = orMinus(cells[5] as number);
    history.invokeNs[i] = invokeNs;
    history.returnNs[i] = outcome === outcomeCode.info ? Infinity : invokeNs + durationNs;
    history.major[i] = cells[9] as number;
    history.minor[i] = cells[10] as number;
    history.partition[i] = orMinus(cells[11] as number);
    history.epoch[i] = cells[12] as number;
    history.node[i] = orMinus(cells[13] as number);
    history.observed[i] = cells[15] as number;
    history.number[i] = cells[16] as number;
    history.argument[i] = cells[17] as number;
    history.expectedMajor[i] = cells[18] as number;
    history.expectedMinor[i] = cells[19] as number;
  }

  /** row_id, key_id, phase, outcome, error_id, invoke_ns, duration_ns, major, minor, partition, epoch, node_id, observed, number. */
  private addFinal(bytes: Uint8Array, at: number): void {
    const { history, final: cells } = this;
    decodeRecord(bytes, at, cells);
    const i = this.addRead(cells[2] === 1 ? sourceCode.retire : sourceCode.final);
    const outcome = cells[3] as number;
    const invokeNs = cells[5] as number;
    history.outcome[i] = outcome;
    history.why[i] = -1;
    history.invokeNs[i] = invokeNs;
    history.returnNs[i] = outcome === outcomeCode.info ? Infinity : invokeNs + (cells[6] as number);
    history.major[i] = cells[7] as number;
    history.minor[i] = cells[8] as number;
    history.partition[i] = orMinus(cells[9] as number);
    history.epoch[i] = cells[10] as number;
    history.node[i] = orMinus(cells[11] as number);
    history.observed[i] = cells[12] as number;
    history.number[i] = cells[13] as number;
  }

  /** row_id, key_id, phase, node_id, incarnation, role, at_ns, answered, observed, number, major, minor, applied_seq, commit_seq. */
  private addReplica(bytes: Uint8Array, at: number): void {
    const { history, replica: cells } = this;
    decodeRecord(bytes, at, cells);
    const i = this.addRead(sourceCode.replica);
    const behind = (cells[12] as number) < (cells[13] as number);
    const hasAnswer = cells[7] === 1;
    const answered = hasAnswer && !behind;
    const atNs = cells[6] as number;
    history.outcome[i] = answered ? outcomeCode.ok : outcomeCode.info;
    history.why[i] = answered ? replicaWhy.answered : hasAnswer ? replicaWhy.behind : replicaWhy.missing;
    history.invokeNs[i] = atNs;
    history.returnNs[i] = answered ? atNs : Infinity;
    history.major[i] = cells[10] as number;
    history.minor[i] = cells[11] as number;
    history.partition[i] = -1;
    history.epoch[i] = NaN;
    history.node[i] = orMinus(cells[3] as number);
    history.observed[i] = cells[8] as number;
    history.number[i] = cells[9] as number;
  }

  private addRead(source: number): number {
    const { history } = this;
    const i = history.grow();
    history.operationId[i] = -1;
    history.f[i] = 0;
    history.source[i] = source;
    history.expectedMajor[i] = NaN;
    history.expectedMinor[i] = NaN;
    history.argument[i] = NaN;
    return i;
  }
}
