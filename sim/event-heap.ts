/**
 * The simulator's agenda: a binary heap of (time, order of insertion). Two events at one time run in the order in which they
 * were put in; were ties broken otherwise, one seed would give two runs.
 */
export class EventHeap<T> {
  private readonly times: number[] = [];
  private readonly orders: number[] = [];
  private readonly items: T[] = [];
  private nextOrder = 0;

  get size(): number {
    return this.items.length;
  }

  /** Time of the earliest event; Infinity when there is none. */
  get nextMs(): number {
    return this.times[0] ?? Number.POSITIVE_INFINITY;
  }

  push(atMs: number, item: T): void {
    let index = this.items.length;
    this.times.push(atMs);
    this.orders.push(this.nextOrder++);
    this.items.push(item);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.before(index, parent)) break;
      this.swap(index, parent);
      index = parent;
    }
  }

  /** Takes the earliest event; undefined when there is none. */
  pop(): T | undefined {
    const last = this.items.length - 1;
    if (last < 0) return undefined;
    this.swap(0, last);
    const item = this.items.pop();
    this.times.pop();
    this.orders.pop();
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= last) break;
      const right = left + 1;
      const smaller = right < last && this.before(right, left) ? right : left;
      if (!this.before(smaller, index)) break;
      this.swap(smaller, index);
      index = smaller;
    }
    return item;
  }

  private before(a: number, b: number): boolean {
    const timeA = this.times[a] as number;
    const timeB = this.times[b] as number;
    return timeA < timeB || (timeA === timeB && (this.orders[a] as number) < (this.orders[b] as number));
  }

  private swap(a: number, b: number): void {
    const { times, orders, items } = this;
    [times[a], times[b]] = [times[b] as number, times[a] as number];
    [orders[a], orders[b]] = [orders[b] as number, orders[a] as number];
    [items[a], items[b]] = [items[b] as T, items[a] as T];
  }
}
