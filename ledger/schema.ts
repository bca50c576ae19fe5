/**
 * The tables of a ledger, their version, and how an older file becomes a newer one.
 *
 * `operations` holds finished operations only, one row each, written once; `open_operations` holds at most one row per
 * session, overwritten by its next intent. So the hot path appends and never updates. No secondary index: it would cost
 * most of the write rate; readers sort. Times are nanoseconds since the start of the run. If a migration were wrong, a
 * saved run would be judged by what it never said; so each one is a numbered step that runs in one transaction.
 */
import type { Database } from 'better-sqlite3';

/** `PRAGMA application_id` of a ledger ("ZLED"). */
export const applicationId = 0x5a4c4544;

/** One step: brings a file of the version before it to its own. Steps are only ever appended. */
export type Migration = (db: Database) => void;

const createVersion1: Migration = (db) => {
  db.exec(`
    CREATE TABLE meta (key TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE keys (key_id INTEGER PRIMARY KEY, name TEXT NOT NULL, canary INTEGER NOT NULL) STRICT;
    CREATE TABLE nodes (node_id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
    CREATE TABLE errors (error_id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
    -- f: 0 read 1 write 2 create 3 cas 4 delete 5 add. outcome: 0 ok 1 fail 2 info. why (of fail): 0 condition 1 refused 2 invalid.
    -- observed (of read): id of the operation whose value was read; null absent; -1 foreign, -2 corrupt (text in odd_values).
    -- number: sum of a counter, or the digest of a list. arg: ttl in ms of write, delta of add.
    CREATE TABLE operations (
      op_id INTEGER PRIMARY KEY, session INTEGER NOT NULL, f INTEGER NOT NULL, key_id INTEGER NOT NULL,
      outcome INTEGER NOT NULL, why INTEGER, error_id INTEGER, invoke_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL,
      major INTEGER, minor INTEGER, partition INTEGER, epoch INTEGER, node_id INTEGER, attempts INTEGER,
      observed INTEGER, number INTEGER, arg INTEGER, expected_major INTEGER, expected_minor INTEGER,
      value_bytes INTEGER) STRICT;
    CREATE TABLE open_operations (
      session INTEGER PRIMARY KEY, op_id INTEGER NOT NULL, f INTEGER NOT NULL, key_id INTEGER NOT NULL,
      invoke_ns INTEGER NOT NULL, number INTEGER, arg INTEGER, expected_major INTEGER, expected_minor INTEGER,
      value_bytes INTEGER) STRICT;
    CREATE TABLE odd_values (op_id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
    CREATE TABLE faults (
      row_id INTEGER PRIMARY KEY, fault_id TEXT NOT NULL, kind TEXT NOT NULL, stage TEXT NOT NULL, at_ns INTEGER NOT NULL,
      wall_ms INTEGER NOT NULL, targets TEXT NOT NULL, partitions TEXT, evidence TEXT NOT NULL) STRICT;
    CREATE TABLE epoch_changes (
      row_id INTEGER PRIMARY KEY, partition INTEGER, epoch INTEGER NOT NULL, term INTEGER NOT NULL, node_id INTEGER,
      incarnation INTEGER, kind TEXT NOT NULL, health TEXT NOT NULL, at_ns INTEGER NOT NULL) STRICT;
    CREATE TABLE incarnations (
      row_id INTEGER PRIMARY KEY, node_id INTEGER NOT NULL, incarnation INTEGER NOT NULL, at_ns INTEGER NOT NULL,
      wall_ms INTEGER NOT NULL) STRICT;
    -- phase: 0 final 1 retire.
    CREATE TABLE final_reads (
      row_id INTEGER PRIMARY KEY, key_id INTEGER NOT NULL, phase INTEGER NOT NULL, outcome INTEGER NOT NULL,
      error_id INTEGER, invoke_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, major INTEGER, minor INTEGER,
      partition INTEGER, epoch INTEGER, node_id INTEGER, observed INTEGER, number INTEGER, text TEXT) STRICT;
    CREATE TABLE replica_reads (
      row_id INTEGER PRIMARY KEY, key_id INTEGER NOT NULL, phase INTEGER NOT NULL, node_id INTEGER NOT NULL,
      incarnation INTEGER, role TEXT NOT NULL, at_ns INTEGER NOT NULL, answered INTEGER NOT NULL, observed INTEGER,
      number INTEGER, major INTEGER, minor INTEGER, applied_seq INTEGER, commit_seq INTEGER, text TEXT) STRICT;
    CREATE TABLE digests (
      row_id INTEGER PRIMARY KEY, partition INTEGER NOT NULL, node_id INTEGER NOT NULL, incarnation INTEGER,
      role TEXT NOT NULL, at_ns INTEGER NOT NULL, applied_term INTEGER NOT NULL, applied_seq INTEGER NOT NULL,
      digest TEXT NOT NULL, key_count INTEGER NOT NULL) STRICT;
    CREATE TABLE retirements (
      key_id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, exposed INTEGER NOT NULL) STRICT;
    CREATE TABLE released_keys (key_id INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE gaps (row_id INTEGER PRIMARY KEY, from_ns INTEGER NOT NULL, to_ns INTEGER NOT NULL, reason TEXT NOT NULL) STRICT;
    CREATE TABLE clock (row_id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, wall_ms INTEGER NOT NULL, boot_id TEXT NOT NULL) STRICT;
  `);
};

/** Every step so far; the version of a file is the number of steps that it has been through. */
export const migrations: readonly Migration[] = [createVersion1];

/** The version that this code writes. */
export const schemaVersion = migrations.length;

/** All tables but the hot two, each with its columns in the order in which the writer binds them. */
export const sideTables = {
  meta: ['key', 'json'],
  keys: ['key_id', 'name', 'canary'],
  nodes: ['node_id', 'name'],
  errors: ['error_id', 'text'],
  odd_values: ['op_id', 'text'],
  faults: ['fault_id', 'kind', 'stage', 'at_ns', 'wall_ms', 'targets', 'partitions', 'evidence'],
  epoch_changes: ['partition', 'epoch', 'term', 'node_id', 'incarnation', 'kind', 'health', 'at_ns'],
  incarnations: ['node_id', 'incarnation', 'at_ns', 'wall_ms'],
  final_reads: [
    'key_id',
    'phase',
    'outcome',
    'error_id',
    'invoke_ns',
    'duration_ns',
    'major',
    'minor',
    'partition',
    'epoch',
    'node_id',
    'observed',
    'number',
    'text',
  ],
  replica_reads: [
    'key_id',
    'phase',
    'node_id',
    'incarnation',
    'role',
    'at_ns',
    'answered',
    'observed',
    'number',
    'major',
    'minor',
    'applied_seq',
    'commit_seq',
    'text',
  ],
  digests: [
    'partition',
    'node_id',
    'incarnation',
    'role',
    'at_ns',
    'applied_term',
    'applied_seq',
    'digest',
    'key_count',
  ],
  retirements: ['key_id', 'at_ns', 'exposed'],
  released_keys: ['key_id'],
  gaps: ['from_ns', 'to_ns', 'reason'],
  clock: ['at_ns', 'wall_ms', 'boot_id'],
} as const;

export type SideTable = keyof typeof sideTables;

/** Columns of `operations` in the order in which the writer binds them. */
export const operationColumns = [
  'op_id',
  'session',
  'f',
  'key_id',
  'outcome',
  'why',
  'error_id',
  'invoke_ns',
  'duration_ns',
  'major',
  'minor',
  'partition',
  'epoch',
  'node_id',
  'attempts',
  'observed',
  'number',
  'arg',
  'expected_major',
  'expected_minor',
  'value_bytes',
] as const;

/** Columns of `open_operations` in the order in which the writer binds them. */
export const openColumns = [
  'session',
  'op_id',
  'f',
  'key_id',
  'invoke_ns',
  'number',
  'arg',
  'expected_major',
  'expected_minor',
  'value_bytes',
] as const;

/** The file cannot be used as a ledger; the message is one sentence that says why and what to do. */
export class LedgerFileError extends Error {
  override readonly name = 'LedgerFileError';
  readonly reason: 'missing' | 'not-a-ledger' | 'damaged' | 'newer' | 'older' | 'exists' | 'unwritable';

  constructor(reason: LedgerFileError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Brings a new or older file to the last step. Throws {@link LedgerFileError} for one that is newer. */
export function migrate(db: Database, path: string, steps: readonly Migration[] = migrations): void {
  const from = db.pragma('user_version', { simple: true }) as number;
  if (from > steps.length) throw newerError(path, from, steps.length);
  for (let version = from; version < steps.length; version++) {
    db.transaction(() => {
      (steps[version] as Migration)(db);
      db.pragma(`user_version = ${version + 1}`);
      db.pragma(`application_id = ${applicationId}`);
    })();
  }
}

/** Throws {@link LedgerFileError} unless `db` is a ledger; returns its schema version. */
export function checkIdentity(db: Database, path: string, supported = schemaVersion): number {
  let id: number;
  let version: number;
  try {
    id = db.pragma('application_id', { simple: true }) as number;
    version = db.pragma('user_version', { simple: true }) as number;
  } catch (error) {
    throw new LedgerFileError(
      'damaged',
      `${path} cannot be read as a ledger (${(error as Error).message}); restore it from a copy.`,
    );
  }
  if (id === 0 && isEmpty(db))
    throw new LedgerFileError('damaged', `${path} is empty; its run ended before anything was recorded.`);
  if (id !== applicationId)
    throw new LedgerFileError(
      'not-a-ledger',
      `${path} is a SQLite file but not a ledger; name the ledger.sqlite of a run.`,
    );
  if (version > supported) throw newerError(path, version, supported);
  return version;
}

/** A database without a table: whoever made it died before its first transaction. */
const isEmpty = (db: Database): boolean => db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0;

function newerError(path: string, version: number, supported: number): LedgerFileError {
  return new LedgerFileError(
    'newer',
    `${path} has schema version ${version} and this build knows ${supported}; use the build that wrote it, or a newer one.`,
  );
}
