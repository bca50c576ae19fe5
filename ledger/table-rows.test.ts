/** Tables walked page by page give what SQLite gives; what may not be walked is not; what was misread is noticed. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database, { type Database as Db } from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { decodeRecord } from './record.ts';
import { migrate } from './schema.ts';
import { TableRows } from './table-rows.ts';

let folder = '';
let db: Db;
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ledger-rows-'));
  path = join(folder, 'ledger.sqlite');
  db = new Database(path);
  migrate(db, path);
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Operations as they end, not as they begin, with gaps in their ids; read-backs with texts that fill pages between them. */
function fill(count: number): void {
  const prng = new Prng(9);
  const ids = prng.shuffle(Array.from({ length: count }, (_, index) => index * 3 + 1));
  const operation = db.prepare(
    'INSERT INTO operations (op_id, session, f, key_id, outcome, invoke_ns, duration_ns, observed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const read = db.prepare(
    'INSERT INTO final_reads (key_id, phase, outcome, invoke_ns, duration_ns, observed, text) VALUES (?, 0, 0, ?, 5, ?, ?)',
  );
  db.transaction(() => {
    for (const id of ids) {
      operation.run(
        id,
        prng.below(64),
        prng.below(6),
        prng.below(2 ** 31),
        prng.below(3),
        id * 1e6,
        prng.below(1e6),
        -1,
      );
      if (id % 50 === 1) read.run(id, id * 1e7, null, 'x'.repeat(prng.below(9_000)));
    }
    for (const id of ids.slice(0, count / 10)) db.prepare('DELETE FROM operations WHERE op_id = ?').run(id);
  })();
}

function scanned(table: string, columns: number): number[][] {
  const rows: number[][] = [];
  const cells = new Float64Array(columns);
  new TableRows(path, db).scan(table, (bytes, at, _length, rowId) => {
    decodeRecord(bytes, at, cells);
    rows.push([rowId, ...cells.subarray(1)]);
  });
  return rows;
}

const bySql = (table: string, columns: number): number[][] =>
  (db.prepare(`SELECT * FROM ${table} ORDER BY rowid`).raw().all() as (number | null)[][]).map((row) =>
    row.slice(0, columns).map((cell) => cell ?? NaN),
  );

describe('rows of a table', () => {
  it.each([0, 1, 90, 30_000])('are walked in the order of their ids: %d of them', (count) => {
    fill(count);
    expect(scanned('operations', 21)).toEqual(bySql('operations', 21));
    // All columns before the text.
    expect(scanned('final_reads', 14)).toEqual(bySql('final_reads', 14));
  });

  it('are fetched where a WAL stands beside the file, and are the same', () => {
    db.pragma('journal_mode = WAL');
    fill(5_000);
    const fetched = scanned('operations', 21);
    expect(fetched).toEqual(bySql('operations', 21));
    expect(fetched).toHaveLength(4_500);
    db.pragma('wal_checkpoint(TRUNCATE)');
    expect(scanned('operations', 21)).toEqual(fetched);
  });

  it('that were damaged are not taken for sound', () => {
    fill(3_000);
    const count = db.prepare('SELECT count(*) FROM operations').pluck().get() as number;
    const bytes = readFileSync(path);
    const pageBytes = 4_096;
    // The first leaf that is full: one row fewer than it says.
    for (let page = 1; page * pageBytes < bytes.length; page++) {
      const at = page * pageBytes;
      if (bytes[at] !== 13 || bytes.readUInt16BE(at + 3) < 40) continue;
      const copy = Buffer.from(bytes);
      copy.writeUInt16BE(bytes.readUInt16BE(at + 3) - 1, at + 3);
      const other = join(folder, 'damaged.sqlite');
      writeFileSync(other, copy);
      const seen = (): void => new TableRows(other, db).scan('operations', () => undefined);
      expect(seen).toThrow(new RegExp(`${count - 1} rows of operations were read, and SQLite counts ${count}`));
      return;
    }
    expect.unreachable('a ledger without a leaf');
  });

  it('that were written meanwhile are refused', () => {
    fill(3_000);
    let first = true;
    const scan = (): void =>
      new TableRows(path, db).scan('operations', () => {
        if (!first) return;
        first = false;
        const other = new Database(path);
        other.prepare("INSERT INTO errors (text) VALUES ('late')").run();
        other.close();
      });
    expect(scan).toThrow(/was written while it was read/);
  });
});
