/**
 * A block of operations in memory, grouped by key: scanned in the order of their ids (the order of the table, the fastest to
 * read), then placed key by key with one counting pass. So no sort is asked of the database, which would halve the rate.
 * Rows stand whole, one after the other: a key's rows lie far apart, and each costs two cache lines instead of sixteen.
 *
 * A ledger that is larger than a block is read in passes, each over its own share of the keys; a pass skips what is not its
 * own at some 15 million rows per second. Memory is bounded by `rowsPerBlock`, but for a key with more rows than that.
 */
import { type KeyHistory, outcomeCode, sourceCode } from './verify/history.ts';

/** Rows that a block is made for; `rowBytes` each. */
export const rowsPerBlock = 2_000_000;
const firstCapacity = 65_536;

type Cell = number | null;

/** Columns that a block takes, in this order: `SELECT` them so, of `operations` or of `open_operations`. */
export const blockColumns =
  'key_id, op_id, f | (outcome << 3), why, invoke_ns, duration_ns, major, minor, expected_major, expected_minor, observed, number, arg, partition, epoch, node_id';
export const openBlockColumns =
  'key_id, op_id, f | (2 << 3), NULL, invoke_ns, NULL, NULL, NULL, expected_major, expected_minor, NULL, number, arg, NULL, NULL, NULL';
/** Numbers per row: all columns but the key. */
const stride = 15;

export class OperationBlock {
  /** Key ids of this block differ by multiples of this. */
  private readonly keyStride: number;
  private rows = 0;
  private slots = new Uint32Array(firstCapacity);
  private cells = new Float64Array(firstCapacity * stride);
  private order = new Uint32Array(0);
  private starts = new Uint32Array(0);

  constructor(keyStride: number) {
    this.keyStride = keyStride;
  }

  /** Empties the block; its memory is kept for the next pass. */
  clear(): void {
    this.rows = 0;
  }

  add(row: readonly Cell[]): void {
    if (this.rows === this.slots.length) this.grow();
    const i = this.rows++;
    this.slots[i] = Math.floor((row[0] as number) / this.keyStride);
    const { cells } = this;
    const at = i * stride - 1;
    for (let column = 1; column <= stride; column++) {
      const cell = row[column] as Cell;
      cells[at + column] = cell === null ? NaN : cell;
    }
  }

  /** Call once all rows are in. Rows of one key keep the order in which they were added. */
  group(): void {
    let slotCount = 0;
    for (let i = 0; i < this.rows; i++) slotCount = Math.max(slotCount, (this.slots[i] as number) + 1);
    if (this.starts.length < slotCount + 1) this.starts = new Uint32Array(slotCount + 1);
    this.starts.fill(0);
    for (let i = 0; i < this.rows; i++) {
      const slot = this.slots[i] as number;
      this.starts[slot] = (this.starts[slot] as number) + 1;
    }
    let total = 0;
    for (let slot = 0; slot < this.starts.length; slot++) {
      total += this.starts[slot] as number;
      this.starts[slot] = total;
    }
    if (this.order.length < this.rows) this.order = new Uint32Array(this.slots.length);
    // From the back: each slot's end moves down to its start, and the order within a key stays.
    for (let i = this.rows - 1; i >= 0; i--) {
      const slot = this.slots[i] as number;
      const place = (this.starts[slot] as number) - 1;
      this.starts[slot] = place;
      this.order[place] = i;
    }
  }

  /** Appends a key's operations to `history`. */
  copyTo(history: KeyHistory): void {
    const slot = Math.floor(history.keyId / this.keyStride);
    if (slot >= this.starts.length) return;
    const from = this.starts[slot] as number;
    const to = slot + 1 < this.starts.length ? (this.starts[slot + 1] as number) : this.rows;
    for (let place = from; place < to; place++) this.copyRow((this.order[place] as number) * stride, history);
  }

  private copyRow(at: number, history: KeyHistory): void {
    const { cells } = this;
    const i = history.grow();
    const code = cells[at + 1] as number;
    const outcome = code >> 3;
    const invokeNs = cells[at + 3] as number;
    history.operationId[i] = cells[at] as number;
    history.f[i] = code & 7;
    history.outcome[i] = outcome;
    history.source[i] = sourceCode.operation;
    history.why[i] = orMinus(cells[at + 2] as number);
    history.invokeNs[i] = invokeNs;
    history.returnNs[i] = outcome === outcomeCode.info ? Infinity : invokeNs + (cells[at + 4] as number);
    history.major[i] = cells[at + 5] as number;
    history.minor[i] = cells[at + 6] as number;
    history.expectedMajor[i] = cells[at + 7] as number;
    history.expectedMinor[i] = cells[at + 8] as number;
    history.observed[i] = cells[at + 9] as number;
    history.number[i] = cells[at + 10] as number;
    history.argument[i] = cells[at + 11] as number;
    history.partition[i] = orMinus(cells[at + 12] as number);
    history.epoch[i] = cells[at + 13] as number;
    history.node[i] = orMinus(cells[at + 14] as number);
  }

  private grow(): void {
    const rows =
      this.slots.length < rowsPerBlock && this.slots.length * 2 > rowsPerBlock ? rowsPerBlock : this.slots.length * 2;
    const slots = new Uint32Array(rows);
    slots.set(this.slots);
    this.slots = slots;
    const cells = new Float64Array(rows * stride);
    cells.set(this.cells);
    this.cells = cells;
  }
}

const orMinus = (cell: number): number => (cell === cell ? cell : -1);
