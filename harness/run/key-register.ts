/**
 * The keys of a run: which live in the store, which are finished and may be retired, and how many sessions wait on each
 * partition.
 *
 * Invariant: a key is live from before its first write until its ledgered delete was settled; the read-back asks for every
 * live key. A key forgotten here would never be read back, and its loss never seen.
 */
import { assert } from '../../lib/assert.ts';
import type { KeyBook } from '../../workloads/context.ts';

export interface KeyRegisterOptions {
  readonly maxLiveKeys: number;
  /** Sessions that may be busy in one partition before others choose keys elsewhere; Infinity never turns a key away. */
  readonly sessionsPerPartition: number;
  /** Sessions busy in all above which each partition takes one only: a failover stalls whole partitions, and must not stall every session. */
  readonly crowdedSessions: number;
  readonly partitionOf: (key: string) => number;
  readonly partitionCount: number;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

interface Finished {
  readonly key: string;
  readonly atMs: number;
}

export class KeyRegister implements KeyBook {
  private readonly options: KeyRegisterOptions;
  private readonly live = new Set<string>();
  /** Finished keys per partition, oldest first. */
  private readonly finishedKeys: Finished[][];
  private readonly waiting: Int32Array;
  private busy = 0;
  private finishedTotal = 0;
  private retiredTotal = 0;
  private openedTotal = 0;

  constructor(options: KeyRegisterOptions) {
    this.options = options;
    this.waiting = new Int32Array(options.partitionCount);
    this.finishedKeys = Array.from({ length: options.partitionCount }, () => []);
  }

  get liveCount(): number {
    return this.live.size;
  }

  get openedCount(): number {
    return this.openedTotal;
  }

  get retiredCount(): number {
    return this.retiredTotal;
  }

  /** Finished keys that wait to be retired. */
  get finishedCount(): number {
    return this.finishedTotal;
  }

  get maxLiveKeys(): number {
    return this.options.maxLiveKeys;
  }

  mayOpen(): boolean {
    return this.live.size < this.options.maxLiveKeys;
  }

  opened(key: string): void {
    assert(!this.live.has(key), `key ${key} is opened twice`);
    this.live.add(key);
    this.openedTotal++;
  }

  finished(key: string): void {
    const list = this.finishedKeys[this.options.partitionOf(key)];
    assert(list !== undefined, `key ${key} lies in no partition`);
    list.push({ key, atMs: this.options.nowMs() });
    this.finishedTotal++;
  }

  accepts(key: string): boolean {
    const { sessionsPerPartition, crowdedSessions } = this.options;
    if (sessionsPerPartition === Infinity) return true;
    const limit = this.busy >= crowdedSessions ? 1 : sessionsPerPartition;
    return (this.waiting[this.options.partitionOf(key)] as number) < limit;
  }

  /** A session's operation on this key starts. */
  begin(key: string): void {
    const partition = this.options.partitionOf(key);
    this.waiting[partition] = (this.waiting[partition] as number) + 1;
    this.busy++;
  }

  /** It has ended. */
  end(key: string): void {
    const partition = this.options.partitionOf(key);
    this.waiting[partition] = (this.waiting[partition] as number) - 1;
    this.busy--;
  }

  /** Takes up to `limit` of the oldest keys of a partition that were finished before a time, to retire them. Give back with `finished`. */
  takeFinished(partition: number, limit: number, beforeMs: number): string[] {
    const taken =
      this.finishedKeys[partition]?.splice(0, Math.min(limit, this.finishedBefore(partition, beforeMs))) ?? [];
    this.finishedTotal -= taken.length;
    return taken.map(({ key }) => key);
  }

  /** How many keys of a partition were finished before a time; lists are in the order of time. */
  finishedBefore(partition: number, beforeMs: number): number {
    const list = this.finishedKeys[partition] ?? [];
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((list[middle] as Finished).atMs < beforeMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The key's ledgered delete was settled; it is no longer read back. */
  retired(key: string): void {
    assert(this.live.delete(key), `key ${key} is retired but was not live`);
    this.retiredTotal++;
  }

  /** Every live key, in the order of their first use. */
  liveKeys(): IterableIterator<string> {
    return this.live.keys();
  }
}
