/**
 * Exact linearizability of one register key with unique values, in O(n log n): chains of clusters and their zones.
 *
 * Owns the verdict for histories without search. The worst outcome is a wrong verdict; the argument, after Gibbons and
 * Korach ("Testing shared memories", SIAM J. Comput. 1997, §4: clusters and zones), extended by compare-and-set:
 *
 * 1. **Unique values.** No value is written twice and the initial value is never written, so in every linearization a
 *    value is the state during one contiguous stretch, its *tenure*, from its writer to the next writer.
 * 2. **Held values.** A value is held in every linearization when its writer is ok, a read or an ok compare-and-set saw
 *    it, or an unknown compare-and-set that takes it away wrote a held value. Others, all from writers of unknown
 *    outcome, may be left out of a linearization: nobody saw them, so their predecessor's tenure goes on in their
 *    stead, which can only hurt a failed compare-and-set (see 6). An unknown compare-and-set from a value left out is itself
 *    not held (else its expected value were), so it is left out too.
 * 3. **Chains.** A held compare-and-set from u to v makes v's tenure follow u's immediately; two of them from one u, or a
 *    cycle of them, is a violation. What remains are chains u1 → u2 → … → uk that stand together in every linearization. The
 *    operations of a chain fall in groups of fixed order: writer of u1, reads of u1, writer of u2, reads of u2, …; this
 *    order agrees with real time iff for each i: max invoke of (all groups before u_i, and u_i's writer) ≤ min complete
 *    of (u_i's writer and all groups after it). (`enterFrom` ≤ `enterBy`; reads commute among themselves.)
 * 4. **Zones.** Let f be the least completion and s the greatest invocation in a chain. Chain A must precede chain B iff
 *    some operation of A precedes one of B, iff f(A) < s(B). If this relation has a cycle A1 → A2 → … → A1, take the Ai
 *    of least f: f(Ai) ≤ f(Aj-1) < s(Aj) for all j, so Ai must precede all, and its predecessor in the cycle must precede
 *    it: a cycle of two. So the chains can be ordered iff no two must precede each other. And any such order, with the
 *    order of 3 inside the chains, is a linearization. So without failed compare-and-sets the conditions
 *    of 2 (a held value has a writer), 3 and 4 are necessary and sufficient.
 * 5. Two chains with f < s (forward zones) conflict iff the zones overlap; a forward and a backward one (s ≤ f) iff the
 *    backward one lies inside the forward one; two backward ones never. One sweep in order of f finds a conflict.
 * 6. **Denials** (failed compare-and-sets, "the state was not v") with v never written hold always. One on v excludes
 *    that v's tenure covers all of [invoke, complete]. v must be entered by `enterBy` and left no earlier than
 *    `leaveFrom`: a denial invoked after `enterBy` and complete before `leaveFrom` is a violation. One invoked at or before
 *    `enterFrom` holds always. What is left is decided by the relay (register-relay.ts), an exact search.
 *
 * Dropping operations without effect on others (denials, unseen unknown writes) from a linearization leaves a
 * linearization, so a violation found in 2 to 4 stands whatever the denials say.
 */

import { ClusterTable, initialCluster, none } from './cluster-table.ts';
import type { HistoryCut, RegisterHistory } from './register-history.ts';

/** Why a key cannot be explained; cluster numbers refer to the table. */
export type ZoneViolation =
  | { readonly kind: 'never-written'; readonly cluster: number }
  | { readonly kind: 'taken-twice'; readonly cluster: number; readonly takers: readonly [number, number] }
  | { readonly kind: 'cycle'; readonly cluster: number }
  | { readonly kind: 'out-of-order'; readonly cluster: number }
  | { readonly kind: 'overlap'; readonly chains: readonly [number, number] }
  | { readonly kind: 'denied'; readonly cluster: number; readonly operation: number };

/** What the zones decide: a verdict, or the denials that need the relay. */
export type ZoneResult =
  | { readonly kind: 'valid' }
  | { readonly kind: 'invalid'; readonly violation: ZoneViolation }
  | { readonly kind: 'repeated-values' }
  | { readonly kind: 'denials' };

/** One key's chains; arrays used again for the next key. Chain numbers are below `count`, in no order. */
export class ChainTable {
  count = 0;
  head = new Int32Array(64);
  last = new Int32Array(64);
  /** Least completion and greatest invocation: the zone. */
  first = new Float64Array(64);
  final = new Float64Array(64);
  /** Chain numbers in order of `first`. */
  byFirst = new Int32Array(64);
  /** Per cluster: its chain, and the bounds on the times of entering and leaving it. */
  chainOf = new Int32Array(64);
  enterFrom = new Float64Array(64);
  enterBy = new Float64Array(64);
  leaveFrom = new Float64Array(64);
  private walk = new Int32Array(64);

  /** Makes room for `clusters` clusters and forgets all chains. */
  begin(clusters: number): void {
    this.count = 0;
    if (this.chainOf.length >= clusters) return;
    const length = Math.max(clusters, this.chainOf.length * 2);
    this.head = new Int32Array(length);
    this.last = new Int32Array(length);
    this.first = new Float64Array(length);
    this.final = new Float64Array(length);
    this.byFirst = new Int32Array(length);
    this.chainOf = new Int32Array(length);
    this.enterFrom = new Float64Array(length);
    this.enterBy = new Float64Array(length);
    this.leaveFrom = new Float64Array(length);
    this.walk = new Int32Array(length);
  }

  /** Adds the chain that starts at `head`; returns its clusters' count, or the cluster at which its order breaks as −1 − it. */
  add(table: ClusterTable, head: number): number {
    const chain = this.count++;
    let length = 0;
    let invoked = -Infinity;
    for (let cluster = head; cluster !== none; cluster = table.next[cluster]!) {
      this.chainOf[cluster] = chain;
      this.walk[length++] = cluster;
      if (table.writerInvoke[cluster]! > invoked) invoked = table.writerInvoke[cluster]!;
      this.enterFrom[cluster] = invoked;
      if (table.lastInvoke[cluster]! > invoked) invoked = table.lastInvoke[cluster]!;
      this.leaveFrom[cluster] = invoked;
    }
    let completed = Infinity;
    for (let index = length - 1; index >= 0; index--) {
      const cluster = this.walk[index]!;
      if (table.firstComplete[cluster]! < completed) completed = table.firstComplete[cluster]!;
      if (cluster === initialCluster) completed = -Infinity;
      this.enterBy[cluster] = completed;
      if (this.enterFrom[cluster]! > completed) return -1 - cluster;
    }
    this.head[chain] = head;
    this.last[chain] = this.walk[length - 1]!;
    this.first[chain] = completed;
    this.final[chain] = invoked;
    this.byFirst[chain] = chain;
    return length;
  }
}

/** Judges one key by clusters, chains and zones. `table` and `chains` are filled and stay valid until the next call. */
export function judgeZones(
  history: RegisterHistory,
  operations: Uint32Array,
  initial: number,
  cut: HistoryCut,
  table: ClusterTable,
  chains: ChainTable,
): ZoneResult {
  if (!table.fill(history, operations, initial, cut)) return { kind: 'repeated-values' };
  const violation = linkChains(table) ?? buildChains(table, chains) ?? findOverlap(chains);
  if (violation !== null) return { kind: 'invalid', violation };
  return judgeDenials(history, table, chains);
}

/** Spreads `held` along unknown compare-and-sets and sets `next`. */
function linkChains(table: ClusterTable): ZoneViolation | null {
  const { held, expects, next } = table;
  for (let start = 0; start < table.count; start++) {
    if (held[start] === 0) continue;
    for (let cluster = expects[start]!; cluster !== none && held[cluster] === 0; cluster = expects[cluster]!) {
      held[cluster] = 1;
    }
  }
  for (let cluster = 0; cluster < table.count; cluster++) {
    if (held[cluster] === 0) continue;
    if (table.writer[cluster] === none) return { kind: 'never-written', cluster };
    const from = expects[cluster]!;
    if (from === none) continue;
    if (next[from] !== none) return { kind: 'taken-twice', cluster: from, takers: [next[from]!, cluster] };
    next[from] = cluster;
  }
  return null;
}

function buildChains(table: ClusterTable, chains: ChainTable): ZoneViolation | null {
  chains.begin(table.count);
  let reached = 0;
  let heldCount = 0;
  for (let cluster = 0; cluster < table.count; cluster++) {
    if (table.held[cluster] === 0) continue;
    heldCount++;
    chains.chainOf[cluster] = none;
  }
  for (let cluster = 0; cluster < table.count; cluster++) {
    if (table.held[cluster] === 0 || table.expects[cluster] !== none) continue;
    const length = chains.add(table, cluster);
    if (length < 0) return { kind: 'out-of-order', cluster: -1 - length };
    reached += length;
  }
  if (reached === heldCount) return null;
  for (let cluster = 0; cluster < table.count; cluster++) {
    if (table.held[cluster] === 1 && chains.chainOf[cluster] === none) return { kind: 'cycle', cluster };
  }
  return null;
}

/** Sorts chains by `first`, then sweeps for two that must precede each other. */
function findOverlap(chains: ChainTable): ZoneViolation | null {
  sortByFirst(chains);
  const { byFirst, first, final } = chains;
  let covering = none;
  for (let index = 0; index < chains.count; index++) {
    const chain = byFirst[index]!;
    if (covering !== none && first[chain]! < final[covering]! && first[covering]! < final[chain]!) {
      return { kind: 'overlap', chains: [covering, chain] };
    }
    const isForward = first[chain]! < final[chain]!;
    if (isForward && (covering === none || final[chain]! > final[covering]!)) covering = chain;
  }
  return null;
}

/** Moves per element after which the insertion sort, fast on the nearly sorted, gives way to the library's. */
const maxShiftsPerElement = 64;

function sortByFirst(chains: ChainTable): void {
  const { byFirst, first, count } = chains;
  let shiftsLeft = count * maxShiftsPerElement;
  for (let index = 1; index < count; index++) {
    const chain = byFirst[index]!;
    const time = first[chain]!;
    let slot = index;
    while (slot > 0 && first[byFirst[slot - 1]!]! > time) {
      byFirst[slot] = byFirst[slot - 1]!;
      slot--;
    }
    byFirst[slot] = chain;
    shiftsLeft -= index - slot;
    if (shiftsLeft < 0) {
      // Infinities cannot be subtracted: compare.
      byFirst.subarray(0, count).sort((x, y) => (first[x]! < first[y]! ? -1 : first[x]! > first[y]! ? 1 : 0));
      return;
    }
  }
}

/** Point 6: violated, settled, or left to the relay. */
function judgeDenials(history: RegisterHistory, table: ClusterTable, chains: ChainTable): ZoneResult {
  let isOpen = false;
  for (let index = 0; index < table.denials.length; index++) {
    const cluster = table.denialCluster[index]!;
    if (table.held[cluster] === 0) continue;
    const operation = table.denials[index]!;
    const invoked = history.invoke[operation]!;
    if (invoked <= chains.enterFrom[cluster]!) continue;
    if (invoked > chains.enterBy[cluster]! && history.complete[operation]! < chains.leaveFrom[cluster]!) {
      return { kind: 'invalid', violation: { kind: 'denied', cluster, operation } };
    }
    isOpen = true;
  }
  return isOpen ? { kind: 'denials' } : { kind: 'valid' };
}
