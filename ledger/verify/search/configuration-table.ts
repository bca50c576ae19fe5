/**
 * A set of search configurations, each a run of 32-bit integers, in one growing arena with open addressing.
 *
 * Owns exact membership: hashes only find candidates, the integers are compared. If two configurations were taken for
 * one, the search would skip an explanation and call a good store bad.
 */

/** Words of the arena at the start. */
const initialWords = 1 << 14;

/** Members are the first `length` entries of `key`; lengths may differ. */
export class ConfigurationTable {
  private words = new Int32Array(initialWords);
  private used = 1;
  private slots = new Int32Array(1 << 10);
  private size = 0;
  private readonly maxBytes: number;
  /** How often the table was emptied because it was full. */
  clearedCount = 0;

  constructor(maxBytes: number) {
    this.maxBytes = Math.max(maxBytes, 4 * (initialWords + (1 << 10)));
  }

  /** Bytes held. */
  get bytes(): number {
    return 4 * (this.words.length + this.slots.length);
  }

  /** Adds the configuration; false when it was there already. Empties itself first when it would pass its bound. */
  add(key: Int32Array, length: number): boolean {
    if ((this.size + 1) * 2 > this.slots.length) this.growSlots();
    let slot = hash(key, length) & (this.slots.length - 1);
    for (let at = this.slots[slot]!; at !== 0; at = this.slots[slot]!) {
      if (this.isAt(at, key, length)) return false;
      slot = (slot + 1) & (this.slots.length - 1);
    }
    if (this.used + length + 1 > this.words.length && !this.growWords(length + 1)) {
      this.clear();
      return this.add(key, length);
    }
    this.slots[slot] = this.used;
    this.words[this.used] = length;
    for (let index = 0; index < length; index++) this.words[this.used + 1 + index] = key[index]!;
    this.used += length + 1;
    this.size++;
    return true;
  }

  private isAt(at: number, key: Int32Array, length: number): boolean {
    if (this.words[at] !== length) return false;
    for (let index = 0; index < length; index++) {
      if (this.words[at + 1 + index] !== key[index]) return false;
    }
    return true;
  }

  private growWords(need: number): boolean {
    const length = Math.max(this.words.length * 2, this.used + need);
    if (4 * (length + this.slots.length) > this.maxBytes) return false;
    const words = new Int32Array(length);
    words.set(this.words.subarray(0, this.used));
    this.words = words;
    return true;
  }

  private growSlots(): void {
    const length = this.slots.length * 2;
    if (4 * (length + this.words.length) > this.maxBytes) {
      this.clear();
      return;
    }
    this.slots = new Int32Array(length);
    for (let at = 1; at < this.used; at += this.words[at]! + 1) {
      let slot = hash(this.words.subarray(at + 1, at + 1 + this.words[at]!), this.words[at]!) & (length - 1);
      while (this.slots[slot] !== 0) slot = (slot + 1) & (length - 1);
      this.slots[slot] = at;
    }
  }

  private clear(): void {
    this.slots.fill(0);
    this.used = 1;
    this.size = 0;
    this.clearedCount++;
  }
}

function hash(key: Int32Array, length: number): number {
  let value = length;
  for (let index = 0; index < length; index++) {
    value = Math.imul(value ^ key[index]!, 0x9e3779b1);
    value ^= value >>> 15;
  }
  value = Math.imul(value ^ (value >>> 13), 0x85ebca6b);
  return (value ^ (value >>> 16)) >>> 0;
}
