/**
 * The thread that owns the ledger's file. Every batch is one transaction, committed before it is answered.
 *
 * Invariant: `committed` is sent only after COMMIT returned. If it were sent earlier, an operation could reach the store
 * without an intent on disk, and a crash of the harness would hide a write that the store acknowledged.
 */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import Database, { type Database as Db, type Statement } from 'better-sqlite3';
import { present, unreachable } from '../lib/assert.ts';
import {
  type FromWriter,
  type PlainTable,
  recordHead,
  recordKinds,
  type Records,
  recordStride,
  type RecordTable,
  type ResumedState,
  type SideValue,
  type SideRow,
  type ToWriter,
  type WriterOptions,
} from './batch.ts';
import { checkIdentity, migrate, openColumns, operationColumns, sideTables } from './schema.ts';

/** WAL pages after which SQLite checkpoints, on this thread only. */
const walCheckpointPages = 4_000;
/** How often free space and file size are looked at, ms. */
const statfsEveryMs = 500;
/** Cached pages, KiB; bounds this thread's memory. */
const cacheKib = 16_384;
/** Ids skipped on resume, so that an intent whose commit was never answered cannot share its id. */
const resumedIdMargin = 1_000_000;

const port = present(parentPort, 'parent port of the writer thread');
const options = workerData as WriterOptions;
const send = (message: FromWriter): void => port.postMessage(message);

function openDatabase(): Db {
  const db = new Database(options.path);
  if (options.resume) checkIdentity(db, options.path);
  db.pragma('journal_mode = WAL');
  db.pragma(`synchronous = ${options.sync === 'full' ? 'FULL' : 'NORMAL'}`);
  db.pragma(`wal_autocheckpoint = ${walCheckpointPages}`);
  db.pragma(`cache_size = -${cacheKib}`);
  migrate(db, options.path);
  return db;
}

/** Turns what was open when the file was last written into `info`, and reads back what the front must know. */
function resumeState(db: Db): ResumedState {
  const openOperations = db
    .prepare(
      'SELECT count(*) FROM open_operations o WHERE NOT EXISTS (SELECT 1 FROM operations p WHERE p.op_id = o.op_id)',
    )
    .pluck()
    .get() as number;
  db.transaction(() => {
    if (openOperations > 0) {
      db.exec(
        "INSERT INTO errors SELECT coalesce(max(error_id), 0) + 1, 'the harness died while this operation was open' FROM errors",
      );
    }
    db.exec(`
      INSERT INTO operations (op_id, session, f, key_id, outcome, error_id, invoke_ns, duration_ns, number, arg, expected_major, expected_minor, value_bytes)
        SELECT op_id, session, f, key_id, 2, (SELECT max(error_id) FROM errors), invoke_ns, 0, number, arg, expected_major, expected_minor, value_bytes
        FROM open_operations o WHERE NOT EXISTS (SELECT 1 FROM operations p WHERE p.op_id = o.op_id);
      DELETE FROM open_operations;`);
  })();
  const pairs = (sql: string) => db.prepare(sql).raw().all() as [number, string][];
  const number = (sql: string) => db.prepare(sql).pluck().get() as number;
  const meta = (key: string) =>
    (db.prepare('SELECT json FROM meta WHERE key = ?').pluck().get(key) as string | undefined) ?? null;
  const lastOperationId = number('SELECT coalesce(max(op_id), 0) FROM operations');
  return {
    keys: pairs('SELECT key_id, name FROM keys WHERE key_id NOT IN (SELECT key_id FROM released_keys)'),
    nodes: pairs('SELECT node_id, name FROM nodes'),
    errors: pairs('SELECT error_id, text FROM errors'),
    nextKeyId: number('SELECT coalesce(max(key_id), 0) FROM keys') + 1,
    nextOperationId: lastOperationId === 0 ? 1 : lastOperationId + resumedIdMargin,
    openOperations,
    lastNs: Math.max(
      number('SELECT coalesce(max(invoke_ns + duration_ns), 0) FROM operations'),
      number('SELECT coalesce(max(at_ns), 0) FROM clock'),
      number('SELECT coalesce(max(at_ns), 0) FROM faults'),
    ),
    origin: meta('origin'),
    runTag: meta('runTag'),
  };
}

/** Every table that the front fills, with its columns in the order in which they are bound. */
const columnsOf = { ...sideTables, open_operations: openColumns, operations: operationColumns };
/** Tables in which a row stands in for an earlier one. */
const replacedTables: ReadonlySet<string> = new Set(['meta', 'open_operations'] satisfies (keyof typeof columnsOf)[]);
const isRecordTable = (table: keyof typeof columnsOf): table is RecordTable => table in recordKinds;

interface RecordInsert {
  readonly statement: Statement;
  /** Filled anew for each row. */
  readonly values: SideValue[];
}

class BatchWriter {
  private readonly db: Db;
  private readonly begin: Statement;
  private readonly commit: Statement;
  private readonly rollback: Statement;
  /** By kind of record. */
  private readonly inserts: RecordInsert[] = [];
  private readonly side = new Map<PlainTable, Statement>();

  constructor(db: Db) {
    this.db = db;
    this.begin = db.prepare('BEGIN IMMEDIATE');
    this.commit = db.prepare('COMMIT');
    this.rollback = db.prepare('ROLLBACK');
    for (const table of Object.keys(columnsOf) as (keyof typeof columnsOf)[]) {
      const columns = columnsOf[table];
      const verb = replacedTables.has(table) ? 'INSERT OR REPLACE' : 'INSERT';
      const statement = db.prepare(
        `${verb} INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
      );
      if (isRecordTable(table))
        this.inserts[recordKinds[table]] = { statement, values: new Array<SideValue>(columns.length).fill(null) };
      else this.side.set(table, statement);
    }
  }

  write(records: Records, rows: readonly SideRow[]): void {
    this.begin.run();
    try {
      for (const [table, ...values] of rows) present(this.side.get(table), 'table').run(...values);
      const { numbers } = records;
      for (let offset = 0; offset < numbers.length; offset += recordStride) {
        const { statement, values } = present(this.inserts[numbers[offset] as number], 'kind of record');
        take(records, offset, values);
        statement.run(values);
      }
      this.commit.run();
    } catch (error) {
      if (this.db.inTransaction) this.rollback.run();
      throw error;
    }
  }
}

function take({ numbers, texts }: Records, offset: number, into: SideValue[]): void {
  const isText = numbers[offset + 1] as number;
  for (let column = 0; column < into.length; column++) {
    const value = numbers[offset + recordHead + column] as number;
    if (value !== value) into[column] = null;
    else into[column] = (isText & (1 << column)) === 0 ? value : present(texts[value], 'text of a record');
  }
}

/** Free bytes where the ledger lies, and its size; looked up at most every `statfsEveryMs`. */
class SpaceWatch {
  private readonly db: Db;
  private lookedAtMs = -Infinity;
  private seen = { freeBytes: 0, fileBytes: 0 };

  constructor(db: Db) {
    this.db = db;
  }

  look(): { freeBytes: number; fileBytes: number } {
    const nowMs = performance.now();
    if (nowMs - this.lookedAtMs < statfsEveryMs) return this.seen;
    this.lookedAtMs = nowMs;
    const space = statfsSync(dirname(options.path));
    const pages = this.db.pragma('page_count', { simple: true }) as number;
    const pageBytes = this.db.pragma('page_size', { simple: true }) as number;
    this.seen = { freeBytes: space.bavail * space.bsize, fileBytes: pages * pageBytes };
    return this.seen;
  }
}

function run(): void {
  const db = openDatabase();
  const state = resumeState(db);
  const writer = new BatchWriter(db);
  const space = new SpaceWatch(db);
  send({ kind: 'open', resumed: state, freeBytes: space.look().freeBytes });
  port.on('message', (message: ToWriter) => {
    try {
      switch (message.kind) {
        case 'batch':
          writer.write(message.records, message.rows);
          send({ kind: 'committed', ...space.look() });
          return;
        case 'close':
          // One plain file is left behind, which opens read-only anywhere.
          db.pragma('wal_checkpoint(TRUNCATE)');
          db.pragma('journal_mode = DELETE');
          db.close();
          send({ kind: 'closed' });
          port.close();
          return;
        default:
          unreachable(message);
      }
    } catch (error) {
      fail(error);
    }
  });
}

function fail(error: unknown): void {
  const code = (error as { code?: string }).code ?? '';
  send({
    kind: 'failed',
    reason: error instanceof Error ? error.message : String(error),
    diskFull: code === 'SQLITE_FULL',
  });
}

try {
  run();
} catch (error) {
  fail(error);
}
