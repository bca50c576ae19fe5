/**
 * The relay: an exact search for an order of chains in which no denial is violated (register-zones.ts, point 6).
 *
 * The register is handed from value to value. Owns the verdict for keys with failed compare-and-sets that the zones leave
 * open; a wrong pruning rule would call a good store bad.
 *
 * - **Late moves are enough.** Given a valid schedule, delay every move to the next moment at which the current
 *   configuration forces one: the least of the deadline of the current tenure (denials.ts), the `enterBy` of the next
 *   cluster of the current chain, and the least `first` of a chain not yet entered. Tenures only start later, so their
 *   deadlines only grow, and those passed through at one moment last no time. So moves are tried at forced moments only.
 * - **Legal moves.** Along the current chain once its tenure may end. From the end of a complete chain to any chain whose
 *   writer is invoked, unless another chain must come before it (4 in register-zones.ts); such a move could never be
 *   completed, and without it some move is always open, so only denials cause dead ends. When a denial forces the move,
 *   also to a value of unknown outcome that nobody saw, each once (elsewhere it would stand for no time at all).
 * - **Twins.** Among chains that can be passed in an instant and that no denial and no unseen compare-and-set refers to,
 *   only the one with the earliest deadline is tried: in a schedule that takes another one now, exchange the two.
 *   The same for unseen plain writes that no denial or unseen compare-and-set refers to.
 * - Dead configurations are remembered exactly (no hashing without comparison). Out of budget is `unknown`.
 */

import type { SearchBudget } from './budget.ts';
import { isOutOfTime } from './budget.ts';
import type { ClusterTable } from './cluster-table.ts';
import { initialCluster, none } from './cluster-table.ts';
import { DenialIndex } from './denials.ts';
import type { ChainTable } from './register-zones.ts';
import type { RegisterHistory } from './register-history.ts';

/** Moves between two looks at the clock. */
const movesPerClockLook = 1024;

/** One configuration on the path, with the moves still to try. */
interface Frame {
  readonly at: number;
  readonly cluster: number;
  readonly leaveBy: number;
  readonly openedChains: number;
  readonly openedWrites: number;
  readonly firstUnplaced: number;
  readonly moves: readonly number[];
  tried: number;
}

/** Decides the denials. Call after `judgeZones` answered `denials`, with the same tables. */
export function judgeRelay(
  history: RegisterHistory,
  table: ClusterTable,
  chains: ChainTable,
  budget: SearchBudget,
): 'valid' | 'invalid' | 'unknown' {
  return new Relay(history, table, chains, budget).run();
}

class Relay {
  private readonly table: ClusterTable;
  private readonly chains: ChainTable;
  private readonly denials: DenialIndex;
  private readonly budget: SearchBudget;
  /** Chains in order of their first writer's invocation; opened ones not yet entered form a linked list. */
  private readonly byInvoke: Int32Array;
  private readonly after: Int32Array;
  private readonly before: Int32Array;
  private readonly isPlaced: Uint8Array;
  /** 1 for chains that no denial and no unseen compare-and-set refers to. */
  private readonly isTwin: Uint8Array;
  private openedChains = 0;
  private firstUnplaced = 0;
  /** Unseen writers in order of invocation, and unseen compare-and-sets by the cluster that they expect. */
  private readonly unseenWrites: number[] = [];
  private readonly unseenSwaps = new Map<number, number[]>();
  private readonly isUsed: Uint8Array;
  private readonly used: number[] = [];
  private openedWrites = 0;
  private cluster = initialCluster;
  private at = -Infinity;
  private leaveBy: number;
  private readonly frames: Frame[] = [];
  private readonly dead = new Set<string>();
  private deadBytes = 0;
  private hasFailed = false;

  constructor(history: RegisterHistory, table: ClusterTable, chains: ChainTable, budget: SearchBudget) {
    this.table = table;
    this.chains = chains;
    this.budget = budget;
    this.denials = new DenialIndex(history, table, chains);
    const end = chains.count;
    this.after = new Int32Array(end + 1).fill(end);
    this.before = new Int32Array(end + 1).fill(end);
    this.isPlaced = new Uint8Array(end);
    this.isTwin = new Uint8Array(end);
    this.isUsed = new Uint8Array(table.count);
    this.collectUnseen();
    const order: number[] = [];
    // Clusters are numbered as their values first appear; writers need a sort, which is nearly done already.
    for (let chain = 0; chain < end; chain++) {
      if (chain !== chains.chainOf[initialCluster]) order.push(chain);
      this.isTwin[chain] = this.isPlain(chain) ? 1 : 0;
    }
    const invoked = (chain: number): number => table.writerInvoke[chains.head[chain]!]!;
    order.sort((x, y) => invoked(x) - invoked(y));
    this.byInvoke = Int32Array.from(order);
    this.isPlaced[chains.chainOf[initialCluster]!] = 1;
    this.leaveBy = this.denials.leaveDeadline(initialCluster, -Infinity);
  }

  run(): 'valid' | 'invalid' | 'unknown' {
    let untilLook = movesPerClockLook;
    for (;;) {
      if (--untilLook === 0) {
        if (isOutOfTime(this.budget)) return 'unknown';
        untilLook = movesPerClockLook;
      }
      const forcedAt = this.forcedMoment();
      if (forcedAt === Infinity) return 'valid';
      this.open(forcedAt);
      const frame: Frame = {
        at: this.at,
        cluster: this.cluster,
        leaveBy: this.leaveBy,
        openedChains: this.openedChains,
        openedWrites: this.openedWrites,
        firstUnplaced: this.firstUnplaced,
        moves: this.hasFailed && this.dead.has(this.configuration(forcedAt)) ? [] : this.movesAt(forcedAt),
        tried: 0,
      };
      this.frames.push(frame);
      if (!this.advance(forcedAt)) return 'invalid';
    }
  }

  /** Takes the next untried move of the deepest frame that has one, undoing the rest. False when none is left. */
  private advance(forcedAt: number): boolean {
    let at = forcedAt;
    for (;;) {
      const frame = this.frames[this.frames.length - 1];
      if (frame === undefined) return false;
      if (frame.tried < frame.moves.length) {
        this.enter(frame.moves[frame.tried++]!, at);
        return true;
      }
      this.hasFailed = true;
      this.remember(this.configuration(at));
      this.frames.pop();
      const parent = this.frames[this.frames.length - 1];
      if (parent === undefined) return false;
      at = this.at;
      this.undo(parent, parent.moves[parent.tried - 1]!);
    }
  }

  private enter(cluster: number, at: number): void {
    if (this.table.held[cluster] === 0) {
      this.isUsed[cluster] = 1;
      this.used.push(cluster);
    } else {
      const chain = this.chains.chainOf[cluster]!;
      if (this.chains.head[chain] === cluster) this.place(chain);
    }
    this.cluster = cluster;
    this.at = at;
    this.leaveBy = this.denials.leaveDeadline(cluster, at);
  }

  /** Back to the parent's configuration at its forced moment, before its last move. */
  private undo(parent: Frame, moved: number): void {
    // Chains opened after that move are at the tail of the list, in order.
    while (this.openedChains > parent.openedChains) this.unlink(this.byInvoke[--this.openedChains]!);
    this.openedWrites = parent.openedWrites;
    if (this.table.held[moved] === 0) {
      this.isUsed[moved] = 0;
      this.used.pop();
    } else {
      const chain = this.chains.chainOf[moved]!;
      if (this.chains.head[chain] === moved) {
        this.isPlaced[chain] = 0;
        this.after[this.before[chain]!] = chain;
        this.before[this.after[chain]!] = chain;
      }
    }
    this.firstUnplaced = parent.firstUnplaced;
    this.cluster = parent.cluster;
    this.at = parent.at;
    this.leaveBy = parent.leaveBy;
  }

  private place(chain: number): void {
    this.isPlaced[chain] = 1;
    this.unlink(chain);
  }

  private unlink(chain: number): void {
    this.after[this.before[chain]!] = this.after[chain]!;
    this.before[this.after[chain]!] = this.before[chain]!;
  }

  /** The next moment at which something must move; Infinity when nothing must any more. */
  private forcedMoment(): number {
    const { byFirst, first, count, enterBy } = this.chains;
    while (this.firstUnplaced < count && this.isPlaced[byFirst[this.firstUnplaced]!] === 1) this.firstUnplaced++;
    let moment = this.leaveBy;
    if (this.firstUnplaced < count) moment = Math.min(moment, first[byFirst[this.firstUnplaced]!]!);
    const next = this.nextInChain();
    if (next !== none) moment = Math.min(moment, enterBy[next]!);
    return moment;
  }

  private nextInChain(): number {
    return this.table.held[this.cluster] === 1 ? this.table.next[this.cluster]! : none;
  }

  /** Opens the chains and unseen writes that are invoked by then. */
  private open(moment: number): void {
    const end = this.chains.count;
    while (this.openedChains < this.byInvoke.length) {
      const chain = this.byInvoke[this.openedChains]!;
      if (this.table.writerInvoke[this.chains.head[chain]!]! > moment) break;
      const tail = this.before[end]!;
      this.after[tail] = chain;
      this.before[chain] = tail;
      this.after[chain] = end;
      this.before[end] = chain;
      this.openedChains++;
    }
    const writes = this.unseenWrites;
    while (this.openedWrites < writes.length && this.table.writerInvoke[writes[this.openedWrites]!]! <= moment) {
      this.openedWrites++;
    }
  }

  /** Clusters that may be entered now, the most promising first. */
  private movesAt(moment: number): number[] {
    const { table, chains, denials } = this;
    const next = this.nextInChain();
    if (next !== none) return chains.enterFrom[next]! <= moment ? [next] : [];
    if (table.held[this.cluster] === 1 && chains.leaveFrom[this.cluster]! > moment) return [];
    const least = this.firstUnplaced < chains.count ? chains.byFirst[this.firstUnplaced]! : none;
    const leastFirst = least === none ? Infinity : chains.first[least]!;
    const secondFirst = this.secondFirst();
    let twin = none;
    const moves: number[] = [];
    for (let chain = this.after[chains.count]!; chain !== chains.count; chain = this.after[chain]!) {
      const final = chains.final[chain]!;
      if (final > (chain === least ? secondFirst : leastFirst)) continue;
      if (final <= moment && this.isTwin[chain] === 1) {
        if (twin === none || chains.first[chain]! < chains.first[twin]!) twin = chain;
      } else {
        moves.push(chains.head[chain]!);
      }
    }
    if (moves.length > 1) {
      moves.sort((x, y) => compare(denials.leaveDeadline(y, moment), denials.leaveDeadline(x, moment)));
    }
    if (twin !== none) moves.unshift(chains.head[twin]!);
    // Forced by a chain's own deadline: that chain first.
    if (least !== none && leastFirst === moment) bringForward(moves, chains.head[least]!);
    if (this.leaveBy === moment) this.addUnseenMoves(moves, moment);
    return moves;
  }

  private secondFirst(): number {
    const { byFirst, first, count } = this.chains;
    let index = this.firstUnplaced + 1;
    while (index < count && this.isPlaced[byFirst[index]!] === 1) index++;
    return index < count ? first[byFirst[index]!]! : Infinity;
  }

  private addUnseenMoves(moves: number[], moment: number): void {
    let hasTwin = false;
    for (let index = 0; index < this.openedWrites; index++) {
      const cluster = this.unseenWrites[index]!;
      if (this.isUsed[cluster] === 1) continue;
      if (this.isPlainCluster(cluster)) {
        if (hasTwin) continue;
        hasTwin = true;
      }
      moves.push(cluster);
    }
    for (const cluster of this.unseenSwaps.get(this.cluster) ?? []) {
      if (this.isUsed[cluster] === 0 && this.table.writerInvoke[cluster]! <= moment) moves.push(cluster);
    }
  }

  private collectUnseen(): void {
    const { table } = this;
    for (let cluster = 0; cluster < table.count; cluster++) {
      if (table.held[cluster] === 1 || table.writer[cluster] === none) continue;
      const expected = table.expects[cluster]!;
      if (expected === none) {
        this.unseenWrites.push(cluster);
        continue;
      }
      const others = this.unseenSwaps.get(expected);
      if (others === undefined) this.unseenSwaps.set(expected, [cluster]);
      else others.push(cluster);
    }
    this.unseenWrites.sort((x, y) => table.writerInvoke[x]! - table.writerInvoke[y]!);
  }

  private isPlain(chain: number): boolean {
    for (let cluster = this.chains.head[chain]!; cluster !== none; cluster = this.table.next[cluster]!) {
      if (!this.isPlainCluster(cluster)) return false;
    }
    return true;
  }

  private isPlainCluster(cluster: number): boolean {
    return this.denials.isFree(cluster) && !this.unseenSwaps.has(cluster);
  }

  /** All that the future depends on, as text: equal texts, equal futures. */
  private configuration(moment: number): string {
    let text = `${moment} ${this.cluster} ${this.leaveBy}|`;
    for (let chain = this.after[this.chains.count]!; chain !== this.chains.count; chain = this.after[chain]!) {
      text += `${chain},`;
    }
    if (this.used.length > 0) text += `|${this.used.toSorted((x, y) => x - y).join()}`;
    return text;
  }

  private remember(configuration: string): void {
    this.deadBytes += configuration.length + 64;
    if (this.deadBytes > this.budget.memoBytes) {
      this.dead.clear();
      this.deadBytes = 0;
    }
    this.dead.add(configuration);
  }
}

function compare(x: number, y: number): number {
  return x < y ? -1 : x > y ? 1 : 0;
}

function bringForward(moves: number[], move: number): void {
  const index = moves.indexOf(move);
  if (index <= 0) return;
  moves.splice(index, 1);
  moves.unshift(move);
}
