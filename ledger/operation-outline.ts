/** Operations as series, latencies and counts need them: no key, no value, one object for all. */
import type { Database } from 'better-sqlite3';
import { present } from '../lib/assert.ts';
import { decodeRecord } from './record.ts';
import * as rows from './rows.ts';
import type { TableRows } from './table-rows.ts';

export interface OperationOutline {
  readonly f: (typeof rows.operationCodes)[number];
  readonly outcome: (typeof rows.outcomeCodes)[number];
  readonly why: (typeof rows.whyCodes)[number] | null;
  readonly error: string | null;
  readonly invokeNs: number;
  /** Null while open (no outcome was recorded). */
  readonly returnNs: number | null;
  readonly partition: number | null;
}

/** Columns up to `partition`. */
const columnCount = 12;

/** Visits finished operations in the order of their ids, then those still open. */
export function readOutlines(db: Database, table: TableRows, visit: (operation: OperationOutline) => void): void {
  const errors = new Map(db.prepare('SELECT error_id, text FROM errors').raw().all() as [number, string][]);
  const cells = new Float64Array(columnCount);
  const outline: { -readonly [Name in keyof OperationOutline]: OperationOutline[Name] } = {
    f: 'read',
    outcome: 'ok',
    why: null,
    error: null,
    invokeNs: 0,
    returnNs: null,
    partition: null,
  };
  table.scan('operations', (bytes, at) => {
    decodeRecord(bytes, at, cells);
    outline.f = present(rows.operationCodes[cells[2] as number], 'f');
    outline.outcome = present(rows.outcomeCodes[cells[4] as number], 'outcome');
    const [why, error, partition] = [cells[5] as number, cells[6] as number, cells[11] as number];
    outline.why = why === why ? present(rows.whyCodes[why], 'why') : null;
    outline.error = error === error ? (errors.get(error) ?? null) : null;
    outline.invokeNs = cells[7] as number;
    outline.returnNs = outline.invokeNs + (cells[8] as number);
    outline.partition = partition === partition ? partition : null;
    visit(outline);
  });
  const open = db
    .prepare(
      'SELECT f, invoke_ns FROM open_operations WHERE op_id NOT IN (SELECT op_id FROM operations) ORDER BY op_id',
    )
    .raw()
    .all() as [number, number][];
  for (const [f, invokeNs] of open)
    visit({
      f: present(rows.operationCodes[f], 'f'),
      outcome: 'info',
      why: null,
      error: null,
      invokeNs,
      returnNs: null,
      partition: null,
    });
}
