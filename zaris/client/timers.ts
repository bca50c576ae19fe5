/**
 * One timer per owner, in an indexed heap: arming again moves it, disarming removes it, so that a finished call leaves nothing
 * behind. If stale timers stayed, a fast client would hold a minute's worth of finished calls in memory.
 */

/** Who can be woken. `heapIndex` belongs to the heap; start it at -1. */
export interface Timed {
  timerAtMs: number;
  heapIndex: number;
}

/** Minimum heap on `timerAtMs`. */
export class Timers<T extends Timed> {
  private readonly heap: T[] = [];

  /** When the next one is due; Infinity when none is. */
  get nextAtMs(): number {
    return this.heap.length === 0 ? Infinity : (this.heap[0] as T).timerAtMs;
  }

  /** Wakes `owner` at this time, instead of any time set before. Infinity disarms. */
  arm(owner: T, atMs: number): void {
    if (atMs === Infinity) return this.disarm(owner);
    if (owner.heapIndex < 0) {
      owner.heapIndex = this.heap.length;
      this.heap.push(owner);
    }
    owner.timerAtMs = atMs;
    this.settle(owner);
  }

  disarm(owner: T): void {
    const index = owner.heapIndex;
    if (index < 0) return;
    owner.heapIndex = -1;
    const last = this.heap.pop() as T;
    if (last === owner) return;
    this.heap[index] = last;
    last.heapIndex = index;
    this.settle(last);
  }

  /** Removes and returns one that is due, or null. */
  popDue(nowMs: number): T | null {
    const first = this.heap[0];
    if (first === undefined || first.timerAtMs > nowMs) return null;
    this.disarm(first);
    return first;
  }

  private settle(owner: T): void {
    const { heap } = this;
    const at = owner.timerAtMs;
    let index = owner.heapIndex;
    while (index > 0) {
      const up = (index - 1) >> 1;
      const parent = heap[up] as T;
      if (parent.timerAtMs <= at) break;
      heap[index] = parent;
      parent.heapIndex = index;
      index = up;
    }
    for (;;) {
      let down = 2 * index + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && (heap[down + 1] as T).timerAtMs < (heap[down] as T).timerAtMs) down++;
      const child = heap[down] as T;
      if (child.timerAtMs >= at) break;
      heap[index] = child;
      child.heapIndex = index;
      index = down;
    }
    heap[index] = owner;
    owner.heapIndex = index;
  }
}
