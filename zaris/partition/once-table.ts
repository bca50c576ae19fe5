/**
 * What is remembered of one client's mutations: results by sequence, above the client's watermark. Sorted by sequence in a plain array,
 * since sequences come in order and few are open at a time. If a result were dropped above the watermark, a repeat would run twice.
 */
import type { StoredResult } from '../model/entry.ts';

/** Few are moved by hand: splicing gives the room back, and the next result would have to ask for it again. */
const movedByHand = 16;

function dropFirst<T>(list: T[], count: number): void {
  const kept = list.length - count;
  if (kept > movedByHand) {
    list.splice(0, count);
    return;
  }
  for (let index = 0; index < kept; index++) list[index] = list[index + count] as T;
  list.length = kept;
}

export class OnceTable {
  /** Every sequence below it is settled at the client and will never be sent again. */
  lowWatermark = 1;
  /** Local, volatile: when this node last applied something of the client. */
  lastActiveMs: number;
  private sequences: number[] = [];
  private results: StoredResult[] = [];

  constructor(nowMs: number) {
    this.lastActiveMs = nowMs;
  }

  get size(): number {
    return this.sequences.length;
  }

  get(sequence: number): StoredResult | undefined {
    const index = this.indexOf(sequence);
    return this.sequences[index] === sequence ? this.results[index] : undefined;
  }

  /** Where the sequence stands, or would stand. */
  private indexOf(sequence: number): number {
    let low = 0;
    let high = this.sequences.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.sequences[middle] as number) < sequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** False when the sequence is known or settled: it took effect before. */
  add(sequence: number, result: StoredResult): boolean {
    if (sequence < this.lowWatermark) return false;
    const index = this.indexOf(sequence);
    if (this.sequences[index] === sequence) {
      this.results[index] = result;
      return false;
    }
    if (index === this.sequences.length) {
      this.sequences.push(sequence);
      this.results.push(result);
    } else {
      this.sequences.splice(index, 0, sequence);
      this.results.splice(index, 0, result);
    }
    return true;
  }

  /** Forgets what the client has settled; never goes back. */
  raiseWatermark(lowWatermark: number): void {
    if (lowWatermark <= this.lowWatermark) return;
    this.lowWatermark = lowWatermark;
    const index = this.indexOf(lowWatermark);
    if (index === 0) return;
    dropFirst(this.sequences, index);
    dropFirst(this.results, index);
  }

  entries(): [sequence: number, result: StoredResult][] {
    return this.sequences.map((sequence, index) => [sequence, this.results[index] as StoredResult]);
  }
}
