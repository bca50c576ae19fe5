/**
 * For each cluster, the deadline for leaving it that its failed compare-and-sets set: entered at time t, the value must be
 * left by the least completion among the denials invoked after t (one invoked at or before t is placed just before the
 * entry). Owns that lookup; if it were late, a violation would pass.
 */

import type { ClusterTable } from './cluster-table.ts';
import type { ChainTable } from './register-zones.ts';
import type { RegisterHistory } from './register-history.ts';

/** Denials grouped by cluster in order of invocation, with the least completion from each of them on. */
export class DenialIndex {
  private readonly start: Int32Array;
  private readonly invoked: Float64Array;
  private readonly leaveBy: Float64Array;

  /** Keeps the denials that can matter: those on a cluster with a writer and not settled by its earliest entry. */
  constructor(history: RegisterHistory, table: ClusterTable, chains: ChainTable) {
    const earliest = (cluster: number): number =>
      table.held[cluster] === 1 ? chains.enterFrom[cluster]! : table.writerInvoke[cluster]!;
    const kept: number[] = [];
    this.start = new Int32Array(table.count + 1);
    for (let index = 0; index < table.denials.length; index++) {
      const cluster = table.denialCluster[index]!;
      if (history.invoke[table.denials[index]!]! <= earliest(cluster)) continue;
      kept.push(index);
      this.start[cluster + 1]!++;
    }
    for (let cluster = 0; cluster < table.count; cluster++) this.start[cluster + 1]! += this.start[cluster]!;
    this.invoked = new Float64Array(kept.length);
    this.leaveBy = new Float64Array(kept.length);
    const fill = this.start.slice();
    // Operations come in order of invocation, so each group does.
    for (const index of kept) {
      const slot = fill[table.denialCluster[index]!]!++;
      this.invoked[slot] = history.invoke[table.denials[index]!]!;
      this.leaveBy[slot] = history.complete[table.denials[index]!]!;
    }
    for (let cluster = 0; cluster < table.count; cluster++) {
      for (let slot = this.start[cluster + 1]! - 2; slot >= this.start[cluster]!; slot--) {
        if (this.leaveBy[slot + 1]! < this.leaveBy[slot]!) this.leaveBy[slot] = this.leaveBy[slot + 1]!;
      }
    }
  }

  /** True when no denial on the cluster matters. */
  isFree(cluster: number): boolean {
    return this.start[cluster] === this.start[cluster + 1];
  }

  /** The latest time at which a tenure of the cluster that began at `enteredAt` may end. */
  leaveDeadline(cluster: number, enteredAt: number): number {
    let low = this.start[cluster]!;
    const end = this.start[cluster + 1]!;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.invoked[middle]! > enteredAt) high = middle;
      else low = middle + 1;
    }
    return low === end ? Infinity : this.leaveBy[low]!;
  }
}
