/**
 * Small dense numbers for the values of one key at a time: an open-addressing table that is forgotten, not cleared, between
 * keys, and no larger than the key needs, so that it stays in the cache.
 *
 * Owns the mapping value → id between two calls of `begin`; if two values shared an id, a phantom would pass.
 */

/** Slots at the start; a power of two. */
const initialSlots = 1 << 10;

/** Hands out 0, 1, 2, … to the values it is shown. One instance serves many keys, one after another. */
export class ValueIds {
  private values = new Float64Array(initialSlots);
  private ids = new Int32Array(initialSlots);
  private stamps = new Int32Array(initialSlots);
  private stamp = 0;
  private mask = initialSlots - 1;
  private next = 0;

  /** Forgets all values. `expected` values or fewer will come without the table having to grow. */
  begin(expected = 0): void {
    this.stamp++;
    this.next = 0;
    let slots = initialSlots;
    while (slots < expected * 2) slots *= 2;
    if (slots > this.values.length) this.allocate(slots);
    this.mask = slots - 1;
  }

  /** The id of `value`, a new one at first sight. */
  idOf(value: number): number {
    let slot = hash(value) & this.mask;
    while (this.stamps[slot] === this.stamp) {
      if (this.values[slot] === value) return this.ids[slot]!;
      slot = (slot + 1) & this.mask;
    }
    if ((this.next + 1) * 2 > this.mask + 1) {
      this.grow();
      return this.idOf(value);
    }
    this.stamps[slot] = this.stamp;
    this.values[slot] = value;
    return (this.ids[slot] = this.next++);
  }

  private allocate(slots: number): void {
    this.values = new Float64Array(slots);
    this.ids = new Int32Array(slots);
    this.stamps = new Int32Array(slots);
  }

  private grow(): void {
    const { values, ids, stamps, stamp } = this;
    const slots = (this.mask + 1) * 2;
    this.allocate(Math.max(slots, values.length));
    this.mask = slots - 1;
    for (let from = 0; from < slots / 2; from++) {
      if (stamps[from] !== stamp) continue;
      let slot = hash(values[from]!) & this.mask;
      while (this.stamps[slot] === stamp) slot = (slot + 1) & this.mask;
      this.stamps[slot] = stamp;
      this.values[slot] = values[from]!;
      this.ids[slot] = ids[from]!;
    }
  }
}

/** Integers below 2^53 differ in one of their halves; other numbers may share a hash, not an id. */
function hash(value: number): number {
  const mixed = Math.imul((value % 4294967296) ^ Math.imul(Math.floor(value / 4294967296), 0x85ebca6b), 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
