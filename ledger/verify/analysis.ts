/**
 * What every checker of a key needs first: which operation each read saw, and by when each operation had surely taken effect.
 *
 * `boundNs[i]` of a mutator is the latest moment by which it took effect, if it did: its return, or the end of the earliest
 * read that saw it, whichever comes first; Infinity for an unknown one that nobody saw. A mutator is *certain* when it was
 * acknowledged or seen. If a bound were too early, a good store would be called bad; too late only hides.
 */
import { kindCode, type KeyHistory, outcomeCode, sourceCode, whyCondition } from './history.ts';

/** Values of `target` other than a row. */
export const targetAbsent = -1;
/** The row is no read, or its value names no operation of this key that writes. */
export const targetNone = -2;

export class KeyAnalysis {
  history!: KeyHistory;
  /** Reads: row of the write whose value was read, or targetAbsent, targetNone. */
  target = new Int32Array(64);
  boundNs = new Float64Array(64);
  /** 1: a client's read saw it. */
  seen = new Uint8Array(64);
  /** Latest invocation of an observation (read, compare-and-set, condition) that shows it took effect; -Infinity if none. */
  lastSeenNs = new Float64Array(64);
  /** Rows by invoke time. */
  byInvoke = new Uint32Array(64);
  isCounter = false;
  hasVersions = false;

  /** Takes the measure of `history`; what was here of the key before is gone. */
  prepare(history: KeyHistory): void {
    this.history = history;
    const { size } = history;
    this.reserve(size);
    this.isCounter = false;
    this.hasVersions = false;
    for (let i = 0; i < size; i++) {
      this.byInvoke[i] = i;
      this.seen[i] = 0;
      this.lastSeenNs[i] = -Infinity;
      this.boundNs[i] = history.outcome[i] === outcomeCode.ok ? (history.returnNs[i] as number) : Infinity;
      if (history.f[i] === kindCode.add) this.isCounter = true;
      const major = history.major[i] as number;
      if (major === major) this.hasVersions = true;
    }
    for (let i = 0; i < size; i++) this.target[i] = this.resolve(i);
    sortIndexes(this.byInvoke, size, history.invokeNs);
  }

  isMutator(i: number): boolean {
    return this.history.f[i] !== kindCode.read;
  }

  /** An acknowledged or seen mutator; not one that failed. */
  isCertain(i: number): boolean {
    const outcome = this.history.outcome[i];
    return (
      this.history.f[i] !== kindCode.read &&
      (outcome === outcomeCode.ok || (outcome === outcomeCode.info && this.seen[i] === 1))
    );
  }

  isOkRead(i: number): boolean {
    return this.history.f[i] === kindCode.read && this.history.outcome[i] === outcomeCode.ok;
  }

  /** A failed condition with a version is an observation of the key at that version. */
  isConditionWithVersion(i: number): boolean {
    const { history } = this;
    const major = history.major[i] as number;
    return (
      history.outcome[i] === outcomeCode.fail &&
      history.why[i] === whyCondition &&
      history.f[i] !== kindCode.read &&
      major === major
    );
  }

  private resolve(i: number): number {
    const { history } = this;
    if (!this.isOkRead(i)) return targetNone;
    const observed = history.observed[i] as number;
    if (observed !== observed) {
      const number = history.number[i] as number;
      return number === number ? targetNone : targetAbsent;
    }
    if (observed < 0) return targetNone;
    const row = history.indexOf(observed);
    if (row < 0) return targetNone;
    const f = history.f[row];
    if (f === kindCode.read || f === kindCode.delete || f === kindCode.add) return targetNone;
    if (history.source[i] === sourceCode.replica) return row;
    if (history.outcome[row] !== outcomeCode.fail) {
      this.seen[row] = 1;
      const returnNs = history.returnNs[i] as number;
      const invokeNs = history.invokeNs[i] as number;
      if (returnNs < (this.boundNs[row] as number)) this.boundNs[row] = returnNs;
      if (invokeNs > (this.lastSeenNs[row] as number)) this.lastSeenNs[row] = invokeNs;
    }
    return row;
  }

  private reserve(size: number): void {
    if (size <= this.target.length) return;
    const capacity = Math.max(size, this.target.length * 2);
    this.target = new Int32Array(capacity);
    this.boundNs = new Float64Array(capacity);
    this.seen = new Uint8Array(capacity);
    this.lastSeenNs = new Float64Array(capacity);
    this.byInvoke = new Uint32Array(capacity);
  }
}

/** Insertion steps after which a nearly sorted list is handed to the general sort. */
const insertionStepsPerElement = 24;

/** Sorts the first `count` of `indexes` by `keys`; fast where they are nearly sorted, as histories are. */
export function sortIndexes(indexes: Uint32Array, count: number, keys: Float64Array): void {
  let steps = count * insertionStepsPerElement;
  for (let i = 1; i < count; i++) {
    const moving = indexes[i] as number;
    const key = keys[moving] as number;
    let j = i - 1;
    while (j >= 0 && (keys[indexes[j] as number] as number) > key) {
      indexes[j + 1] = indexes[j] as number;
      j--;
      steps--;
    }
    indexes[j + 1] = moving;
    if (steps < 0) {
      indexes.subarray(0, count).sort((a, b) => {
        const difference = (keys[a] as number) - (keys[b] as number);
        return difference || a - b;
      });
      return;
    }
  }
}
