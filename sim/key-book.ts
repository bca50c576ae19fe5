/**
 * The keys of a simulated run: which live in the store, which are finished and may be retired, who waits on which partition.
 *
 * Invariant: a key is live from before its first write until its ledgered delete was settled; every live key is read back. A
 * key forgotten here would never be read back, and its loss never seen.
 */
import { assert } from '../lib/assert.ts';
import type { KeyBook } from '../workloads/context.ts';

/** Taken names are dropped once there are so many. */
const compactAbove = 10_000;

export class SimKeyBook implements KeyBook {
  private readonly maxLiveKeys: number;
  private readonly sessionsPerPartition: number;
  private readonly partitionOf: (key: string) => number;
  /** Whom {@link accepts} was asked for last, and its partition: mostly the operation that begins. */
  private lastKey = '';
  private lastPartition = -1;
  private readonly live = new Set<string>();
  /** Operations under way, by partition. */
  private readonly waiting: number[] = [];
  private done: string[] = [];
  /** Before this place of `done` all were taken. */
  private taken = 0;
  retiredCount = 0;

  constructor(options: {
    readonly maxLiveKeys: number;
    readonly sessionsPerPartition: number;
    readonly partitionOf: (key: string) => number;
  }) {
    this.maxLiveKeys = options.maxLiveKeys;
    this.sessionsPerPartition = options.sessionsPerPartition;
    this.partitionOf = options.partitionOf;
  }

  get liveCount(): number {
    return this.live.size;
  }

  mayOpen(): boolean {
    return this.live.size < this.maxLiveKeys;
  }

  opened(key: string): void {
    assert(!this.live.has(key), `key ${key} is opened twice`);
    this.live.add(key);
  }

  finished(key: string): void {
    this.done.push(key);
  }

  accepts(key: string): boolean {
    this.lastPartition = this.partitionOf(key);
    this.lastKey = key;
    return (this.waiting[this.lastPartition] ?? 0) < this.sessionsPerPartition;
  }

  /** An operation begins; returns the partition, to be given to {@link end}. */
  begin(key: string): number {
    const partition = key === this.lastKey ? this.lastPartition : this.partitionOf(key);
    this.waiting[partition] = (this.waiting[partition] ?? 0) + 1;
    return partition;
  }

  end(partition: number): void {
    this.waiting[partition] = (this.waiting[partition] ?? 0) - 1;
  }

  /** Takes up to `limit` of the keys that were finished first, to retire them. */
  takeFinished(limit: number): string[] {
    const batch = this.done.slice(this.taken, this.taken + limit);
    this.taken += batch.length;
    if (this.taken > compactAbove) {
      this.done = this.done.slice(this.taken);
      this.taken = 0;
    }
    return batch;
  }

  /** The key's ledgered delete was settled; it is no longer read back. */
  retired(key: string): void {
    assert(this.live.delete(key), `key ${key} is retired but was not live`);
    this.retiredCount += 1;
  }

  /** Every live key, in the order of first use. */
  liveKeys(): Iterable<string> {
    return this.live;
  }
}
