/** Records as SQLite itself wrote them, read without it: every width of number, NULL, and texts of any length between them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { columnOf, decodeRecord, encodeRecord, maxEncodedBytes } from './record.ts';
import { TableRows } from './table-rows.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ledger-record-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const edges = [
  0,
  1,
  -1,
  127,
  128,
  -128,
  -129,
  32_767,
  -32_768,
  2 ** 23,
  -(2 ** 23) - 1,
  2 ** 31,
  2 ** 47,
  -(2 ** 47) - 1,
];
const number = fc.oneof(
  fc.constant(null),
  fc.constantFrom(...edges),
  fc.integer({ min: -(2 ** 52), max: 2 ** 52 }),
  fc.integer({ min: -300, max: 300 }),
);
const row = fc.record({ a: number, b: number, text: fc.string({ maxLength: 6_000 }), c: number });

const nan = (value: number | null): number => value ?? NaN;

describe('records', () => {
  it('of SQLite are read as SQLite reads them', () => {
    let file = 0;
    const property = fc.property(fc.array(row, { minLength: 1, maxLength: 40 }), (rows) => {
      const path = join(folder, `r${file++}.sqlite`);
      const db = new Database(path);
      db.exec('CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, text TEXT, c INTEGER) STRICT');
      const insert = db.prepare('INSERT INTO t (a, b, c, text) VALUES (?, ?, ?, ?)');
      for (const { a, b, c, text } of rows) insert.run(a, b, c, text);
      const seen: number[][] = [];
      const cells = new Float64Array(5);
      new TableRows(path, db).scan('t', (bytes, at, length, rowId) => {
        // A long text goes on elsewhere; what stands after it cannot be had, and no table of ours has such a column.
        const isWhole = bytes[at] !== undefined && length < 4_000;
        decodeRecord(bytes, at, isWhole ? cells : cells.fill(NaN).subarray(0, 3));
        seen.push([rowId, ...cells.subarray(1, 3), isWhole ? (cells[4] as number) : NaN]);
      });
      db.close();
      expect(seen).toEqual(
        rows.map(({ a, b, c, text }, index) => [
          index + 1,
          nan(a),
          nan(b),
          Buffer.byteLength(text) < 3_950 ? nan(c) : seen[index]?.[3],
        ]),
      );
    });
    fc.assert(property, { seed: 4, numRuns: 60 });
  });

  it('of ours come out as they went in', () => {
    const property = fc.property(fc.array(number, { minLength: 1, maxLength: 30 }), (values) => {
      const bytes = new Uint8Array(7 + maxEncodedBytes(values.length));
      const length = encodeRecord(values, bytes, 7);
      expect(length).toBeLessThanOrEqual(maxEncodedBytes(values.length));
      const cells = new Float64Array(values.length + 2);
      decodeRecord(bytes, 7, cells);
      expect([...cells]).toEqual([...values.map(nan), NaN, NaN]);
    });
    fc.assert(property, { seed: 5, numRuns: 2_000 });
  });

  it('give one column without the others', () => {
    for (const value of edges) {
      const bytes = new Uint8Array(64);
      encodeRecord([null, 3, 70_000, value, 9], bytes, 2);
      expect(columnOf(bytes, 2, 3)).toBe(value);
      expect(columnOf(bytes, 2, 2)).toBe(70_000);
      expect(() => columnOf(bytes, 2, 0)).toThrow(/holds a number/);
    }
  });
});
