/**
 * Rows of many keys in memory, as records, so that they can be had key by key: first they are thrown into buckets of neighbouring
 * keys, in the order in which they come; then one bucket after the other is put in the order of its keys.
 *
 * Two steps, because a row is then written and read beside its neighbours: with a million keys, a single step would fetch each row
 * from anywhere in memory. Invariant: rows of one key keep the order in which they were added. Memory: what was added, some
 * twenty bytes a row, and one bucket's index; a bucket's memory is used again once it is done.
 */
import { assert } from '../lib/assert.ts';

const chunkBytes = 1 << 16;
/** Aim of one bucket: it should fit a cache. */
const bucketBytes = 1 << 21;
/** Slot, row id, table and length before each record. */
const headBytes = 4 + 8 + 1 + 2;
/** Longer records are cut; what is looked at stands before. */
const maxRecordBytes = 1_024;

export type ArenaVisitor = (table: number, rowId: number, bytes: Uint8Array, at: number) => void;

export class RowArena {
  private readonly shift: number;
  private readonly buckets: number[][];
  /** Bytes used of each bucket's last chunk. */
  private readonly used: Uint32Array;
  private readonly chunks: { readonly bytes: Uint8Array; readonly view: DataView }[] = [];
  private readonly free: number[] = [];
  private loaded = -1;
  private addresses = new Uint32Array(1_024);
  private slots = new Uint32Array(1_024);
  private order = new Uint32Array(1_024);
  private readonly starts: Uint32Array;

  /** `slotCount` keys, numbered from 0, with `expectedBytes` of rows. */
  constructor(slotCount: number, expectedBytes: number) {
    const wanted = Math.max(1, Math.min(1_024, Math.ceil(expectedBytes / bucketBytes)));
    this.shift = Math.max(0, Math.ceil(Math.log2(Math.max(1, slotCount / wanted))));
    const count = ((slotCount - 1) >> this.shift) + 1;
    this.buckets = Array.from({ length: Math.max(1, count) }, () => []);
    this.used = new Uint32Array(this.buckets.length).fill(chunkBytes);
    this.starts = new Uint32Array((1 << this.shift) + 1);
  }

  /** Copies a row in. */
  add(slot: number, table: number, rowId: number, record: Uint8Array, from: number, length: number): void {
    const kept = length > maxRecordBytes ? maxRecordBytes : length;
    const bucket = slot >> this.shift;
    const list = this.buckets[bucket];
    assert(list !== undefined, 'a slot of this arena');
    if ((this.used[bucket] as number) + headBytes + kept + 4 > chunkBytes) this.extend(bucket, list);
    const chunk = this.chunks[list[list.length - 1] as number] as { bytes: Uint8Array; view: DataView };
    let at = this.used[bucket] as number;
    const { bytes, view } = chunk;
    view.setUint32(at, slot + 1, true);
    view.setFloat64(at + 4, rowId, true);
    bytes[at + 12] = table;
    view.setUint16(at + 13, kept, true);
    at += headBytes;
    const end = from + kept;
    for (let next = from; next < end; next++) bytes[at++] = record[next] as number;
    this.used[bucket] = at;
  }

  /** Visits the rows of one key. Slots must be asked for in ascending order; what lies before is gone. */
  visit(slot: number, visitor: ArenaVisitor): void {
    const bucket = slot >> this.shift;
    if (bucket !== this.loaded) this.load(bucket);
    const within = slot - (bucket << this.shift);
    const to = this.starts[within + 1] as number;
    for (let place = this.starts[within] as number; place < to; place++) {
      const address = this.addresses[this.order[place] as number] as number;
      const { bytes, view } = this.chunks[address >>> 16] as { bytes: Uint8Array; view: DataView };
      const at = address & (chunkBytes - 1);
      visitor(bytes[at + 12] as number, view.getFloat64(at + 4, true), bytes, at + headBytes);
    }
  }

  /** Ready for other rows; the memory is kept. */
  clear(): void {
    for (const bucket of this.buckets.keys()) this.giveBack(bucket);
    this.used.fill(chunkBytes);
    this.loaded = -1;
  }

  private giveBack(bucket: number): void {
    const list = this.buckets[bucket] as number[];
    for (const chunk of list) this.free.push(chunk);
    list.length = 0;
  }

  private extend(bucket: number, list: number[]): void {
    const last = list[list.length - 1];
    // A slot of nought ends the chunk.
    if (last !== undefined && (this.used[bucket] as number) + 4 <= chunkBytes)
      this.chunks[last]?.view.setUint32(this.used[bucket] as number, 0, true);
    let next = this.free.pop();
    if (next === undefined) {
      const bytes = new Uint8Array(chunkBytes);
      next = this.chunks.push({ bytes, view: new DataView(bytes.buffer) }) - 1;
      assert(next < 1 << 16, 'an arena of at most 4 GiB');
    }
    list.push(next);
    this.used[bucket] = 0;
  }

  /** Puts a bucket in the order of its keys, and gives back the memory of those before it. */
  private load(bucket: number): void {
    assert(bucket > this.loaded, 'keys are asked for in ascending order');
    for (let done = Math.max(0, this.loaded); done < bucket; done++) this.giveBack(done);
    this.loaded = bucket;
    const { starts } = this;
    starts.fill(0);
    const rows = this.index(bucket);
    for (let slot = 1; slot < starts.length; slot++)
      starts[slot] = (starts[slot] as number) + (starts[slot - 1] as number);
    // From the back: each slot's end moves down to its start, and the order within a key stays.
    for (let row = rows - 1; row >= 0; row--) {
      const slot = this.slots[row] as number;
      const place = (starts[slot] as number) - 1;
      starts[slot] = place;
      this.order[place] = row;
    }
    starts[starts.length - 1] = rows;
  }

  /** Notes where each row of the bucket lies, and counts the rows of each slot. */
  private index(bucket: number): number {
    const list = this.buckets[bucket] as number[];
    const first = bucket << this.shift;
    let row = 0;
    for (const [index, number] of list.entries()) {
      const { view } = this.chunks[number] as { view: DataView };
      const end = index === list.length - 1 ? (this.used[bucket] as number) : chunkBytes - 4;
      for (let at = 0; at < end;) {
        const slot = view.getUint32(at, true);
        if (slot === 0) break;
        if (row === this.addresses.length) this.grow();
        const within = slot - 1 - first;
        this.slots[row] = within;
        this.addresses[row] = number * chunkBytes + at;
        this.starts[within] = (this.starts[within] as number) + 1;
        row++;
        at += headBytes + view.getUint16(at + 13, true);
      }
    }
    return row;
  }

  private grow(): void {
    const larger = this.addresses.length * 2;
    const copy = (from: Uint32Array): Uint32Array<ArrayBuffer> => {
      const to = new Uint32Array(larger);
      to.set(from);
      return to;
    };
    this.addresses = copy(this.addresses);
    this.slots = copy(this.slots);
    this.order = new Uint32Array(larger);
  }
}
