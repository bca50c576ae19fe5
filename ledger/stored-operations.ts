/** Operations and read-backs as they stand in the file, in words: for timelines and exports. */
import type { Database } from 'better-sqlite3';
import { present } from '../lib/assert.ts';
import * as rows from './rows.ts';

type Cell = number | null;
/** The name of a node by its number. */
type Names = (nodeId: number) => string;

/** One finished or open operation as it stands in the file; for timelines, exports and series. */
export interface StoredOperation {
  readonly operationId: number;
  readonly session: number;
  readonly f: (typeof rows.operationCodes)[number];
  readonly key: string;
  readonly outcome: (typeof rows.outcomeCodes)[number];
  readonly why: (typeof rows.whyCodes)[number] | null;
  readonly error: string | null;
  readonly invokeNs: number;
  /** Null while open (no outcome was recorded). */
  readonly returnNs: number | null;
  readonly version: readonly [number, number] | null;
  readonly partition: number | null;
  readonly epoch: number | null;
  readonly node: string | null;
  readonly attempts: number | null;
  readonly observed: number | null;
  readonly number: number | null;
  readonly argument: number | null;
  readonly expected: readonly [number, number] | null;
}

/** One read-back as it stands in the file. */
export type StoredRead = Pick<
  StoredOperation,
  'key' | 'outcome' | 'error' | 'invokeNs' | 'version' | 'partition' | 'epoch' | 'node' | 'observed' | 'number'
> & {
  readonly phase: rows.Phase;
  readonly returnNs: number;
};

export type WhichOperations = 'all' | 'open' | 'finished';

type Row = [
  number,
  number,
  number,
  string,
  number,
  Cell,
  string | null,
  number,
  Cell,
  Cell,
  Cell,
  Cell,
  Cell,
  Cell,
  Cell,
  Cell,
  Cell,
  Cell,
  Cell,
  Cell,
];

/** Every operation in the order of the ids, then those still open. */
export function* storedOperations(
  db: Database,
  nodeName: Names,
  where: string,
  which: WhichOperations,
): Iterable<StoredOperation> {
  const columns = (open: boolean) =>
    `op_id, session, f, (SELECT name FROM keys k WHERE k.key_id = o.key_id), ${
      open
        ? '2, NULL, NULL, invoke_ns, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, number, arg, expected_major, expected_minor FROM open_operations o'
        : 'outcome, why, (SELECT text FROM errors e WHERE e.error_id = o.error_id), invoke_ns, duration_ns, major, minor, partition, epoch, node_id, attempts, observed, number, arg, expected_major, expected_minor FROM operations o'
    }`;
  const notDone = `${where === '' ? 'WHERE' : `${where} AND`} op_id NOT IN (SELECT op_id FROM operations)`;
  const finished = which === 'open' ? [] : [`SELECT ${columns(false)} ${where} ORDER BY op_id`];
  const open = which === 'finished' ? [] : [`SELECT ${columns(true)} ${notDone} ORDER BY op_id`];
  for (const sql of [...finished, ...open]) {
    for (const row of db.prepare(sql).raw().iterate() as Iterable<Row>) yield stored(row, nodeName);
  }
}

function stored(row: Row, nodeName: Names): StoredOperation {
  const [
    operationId,
    session,
    f,
    key,
    outcome,
    why,
    error,
    invokeNs,
    durationNs,
    major,
    minor,
    partition,
    epoch,
    node,
    attempts,
    observed,
    number,
    argument,
    expectedMajor,
    expectedMinor,
  ] = row;
  return {
    operationId,
    session,
    f: present(rows.operationCodes[f], 'f'),
    key,
    outcome: present(rows.outcomeCodes[outcome], 'outcome'),
    why: why === null ? null : present(rows.whyCodes[why], 'why'),
    error,
    invokeNs,
    returnNs: durationNs === null ? null : invokeNs + durationNs,
    version: pair(major, minor),
    partition,
    epoch,
    node: node === null ? null : nodeName(node),
    attempts,
    observed,
    number,
    argument,
    expected: pair(expectedMajor, expectedMinor),
  };
}

type ReadRow = [string, number, number, string | null, number, number, Cell, Cell, Cell, Cell, Cell, Cell, Cell];

/** Read-backs through the client in the order in which they were recorded; for exports. */
export function* storedReads(db: Database, nodeName: Names): Iterable<StoredRead> {
  const sql =
    'SELECT (SELECT name FROM keys k WHERE k.key_id = r.key_id), phase, outcome, (SELECT text FROM errors e WHERE e.error_id = r.error_id), invoke_ns, duration_ns, major, minor, partition, epoch, node_id, observed, number FROM final_reads r ORDER BY row_id';
  for (const [
    key,
    phase,
    outcome,
    error,
    invokeNs,
    durationNs,
    major,
    minor,
    partition,
    epoch,
    node,
    observed,
    number,
  ] of db.prepare(sql).raw().iterate() as Iterable<ReadRow>) {
    yield {
      key,
      phase: present(rows.phaseCodes[phase], 'phase'),
      outcome: present(rows.outcomeCodes[outcome], 'outcome'),
      error,
      invokeNs,
      returnNs: invokeNs + durationNs,
      version: pair(major, minor),
      partition,
      epoch,
      node: node === null ? null : nodeName(node),
      observed,
      number,
    };
  }
}

const pair = (major: Cell, minor: Cell): readonly [number, number] | null =>
  major === null ? null : [major, minor ?? 0];
