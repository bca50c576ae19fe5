/**
 * What is remembered of one client's mutations: results by sequence, above the client's watermark. Sorted by sequence in a plain array,
 * since sequences come in order and few are open at a time. If a result were dropped above the watermark, a repeat would run twice.
 */
import type { StoredResult } from '../model/entry.ts';

/** Room up to here is kept when results go: shortening a list gives its room back, and the next result would have to ask for it again. */
const keptRoom = 32;

export class OnceTable {
  /** Every sequence below it is settled at the client and will never be sent again. */
  lowWatermark = 1;
  /** Local, volatile: when this node last applied something of the client. */
  lastActiveMs: number;
  /** The first `count` count; what stands behind them is room for the next ones. */
  private readonly sequences: number[] = [];
  private readonly results: (StoredResult | undefined)[] = [];
  private count = 0;

  constructor(nowMs: number) {
    this.lastActiveMs = nowMs;
  }

  get size(): number {
    return this.count;
  }

  get(sequence: number): StoredResult | undefined {
    const index = this.indexOf(sequence);
    return this.holds(sequence, index) ? this.results[index] : undefined;
  }

  private holds(sequence: number, index: number): boolean {
    return index < this.count && this.sequences[index] === sequence;
  }

  /** Where the sequence stands, or would stand. */
  private indexOf(sequence: number): number {
    let low = 0;
    let high = this.count;
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
    if (this.holds(sequence, index)) {
      this.results[index] = result;
      return false;
    }
    const { sequences, results } = this;
    for (let at = this.count; at > index; at--) {
      sequences[at] = sequences[at - 1] as number;
      results[at] = results[at - 1];
    }
    sequences[index] = sequence;
    results[index] = result;
    this.count += 1;
    return true;
  }

  /** Forgets what the client has settled; never goes back. */
  raiseWatermark(lowWatermark: number): void {
    if (lowWatermark <= this.lowWatermark) return;
    this.lowWatermark = lowWatermark;
    const dropped = this.indexOf(lowWatermark);
    if (dropped > 0) this.dropFirst(dropped);
  }

  private dropFirst(dropped: number): void {
    const { sequences, results } = this;
    const kept = this.count - dropped;
    for (let index = 0; index < kept; index++) {
      sequences[index] = sequences[index + dropped] as number;
      results[index] = results[index + dropped];
    }
    for (let index = kept; index < this.count; index++) results[index] = undefined;
    this.count = kept;
    if (sequences.length > keptRoom && kept <= keptRoom) {
      sequences.length = keptRoom;
      results.length = keptRoom;
    }
  }

  entries(): [sequence: number, result: StoredResult][] {
    return this.sequences
      .slice(0, this.count)
      .map((sequence, index) => [sequence, this.results[index] as StoredResult]);
  }
}
