/**
 * Values under numbers, each there for a short while: found by the low bits of its number. In place of a Map where entries come and
 * go with every operation: a Map that fills and empties leaves dead tables behind that keep young objects alive (zaris/README.md).
 *
 * Invariant: what was put in stays until it is taken out, however many there are. Were one forgotten, an operation would never end.
 */

/** Places for what is under way; a power of two. */
const placeCount = 1_024;

export class OpenTable<T> {
  /** 0: the place is free. */
  private readonly numbers: number[] = new Array<number>(placeCount).fill(0);
  private readonly values: (T | undefined)[] = new Array<T | undefined>(placeCount).fill(undefined);
  /** What was there before another came to its place: it has stayed for long. */
  private readonly older = new Map<number, T>();

  /** `number` must be a positive integer that stands here no more. */
  put(number: number, value: T): void {
    const place = number & (placeCount - 1);
    const before = this.numbers[place] as number;
    if (before !== 0 && before !== number) this.older.set(before, this.values[place] as T);
    this.numbers[place] = number;
    this.values[place] = value;
  }

  /** Removes and returns the value; undefined where there is none. */
  take(number: number): T | undefined {
    const place = number & (placeCount - 1);
    if (this.numbers[place] === number) {
      const value = this.values[place];
      this.numbers[place] = 0;
      this.values[place] = undefined;
      return value;
    }
    if (this.older.size === 0) return undefined;
    const value = this.older.get(number);
    if (value !== undefined) this.older.delete(number);
    return value;
  }

  /** Forgets the first of those that have stayed for long, until there are no more than so many. */
  trimTo(count: number): void {
    for (const number of this.older.keys()) {
      if (this.older.size <= count) return;
      this.older.delete(number);
    }
  }

  /** All values, in the order of their numbers. */
  all(): T[] {
    const found = [...this.older];
    for (const [place, number] of this.numbers.entries())
      if (number !== 0) found.push([number, this.values[place] as T]);
    return found.sort(([a], [b]) => a - b).map(([, value]) => value);
  }
}
