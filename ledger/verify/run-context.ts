/**
 * What surrounds the operations of a run: its faults with their windows, its failovers, in forms that a stream of writes can
 * be measured against quickly. Small (faults and epochs), unlike the operations.
 */
import type { EpochChangeRow, FaultRow } from '../rows.ts';
import type { HistorySource } from './source.ts';

/** A fault with the times of its stages; null where a stage was not reached. */
export interface FaultSpan {
  readonly faultId: string;
  readonly kind: string;
  readonly targets: readonly string[];
  readonly partitions: readonly number[];
  readonly plannedNs: number | null;
  readonly injectedNs: number | null;
  readonly confirmedNs: number | null;
  readonly healedNs: number | null;
  readonly healVerifiedNs: number | null;
  readonly skipped: boolean;
  readonly overshoot: boolean;
  /** Partitions every holder of which was taken, by the journal. */
  readonly overshootPartitions: readonly number[];
}

/** A store may be seen to have lost a partition this long before its own report of it reaches the ledger, ns. */
const lostReportDelayNs = 5e9;

/** Partition index that stands for a store without partitions. */
export const wholeStore = -1;

export class RunContext {
  /** In the order of their first stage. */
  readonly faults: readonly FaultSpan[];
  /** Faults that were injected, by time of injection. */
  readonly injected: readonly FaultSpan[];
  readonly epochChanges: readonly EpochChangeRow[];
  /** Times of failovers per partition, ascending. */
  readonly failovers = new Map<number, Float64Array>();
  readonly failoverCount: number;
  readonly handoffCount: number;
  /** When the store reported a partition Lost, per partition, ascending. */
  private readonly lostNs = new Map<number, number[]>();
  private readonly lostAtEnd = new Set<number>();
  private readonly windowStarts: Float64Array;
  private readonly windowEnds: Float64Array;

  constructor(source: HistorySource) {
    this.faults = foldFaults(source.faults());
    this.injected = this.faults
      .filter((fault) => fault.injectedNs !== null)
      .sort((a, b) => (a.injectedNs ?? 0) - (b.injectedNs ?? 0));
    this.epochChanges = [...source.epochChanges()];
    this.foldLost();
    const lists = new Map<number, number[]>();
    for (const change of this.epochChanges) {
      if (change.kind !== 'failover') continue;
      const partition = change.partition ?? wholeStore;
      const list = lists.get(partition) ?? [];
      list.push(change.atNs);
      lists.set(partition, list);
    }
    for (const [partition, list] of lists) this.failovers.set(partition, Float64Array.from(list).sort());
    this.failoverCount = this.epochChanges.filter((change) => change.kind === 'failover').length;
    this.handoffCount = this.epochChanges.filter((change) => change.kind === 'handoff').length;
    [this.windowStarts, this.windowEnds] = windows(this.injected.filter((fault) => fault.confirmedNs !== null));
  }

  private foldLost(): void {
    for (const change of this.epochChanges) {
      const partition = change.partition ?? wholeStore;
      if (change.health === 'Lost') {
        this.lostAtEnd.add(partition);
        this.lostNs.set(partition, [...(this.lostNs.get(partition) ?? []), change.atNs]);
      } else this.lostAtEnd.delete(partition);
    }
  }

  /** The store's last word on this partition is that every copy is gone. */
  isLostAtEnd(partition: number): boolean {
    return this.lostAtEnd.has(partition);
  }

  /** Every holder of the partition was taken, by the journal: past what a contract promises to survive. */
  wasTaken(partition: number): boolean {
    return this.injected.some((fault) => fault.overshootPartitions.includes(partition));
  }

  /**
   * Was what was written at `writtenNs` and missed at `seenNs` in a partition every holder of which was taken, and which the
   * store itself reported Lost in between? One without the other explains nothing.
   */
  isReportedLoss(partition: number, writtenNs: number, seenNs: number): boolean {
    const times = this.lostNs.get(partition) ?? [];
    return this.wasTaken(partition) && times.some((atNs) => writtenNs <= atNs && seenNs >= atNs - lostReportDelayNs);
  }

  /** Was a confirmed fault open at some moment of [fromNs, toNs]? */
  inFaultWindow(fromNs: number, toNs: number): boolean {
    const at = countAtMost(this.windowStarts, toNs) - 1;
    return at >= 0 && (this.windowEnds[at] as number) >= fromNs;
  }

  /** Ids of the faults open at some moment of [fromNs, toNs]. */
  openFaults(fromNs: number, toNs: number): string[] {
    return this.injected
      .filter((fault) => (fault.injectedNs as number) <= toNs && (fault.healedNs ?? Infinity) >= fromNs)
      .map((fault) => fault.faultId);
  }
}

/** Number of elements of the ascending list that are at most `limit`. */
export function countAtMost(list: Float64Array, limit: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle] as number) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function foldFaults(rows: Iterable<FaultRow>): FaultSpan[] {
  const spans = new Map<string, { -readonly [K in keyof FaultSpan]: FaultSpan[K] }>();
  for (const row of rows) {
    let span = spans.get(row.faultId);
    if (span === undefined) {
      span = {
        faultId: row.faultId,
        kind: row.kind,
        targets: row.targets,
        partitions: [],
        plannedNs: null,
        injectedNs: null,
        confirmedNs: null,
        healedNs: null,
        healVerifiedNs: null,
        skipped: false,
        overshoot: false,
        overshootPartitions: [],
      };
      spans.set(row.faultId, span);
    }
    if (row.targets.length > 0) span.targets = row.targets;
    if (row.partitions !== undefined && row.stage !== 'overshoot') span.partitions = row.partitions;
    switch (row.stage) {
      case 'planned':
        span.plannedNs ??= row.atNs;
        break;
      case 'injected':
        span.injectedNs ??= row.atNs;
        break;
      case 'confirmed':
        span.confirmedNs ??= row.atNs;
        break;
      case 'healed':
        span.healedNs = row.atNs;
        break;
      case 'heal-verified':
        span.healVerifiedNs = row.atNs;
        break;
      case 'skipped':
      case 'failed':
        span.skipped = true;
        break;
      case 'overshoot':
        span.overshoot = true;
        span.overshootPartitions = [...span.overshootPartitions, ...(row.partitions ?? [])];
        break;
      case 'changed':
      case 'injecting':
      case 'unconfirmed':
      case 'healing':
      case 'heal-unverified':
        // Told in the journal, of no weight for a verdict.
        break;
    }
  }
  return [...spans.values()];
}

/** The union of the faults' open times as disjoint windows, ascending. */
function windows(faults: readonly FaultSpan[]): [starts: Float64Array, ends: Float64Array] {
  const merged: [from: number, to: number][] = [];
  for (const fault of faults) {
    const from = fault.injectedNs as number;
    const to = fault.healedNs ?? Infinity;
    const last = merged[merged.length - 1];
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return [Float64Array.from(merged, (window) => window[0]), Float64Array.from(merged, (window) => window[1])];
}
