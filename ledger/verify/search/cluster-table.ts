/**
 * The clusters of one register key whose written values are unique: for each value its one writer, its reads and the
 * compare-and-sets that expect it, reduced to a few times.
 *
 * Owns the reduction from operations to clusters and the judgement "these values are not unique". If it were wrong, the
 * fast checker would be exact about another history.
 */

import type { HistoryCut, RegisterHistory } from './register-history.ts';
import {
  casKind,
  failedStatus,
  isCompleteAt,
  isRelevantAt,
  okStatus,
  readKind,
  writeKind,
} from './register-history.ts';
import { ValueIds } from './value-ids.ts';

/** The cluster of the value that the key had at the start. */
export const initialCluster = 0;

/** No cluster, no operation. */
export const none = -1;

/** The writer of the initial cluster: it happened before everything. */
export const initialWriter = -2;

/**
 * Arrays per cluster, filled for one key at a time and used again for the next. Only entries below `count` hold; a cluster
 * without writer holds a value that nobody wrote.
 */
export class ClusterTable {
  count = 0;
  value = new Float64Array(64);
  /** Operation that writes the value, `initialWriter`, or `none`. */
  writer = new Int32Array(64);
  /** Invocation of the writer; −Infinity for the initial cluster. */
  writerInvoke = new Float64Array(64);
  /** The cluster that the writer, a compare-and-set, expects; `none` for a plain write. */
  expects = new Int32Array(64);
  /** Earliest completion of the writer and the reads. */
  firstComplete = new Float64Array(64);
  /** Latest invocation of the writer and the reads. */
  lastInvoke = new Float64Array(64);
  /** 1 when the value was certainly the state at some time. */
  held = new Uint8Array(64);
  /** Cluster written by the one compare-and-set that certainly took this value away, or `none`. */
  next = new Int32Array(64);
  /** Failed compare-and-sets that expect the value: their operation numbers stand in `denials`, unordered by cluster. */
  denialCount = new Int32Array(64);
  /** All failed compare-and-sets, and the cluster that each expects. */
  denials: number[] = [];
  denialCluster: number[] = [];
  private readonly ids = new ValueIds();

  /** Builds the clusters of a key. Returns false when two operations may write one value, or one writes the initial. */
  fill(history: RegisterHistory, operations: Uint32Array, initial: number, cut: HistoryCut): boolean {
    this.begin(initial, operations.length);
    const { kind, status, a, b, invoke, complete } = history;
    for (let index = 0; index < operations.length; index++) {
      const operation = operations[index]!;
      if (!isRelevantAt(history, operation, cut)) continue;
      const invoked = invoke[operation]!;
      const isComplete = isCompleteAt(history, operation, cut);
      const what = kind[operation]!;
      if (what === readKind) {
        this.observe(this.clusterOf(b[operation]!), invoked, complete[operation]!);
      } else if (what === casKind && status[operation] === failedStatus) {
        this.deny(this.clusterOf(a[operation]!), operation);
      } else {
        const cluster = this.clusterOf(what === writeKind ? a[operation]! : b[operation]!);
        if (this.writer[cluster] !== none) return false;
        const expected = what === casKind ? this.clusterOf(a[operation]!) : none;
        this.writer[cluster] = operation;
        this.writerInvoke[cluster] = invoked;
        this.expects[cluster] = expected;
        if (invoked > this.lastInvoke[cluster]!) this.lastInvoke[cluster] = invoked;
        if (isComplete && status[operation] === okStatus) {
          this.held[cluster] = 1;
          if (expected !== none) this.held[expected] = 1;
          if (complete[operation]! < this.firstComplete[cluster]!) this.firstComplete[cluster] = complete[operation]!;
        }
      }
    }
    return true;
  }

  private begin(initial: number, expected: number): void {
    this.ids.begin(expected);
    this.count = 0;
    this.denials.length = 0;
    this.denialCluster.length = 0;
    const cluster = this.clusterOf(initial);
    this.writer[cluster] = initialWriter;
    this.writerInvoke[cluster] = -Infinity;
    this.held[cluster] = 1;
  }

  private clusterOf(value: number): number {
    const cluster = this.ids.idOf(value);
    if (cluster < this.count) return cluster;
    if (cluster >= this.value.length) this.grow();
    this.count = cluster + 1;
    this.value[cluster] = value;
    this.writer[cluster] = none;
    this.writerInvoke[cluster] = Infinity;
    this.expects[cluster] = none;
    this.firstComplete[cluster] = Infinity;
    this.lastInvoke[cluster] = -Infinity;
    this.held[cluster] = 0;
    this.next[cluster] = none;
    this.denialCount[cluster] = 0;
    return cluster;
  }

  private observe(cluster: number, invoked: number, completed: number): void {
    this.held[cluster] = 1;
    if (completed < this.firstComplete[cluster]!) this.firstComplete[cluster] = completed;
    if (invoked > this.lastInvoke[cluster]!) this.lastInvoke[cluster] = invoked;
  }

  private deny(cluster: number, operation: number): void {
    this.denialCount[cluster] = this.denialCount[cluster]! + 1;
    this.denials.push(operation);
    this.denialCluster.push(cluster);
  }

  private grow(): void {
    const length = this.value.length * 2;
    const float = (from: Float64Array): Float64Array<ArrayBuffer> => {
      const to = new Float64Array(length);
      to.set(from);
      return to;
    };
    const int = (from: Int32Array): Int32Array<ArrayBuffer> => {
      const to = new Int32Array(length);
      to.set(from);
      return to;
    };
    this.value = float(this.value);
    this.writer = int(this.writer);
    this.writerInvoke = float(this.writerInvoke);
    this.expects = int(this.expects);
    this.firstComplete = float(this.firstComplete);
    this.lastInvoke = float(this.lastInvoke);
    const held = new Uint8Array(length);
    held.set(this.held);
    this.held = held;
    this.next = int(this.next);
    this.denialCount = int(this.denialCount);
  }
}
