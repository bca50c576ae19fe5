/**
 * The simulator's agenda: a heap of (time, order of insertion). Two events at one time run in the order in which they were put
 * in; were ties broken otherwise, one seed would give two runs.
 *
 * Four children to a node: the heap of a run holds some hundred events, and a flat one is quicker to walk.
 */
const arity = 4;

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
    return this.items.length === 0 ? Number.POSITIVE_INFINITY : (this.times[0] as number);
  }

  push(atMs: number, item: T): void {
    const { times, orders, items } = this;
    let index = items.length;
    times.push(atMs);
    orders.push(this.nextOrder);
    items.push(item);
    // The newest of equals stays below them, so times alone decide on the way up.
    while (index > 0) {
      const parent = (index - 1) >> 2;
      if ((times[parent] as number) <= atMs) break;
      times[index] = times[parent] as number;
      orders[index] = orders[parent] as number;
      items[index] = items[parent] as T;
      index = parent;
    }
    times[index] = atMs;
    orders[index] = this.nextOrder++;
    items[index] = item;
  }

  /** Takes the earliest event; undefined when there is none. */
  pop(): T | undefined {
    const { times, orders, items } = this;
    if (items.length === 0) return undefined;
    const first = items[0] as T;
    const time = times.pop() as number;
    const order = orders.pop() as number;
    const item = items.pop() as T;
    const length = items.length;
    if (length === 0) return first;
    let index = 0;
    for (;;) {
      const firstChild = arity * index + 1;
      if (firstChild >= length) break;
      let best = firstChild;
      const end = firstChild + arity < length ? firstChild + arity : length;
      for (let child = firstChild + 1; child < end; child++) {
        const difference = (times[child] as number) - (times[best] as number);
        if (difference < 0 || (difference === 0 && (orders[child] as number) < (orders[best] as number))) best = child;
      }
      const difference = (times[best] as number) - time;
      if (difference > 0 || (difference === 0 && (orders[best] as number) > order)) break;
      times[index] = times[best] as number;
      orders[index] = orders[best] as number;
      items[index] = items[best] as T;
      index = best;
    }
    times[index] = time;
    orders[index] = order;
    items[index] = item;
    return first;
  }
}
