/**
 * Small dense numbers for the values of one key at a time, without a hash where values are small integers.
 *
 * Owns the mapping value → id between two calls of `begin`; if two values shared an id, a phantom would pass.
 */

/** Largest value kept in the flat table; 8 bytes for each. */
const maxFlatValue = 1 << 23;

/** Hands out 0, 1, 2, … to the values it is shown. One instance serves many keys, one after another. */
export class ValueIds {
  private flatIds = new Int32Array(1024);
  private flatStamps = new Int32Array(1024);
  private stamp = 0;
  private readonly others = new Map<number, number>();
  private next = 0;

  /** Forgets all values. */
  begin(): void {
    this.stamp++;
    this.next = 0;
    if (this.others.size > 0) this.others.clear();
  }

  /** Ids handed out since `begin`. */
  get count(): number {
    return this.next;
  }

  /** The id of `value`, a new one at first sight. */
  idOf(value: number): number {
    const slot = value + 1;
    if (slot >= 0 && slot < maxFlatValue && Number.isInteger(slot)) {
      if (slot >= this.flatIds.length) this.grow(slot);
      if (this.flatStamps[slot] === this.stamp) return this.flatIds[slot]!;
      this.flatStamps[slot] = this.stamp;
      return (this.flatIds[slot] = this.next++);
    }
    const known = this.others.get(value);
    if (known !== undefined) return known;
    this.others.set(value, this.next);
    return this.next++;
  }

  private grow(slot: number): void {
    const length = Math.min(maxFlatValue, Math.max(slot + 1, this.flatIds.length * 2));
    const ids = new Int32Array(length);
    ids.set(this.flatIds);
    const stamps = new Int32Array(length);
    stamps.set(this.flatStamps);
    this.flatIds = ids;
    this.flatStamps = stamps;
  }
}
