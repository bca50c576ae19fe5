/**
 * A block of operations in memory, grouped by key: scanned in the order of their ids (the order of the table, the fastest to
 * read), then placed key by key with one counting pass. So no sort is asked of the database, which would halve the rate.
 *
 * A ledger that is larger than a block is read in passes, each over its own share of the keys; a pass skips what is not its
 * own at some 15 million rows per second. Memory is bounded by `rowsPerBlock`, but for a key with more rows than that.
 */
import { type KeyHistory, outcomeCode, sourceCode } from './verify/history.ts';

/** Rows that a block is made for; about 100 bytes each. */
export const rowsPerBlock = 2_500_000;
const firstCapacity = 65_536;

type Cell = number | null;

/** Columns that a block takes, in this order: `SELECT` them so, of `operations` or of `open_operations`. */
export const blockColumns = 'key_id, op_id, f | (outcome << 3), why, invoke_ns, duration_ns, major, minor, expected_major, expected_minor, observed, number, arg, partition, epoch, node_id';
export const openBlockColumns = 'key_id, op_id, f | (2 << 3), NULL, invoke_ns, NULL, NULL, NULL, expected_major, expected_minor, NULL, number, arg, NULL, NULL, NULL';

export class OperationBlock {
  /** Key ids of this block are `offset + n × stride`. */
  private readonly stride: number;
  private rows = 0;
  private slot = new Uint32Array(firstCapacity);
  private operationId = new Float64Array(firstCapacity);
  private code = new Uint8Array(firstCapacity);
  private why = new Int8Array(firstCapacity);
  private invokeNs = new Float64Array(firstCapacity);
  private durationNs = new Float64Array(firstCapacity);
  private major = new Float64Array(firstCapacity);
  private minor = new Float64Array(firstCapacity);
  private expectedMajor = new Float64Array(firstCapacity);
  private expectedMinor = new Float64Array(firstCapacity);
  private observed = new Float64Array(firstCapacity);
  private number = new Float64Array(firstCapacity);
  private argument = new Float64Array(firstCapacity);
  private partition = new Int32Array(firstCapacity);
  private epoch = new Float64Array(firstCapacity);
  private node = new Int16Array(firstCapacity);
  private order = new Uint32Array(0);
  private starts = new Uint32Array(0);

  constructor(stride: number) {
    this.stride = stride;
  }

  /** Empties the block; its memory is kept for the next pass. */
  clear(): void {
    this.rows = 0;
  }

  add(row: readonly Cell[]): void {
    const i = this.rows++;
    if (i === this.operationId.length) this.grow();
    this.slot[i] = Math.floor((row[0] as number) / this.stride);
    this.operationId[i] = row[1] as number;
    this.code[i] = row[2] as number;
    this.why[i] = orMinus(row[3] as Cell);
    this.invokeNs[i] = row[4] as number;
    this.durationNs[i] = orNaN(row[5] as Cell);
    this.major[i] = orNaN(row[6] as Cell);
    this.minor[i] = orNaN(row[7] as Cell);
    this.expectedMajor[i] = orNaN(row[8] as Cell);
    this.expectedMinor[i] = orNaN(row[9] as Cell);
    this.observed[i] = orNaN(row[10] as Cell);
    this.number[i] = orNaN(row[11] as Cell);
    this.argument[i] = orNaN(row[12] as Cell);
    this.partition[i] = orMinus(row[13] as Cell);
    this.epoch[i] = orNaN(row[14] as Cell);
    this.node[i] = orMinus(row[15] as Cell);
  }

  /** Call once all rows are in. Rows of one key keep the order in which they were added. */
  group(): void {
    let slots = 0;
    for (let i = 0; i < this.rows; i++) slots = Math.max(slots, (this.slot[i] as number) + 1);
    if (this.starts.length < slots + 1) this.starts = new Uint32Array(slots + 1);
    this.starts.fill(0);
    for (let i = 0; i < this.rows; i++) {
      const slot = this.slot[i] as number;
      this.starts[slot] = (this.starts[slot] as number) + 1;
    }
    let total = 0;
    for (let slot = 0; slot < this.starts.length; slot++) {
      total += this.starts[slot] as number;
      this.starts[slot] = total;
    }
    if (this.order.length < this.rows) this.order = new Uint32Array(this.rows);
    // From the back: each slot's end moves down to its start, and the order within a key stays.
    for (let i = this.rows - 1; i >= 0; i--) {
      const slot = this.slot[i] as number;
      const place = (this.starts[slot] as number) - 1;
      this.starts[slot] = place;
      this.order[place] = i;
    }
  }

  /** Appends a key's operations to `history`. */
  copyTo(history: KeyHistory): void {
    const slot = Math.floor(history.keyId / this.stride);
    if (slot >= this.starts.length) return;
    const from = this.starts[slot] as number;
    const to = slot + 1 < this.starts.length ? (this.starts[slot + 1] as number) : this.rows;
    for (let place = from; place < to; place++) this.copyRow(this.order[place] as number, history);
  }

  private copyRow(from: number, history: KeyHistory): void {
    const i = history.grow();
    const code = this.code[from] as number;
    const outcome = code >> 3;
    const invokeNs = this.invokeNs[from] as number;
    history.operationId[i] = this.operationId[from] as number;
    history.f[i] = code & 7;
    history.outcome[i] = outcome;
    history.source[i] = sourceCode.operation;
    history.why[i] = this.why[from] as number;
    history.invokeNs[i] = invokeNs;
    history.returnNs[i] = outcome === outcomeCode.info ? Infinity : invokeNs + (this.durationNs[from] as number);
    history.major[i] = this.major[from] as number;
    history.minor[i] = this.minor[from] as number;
    history.expectedMajor[i] = this.expectedMajor[from] as number;
    history.expectedMinor[i] = this.expectedMinor[from] as number;
    history.observed[i] = this.observed[from] as number;
    history.number[i] = this.number[from] as number;
    history.argument[i] = this.argument[from] as number;
    history.partition[i] = this.partition[from] as number;
    history.epoch[i] = this.epoch[from] as number;
    history.node[i] = this.node[from] as number;
  }

  private grow(): void {
    const length = this.operationId.length * 2;
    const floats = (from: Float64Array): Float64Array<ArrayBuffer> => {
      const to = new Float64Array(length);
      to.set(from);
      return to;
    };
    const copy = <T extends { set(from: T): void }>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    this.slot = copy(new Uint32Array(length), this.slot);
    this.operationId = floats(this.operationId);
    this.code = copy(new Uint8Array(length), this.code);
    this.why = copy(new Int8Array(length), this.why);
    this.invokeNs = floats(this.invokeNs);
    this.durationNs = floats(this.durationNs);
    this.major = floats(this.major);
    this.minor = floats(this.minor);
    this.expectedMajor = floats(this.expectedMajor);
    this.expectedMinor = floats(this.expectedMinor);
    this.observed = floats(this.observed);
    this.number = floats(this.number);
    this.argument = floats(this.argument);
    this.partition = copy(new Int32Array(length), this.partition);
    this.epoch = floats(this.epoch);
    this.node = copy(new Int16Array(length), this.node);
  }
}

const orNaN = (cell: Cell): number => (cell === null ? NaN : cell);
const orMinus = (cell: Cell): number => (cell === null ? -1 : cell);
