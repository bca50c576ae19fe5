/**
 * The rows of one table in the order of their ids, as records (record.ts), as fast as they can be had.
 *
 * A file that nobody writes is read page by page: its b-tree is walked here, which takes a sixth of the time that a row takes
 * through a statement. A file with a WAL or a journal beside it goes through SQLite. Invariant: both ways give the same rows. If
 * they differed, a verdict would rest on rows that are not there; so the first walk of a table compares its count, and a sample,
 * with SQLite's own answer, and a file that changed under the walk is refused. Source: "Database File Format", sqlite.org, §1.5–1.6.
 */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import type { Database, Statement } from 'better-sqlite3';
import { assert, present } from '../lib/assert.ts';
import { decodeRecord, encodeRecord, maxEncodedBytes } from './record.ts';

/** Told of each row: its record begins at `at`; `length` bytes of it are at hand, which hold at least the columns before any long text. */
export type RowVisitor = (bytes: Uint8Array, at: number, length: number, rowId: number) => void;

const windowBytes = 1 << 20;
/** Rows of a table that are compared with SQLite's reading. */
const sampleRows = 64;
/** Rows that a statement fetches at once: one by one costs half as much again. */
const rowsPerFetch = 2_000;
const leafType = 13;
const interiorType = 5;
const leafHeaderBytes = 8;
const interiorHeaderBytes = 12;
const fileHeaderBytes = 100;

/** Rows of any table of one ledger. */
export class TableRows {
  private readonly path: string;
  private readonly db: Database;
  private readonly checked = new Set<string>();

  constructor(path: string, db: Database) {
    this.path = path;
    this.db = db;
  }

  /** Calls `visit` for every row of the table, ids ascending. What it is given is valid during the call only. */
  scan(table: string, visit: RowVisitor): void {
    if (!this.mayWalk()) {
      this.fetch(table, visit);
      return;
    }
    const before = statSync(this.path);
    if (this.checked.has(table)) this.walk(table, visit);
    else {
      const sample = new Sample(this.db, table);
      this.walk(table, (bytes, at, length, rowId) => {
        sample.saw(bytes, at, length, rowId);
        visit(bytes, at, length, rowId);
      });
      sample.compare();
      this.checked.add(table);
    }
    const after = statSync(this.path);
    if (before.mtimeMs !== after.mtimeMs || before.size !== after.size || !this.mayWalk())
      throw new Error(`${this.path} was written while it was read; judge it again once nobody writes it.`);
  }

  /** Everything is in the file itself, and its pages are whole. */
  private mayWalk(): boolean {
    const isThere = (suffix: string): boolean =>
      existsSync(`${this.path}${suffix}`) && statSync(`${this.path}${suffix}`).size > 0;
    return !isThere('-wal') && !isThere('-journal') && this.reservedBytes() === 0;
  }

  private reservedBytes(): number {
    const header = Buffer.alloc(fileHeaderBytes);
    const file = openSync(this.path, 'r');
    readSync(file, header, 0, fileHeaderBytes, 0);
    closeSync(file);
    return header[20] as number;
  }

  private walk(table: string, visit: RowVisitor): void {
    const root = this.db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(table) as number;
    const pageBytes = this.db.pragma('page_size', { simple: true }) as number;
    const tree = new Tree(openSync(this.path, 'r'), pageBytes);
    try {
      tree.walk(present(root, `root page of ${table}`), visit);
    } finally {
      tree.close();
    }
  }

  private fetch(table: string, visit: RowVisitor): void {
    const sql = `SELECT rowid, * FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${rowsPerFetch}`;
    const statement: Statement = this.db.prepare(sql).raw();
    const scratch = new Uint8Array(maxEncodedBytes(statement.columns().length));
    let after = Number.MIN_SAFE_INTEGER;
    for (;;) {
      const rows = statement.all(after) as [number, ...Values][];
      if (rows.length === 0) return;
      for (const [rowId, ...values] of rows) {
        after = rowId;
        visit(scratch, 0, encodeRecord(values, scratch, 0), rowId);
      }
    }
  }
}

type Values = (number | string | null)[];

/** Keeps every so-manyth row, and counts. */
class Sample {
  private readonly statement: Statement;
  private readonly table: string;
  private readonly count: number;
  private readonly step: number;
  private readonly kept: { readonly rowId: number; readonly record: Uint8Array }[] = [];
  private seen = 0;

  constructor(db: Database, table: string) {
    this.table = table;
    this.count = db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
    this.statement = db.prepare(`SELECT * FROM ${table} WHERE rowid = ?`).raw();
    this.step = Math.max(1, Math.floor(this.count / sampleRows));
  }

  saw(bytes: Uint8Array, at: number, length: number, rowId: number): void {
    if (this.seen++ % this.step === 0)
      this.kept.push({ rowId, record: Uint8Array.from(bytes.subarray(at, at + length)) });
  }

  compare(): void {
    assert(this.seen === this.count, `${this.seen} rows of ${this.table} were read, and SQLite counts ${this.count}`);
    const names = this.statement.columns();
    const cells = new Float64Array(names.length);
    for (const { rowId, record } of this.kept) {
      const row = present(this.statement.get(rowId) as Values | undefined, `row ${rowId} of ${this.table}`);
      decodeRecord(record, 0, cells);
      // The id, the first column, stands outside the record.
      for (let column = 1; column < cells.length; column++) {
        const value = row[column];
        const isSame = typeof value === 'number' ? value === cells[column] : Number.isNaN(cells[column]);
        assert(isSame, `row ${rowId} of ${this.table} was misread in column ${names[column]?.name}`);
      }
    }
  }
}

/** Walks a table's b-tree in the order of its row ids. */
class Tree {
  private readonly file: number;
  private readonly pageBytes: number;
  private readonly window: Buffer;
  private windowFrom = -1;

  constructor(file: number, pageBytes: number) {
    this.file = file;
    this.pageBytes = pageBytes;
    this.window = Buffer.alloc(Math.max(windowBytes, pageBytes));
  }

  close(): void {
    closeSync(this.file);
  }

  walk(root: number, visit: RowVisitor): void {
    this.subtree(root, this.depthOf(root), visit);
  }

  /** Levels above the leaves; all leaves lie equally deep. */
  private depthOf(root: number): number {
    let depth = 0;
    for (let page = this.single(root); page.bytes[page.at] === interiorType; depth++)
      page = this.single(childOf(page, 0));
    return depth;
  }

  private subtree(number: number, depth: number, visit: RowVisitor): void {
    if (depth === 0) {
      this.leaf(number, visit);
      return;
    }
    const page = this.single(number);
    assert(page.bytes[page.at] === interiorType, 'a page between root and leaves');
    for (let cell = 0; cell <= cellsOf(page); cell++) this.subtree(childOf(page, cell), depth - 1, visit);
  }

  private leaf(number: number, visit: RowVisitor): void {
    const start = (number - 1) * this.pageBytes;
    const from = Math.floor(start / this.window.length) * this.window.length;
    if (from !== this.windowFrom) {
      readSync(this.file, this.window, 0, this.window.length, from);
      this.windowFrom = from;
    }
    const bytes = this.window;
    const base = start - from;
    const at = number === 1 ? base + fileHeaderBytes : base;
    assert(bytes[at] === leafType, 'a leaf of a table');
    const cells = cellsOf({ bytes, at, base });
    for (let cell = 0; cell < cells; cell++) {
      const pointer = at + leafHeaderBytes + 2 * cell;
      let next = base + (((bytes[pointer] as number) << 8) | (bytes[pointer + 1] as number));
      let byte = bytes[next++] as number;
      let length = byte & 127;
      while (byte > 127) {
        byte = bytes[next++] as number;
        length = length * 128 + (byte & 127);
      }
      byte = bytes[next++] as number;
      let rowId = byte & 127;
      while (byte > 127) {
        byte = bytes[next++] as number;
        rowId = rowId * 128 + (byte & 127);
      }
      visit(bytes, next, this.localBytes(length), rowId);
    }
  }

  /** Bytes of a record that stand on the page itself; the rest of a long text lies elsewhere and is not needed. */
  private localBytes(length: number): number {
    const most = this.pageBytes - 35;
    if (length <= most) return length;
    const least = Math.floor(((this.pageBytes - 12) * 32) / 255) - 23;
    const fitting = least + ((length - least) % (this.pageBytes - 4));
    return fitting <= most ? fitting : least;
  }

  /** One page read for itself: those above the leaves lie far from them. */
  private single(number: number): Page {
    const bytes = Buffer.alloc(this.pageBytes);
    readSync(this.file, bytes, 0, this.pageBytes, (number - 1) * this.pageBytes);
    return { bytes, at: number === 1 ? fileHeaderBytes : 0, base: 0 };
  }
}

interface Page {
  readonly bytes: Buffer;
  /** Where the page's header begins, and the page itself. */
  readonly at: number;
  readonly base: number;
}

const cellsOf = ({ bytes, at }: Page): number => ((bytes[at + 3] as number) << 8) | (bytes[at + 4] as number);

/** Child page before the given cell; the rightmost one after the last. */
function childOf(page: Page, cell: number): number {
  const { bytes, at, base } = page;
  if (cell === cellsOf(page)) return bytes.readUInt32BE(at + leafHeaderBytes);
  return bytes.readUInt32BE(base + bytes.readUInt16BE(at + interiorHeaderBytes + 2 * cell));
}
