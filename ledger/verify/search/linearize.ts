/**
 * Linearizability by search, for any deterministic model whose states are numbered: Wing and Gong ("Testing and verifying
 * concurrent objects", 1993) with Lowe's memo and just-in-time order ("Testing for linearizability", 2017).
 *
 * Owns the verdict where values repeat or the model is not a register. A wrong pruning rule would call a good store bad; a
 * search that gave up and said `valid` would pass a bad one.
 *
 * Completions are handled in order of time. At each, the operation that completes must have taken effect; if it has not, the
 * search branches over the open operations that may take effect next. A configuration is (completion, state, set of
 * open operations in effect), so memory goes with concurrency, not with the length of the history. Prunings, all exact:
 * - **Observers** (operations that never change the state) take effect as soon as they are legal: doing so earlier than in a
 *   given linearization changes nothing for the others.
 * - **Twins**: of open operations with one and the same effect, only the one with the earliest completion is tried; in a
 *   linearization that takes another first, exchange the two.
 * - **Demand** (demand.ts): a state from which some certain operation can never become legal is not entered.
 * - An operation of unknown outcome that would change nothing is not tried: leaving it out is as good.
 */

import type { SearchBudget } from './budget.ts';
import { isOutOfTime } from './budget.ts';
import { ConfigurationTable } from './configuration-table.ts';
import type { Demand } from './demand.ts';
import { DemandTracker } from './demand.ts';

/** The operations of one history, in order of invocation, and the model that they run against. */
export interface SearchProblem {
  readonly count: number;
  readonly invoke: Float64Array;
  /** Infinity: may take effect at any time after invoke or never. Finite: did. */
  readonly complete: Float64Array;
  /** Operations of one class have the same effect in every state; numbers from 0, dense. */
  readonly effectClass: Int32Array;
  /** 1 for operations that change the state in no state. */
  readonly isObserver: Uint8Array;
  readonly initialState: number;
  /** The next state, or −1 where the operation is not legal. States are numbers from 0. */
  readonly step: (state: number, operation: number) => number;
  /** Optional: prunes and orders the search. */
  readonly demand?: Demand;
}

/** What the search found; `explored` counts configurations. */
export type SearchResult =
  | { readonly kind: 'valid'; readonly explored: number }
  | {
      readonly kind: 'invalid';
      readonly explored: number;
      /** So many completions, in order of time, were explained at most: a prefix known to be linearizable. */
      readonly explained: number;
      /** The states in which the search stood when only the last completion of all was missing; bounded. */
      readonly lastStates: readonly number[];
    }
  | { readonly kind: 'unknown'; readonly explored: number };

/** States kept for evidence. */
export const maxLastStates = 64;

/** Configurations between two looks at the clock. */
const configurationsPerClockLook = 512;

/** Trail entry: the frontier moved on by one completion. Other entries are operation numbers. */
const advanced = -1;

/** Searches for a linearization. */
export function linearize(problem: SearchProblem, budget: SearchBudget): SearchResult {
  return new Linearizer(problem, budget).run();
}

class Linearizer {
  private readonly problem: SearchProblem;
  private readonly budget: SearchBudget;
  /** Operations that complete, in order of completion, and for each how many operations are invoked by then. */
  private readonly completions: Int32Array;
  private readonly openedBy: Int32Array;
  private readonly slotOf: Int32Array;
  private readonly slotOperation: Int32Array;
  private readonly inEffect: Uint8Array;
  private readonly table: ConfigurationTable;
  private readonly key: Int32Array;
  private readonly classStamp: Int32Array;
  private readonly classBest: Int32Array;
  private stamp = 0;
  private frontier = 0;
  private opened = 0;
  private state: number;
  private readonly trail: number[] = [];
  private readonly demand: DemandTracker | null;
  private explored = 0;
  private explained = 0;
  private readonly lastStates = new Set<number>();

  constructor(problem: SearchProblem, budget: SearchBudget) {
    this.problem = problem;
    this.budget = budget;
    this.table = new ConfigurationTable(budget.memoBytes);
    this.completions = completionOrder(problem);
    this.openedBy = openedByCompletion(problem, this.completions);
    this.slotOf = new Int32Array(problem.count);
    const slotCount = assignSlots(problem, this.completions, this.openedBy, this.slotOf);
    this.slotOperation = new Int32Array(slotCount).fill(-1);
    this.inEffect = new Uint8Array(problem.count);
    this.key = new Int32Array(2 + Math.ceil(slotCount / 32));
    let classCount = 0;
    for (let op = 0; op < problem.count; op++) classCount = Math.max(classCount, problem.effectClass[op]! + 1);
    this.classStamp = new Int32Array(classCount);
    this.classBest = new Int32Array(classCount);
    this.state = problem.initialState;
    this.demand =
      problem.demand === undefined ? null : new DemandTracker(problem.demand, problem.invoke, problem.complete);
  }

  run(): SearchResult {
    // Per frame: the trail's length and the state to go back to, and the range of moves still to try.
    const trailMarks: number[] = [];
    const states: number[] = [];
    const moveEnds: number[] = [];
    const moves: number[] = [];
    let untilLook = configurationsPerClockLook;
    if (this.demand?.isHopeless(this.state) === true) return this.invalid();
    this.openUpToFrontier();
    this.settle();
    for (;;) {
      if (this.frontier === this.completions.length) return { kind: 'valid', explored: this.explored };
      if (--untilLook === 0) {
        if (isOutOfTime(this.budget)) return { kind: 'unknown', explored: this.explored };
        untilLook = configurationsPerClockLook;
      }
      this.explored++;
      this.explained = Math.max(this.explained, this.frontier);
      const isLast = this.frontier === this.completions.length - 1;
      if (isLast && this.lastStates.size < maxLastStates) this.lastStates.add(this.state);
      trailMarks.push(this.trail.length);
      states.push(this.state);
      const base = moves.length;
      if (this.isNew()) this.pushMoves(moves);
      moveEnds.push(base);
      for (;;) {
        if (trailMarks.length === 0) return this.invalid();
        this.undoTo(trailMarks[trailMarks.length - 1]!, states[states.length - 1]!);
        if (moves.length === moveEnds[moveEnds.length - 1]!) {
          trailMarks.pop();
          states.pop();
          moveEnds.pop();
          continue;
        }
        if (this.apply(moves.pop()!)) break;
      }
    }
  }

  private invalid(): SearchResult {
    const { explored, explained } = this;
    return { kind: 'invalid', explored, explained, lastStates: [...this.lastStates] };
  }

  /** Puts a move into effect; false when what is left is hopeless. */
  private apply(operation: number): boolean {
    this.state = this.problem.step(this.state, operation);
    this.putInEffect(operation);
    if (this.demand !== null) {
      if (this.demand.isHopeless(this.state)) return false;
      this.state = this.demand.canonical(this.state);
    }
    this.settle();
    return !this.isHeldTooLong();
  }

  /**
   * The operation that must take effect next either is illegal in this state or leaves it (one that leaves it as it is would
   * supply it), but the state must stay beyond that operation's completion.
   */
  private isHeldTooLong(): boolean {
    if (this.demand === null || this.frontier === this.completions.length) return false;
    return this.problem.complete[this.completions[this.frontier]!]! < this.demand.heldUntil(this.state);
  }

  private putInEffect(operation: number): void {
    this.inEffect[operation] = 1;
    this.trail.push(operation);
    this.demand?.put(operation, true);
  }

  /** Observers that are legal take effect; completions already in effect pass; until neither is left. */
  private settle(): void {
    const { isObserver, step } = this.problem;
    let from = 0;
    for (;;) {
      for (let slot = from; slot < this.slotOperation.length; slot++) {
        const operation = this.slotOperation[slot]!;
        if (operation < 0 || this.inEffect[operation] === 1 || isObserver[operation] === 0) continue;
        if (step(this.state, operation) >= 0) this.putInEffect(operation);
      }
      let isMoved = false;
      while (this.frontier < this.completions.length && this.inEffect[this.completions[this.frontier]!] === 1) {
        this.slotOperation[this.slotOf[this.completions[this.frontier]!]!] = -1;
        this.frontier++;
        this.trail.push(advanced);
        isMoved = this.openUpToFrontier() || isMoved;
      }
      if (!isMoved) return;
      from = 0;
    }
  }

  private openUpToFrontier(): boolean {
    if (this.frontier === this.completions.length) return false;
    const end = this.openedBy[this.frontier]!;
    const isMoved = this.opened < end;
    for (; this.opened < end; this.opened++) this.slotOperation[this.slotOf[this.opened]!] = this.opened;
    return isMoved;
  }

  private undoTo(mark: number, state: number): void {
    while (this.trail.length > mark) {
      const entry = this.trail.pop()!;
      if (entry !== advanced) {
        this.inEffect[entry] = 0;
        this.demand?.put(entry, false);
        continue;
      }
      this.frontier--;
      const end = this.openedBy[this.frontier]!;
      while (this.opened > end) this.slotOperation[this.slotOf[--this.opened]!] = -1;
      const operation = this.completions[this.frontier]!;
      this.slotOperation[this.slotOf[operation]!] = operation;
    }
    this.state = state;
  }

  private isNew(): boolean {
    const { key } = this;
    key.fill(0);
    key[0] = this.frontier;
    key[1] = this.state;
    let length = 2;
    for (let slot = 0; slot < this.slotOperation.length; slot++) {
      const operation = this.slotOperation[slot]!;
      if (operation < 0 || this.inEffect[operation] === 0) continue;
      const word = 2 + (slot >>> 5);
      key[word]! |= 1 << (slot & 31);
      length = word + 1;
    }
    return this.table.add(key, length);
  }

  /** Pushes the moves, the most promising last. */
  private pushMoves(moves: number[]): void {
    const { problem, state } = this;
    const { effectClass, complete, step, isObserver } = problem;
    const forced = this.completions[this.frontier]!;
    this.stamp++;
    const base = moves.length;
    for (let slot = 0; slot < this.slotOperation.length; slot++) {
      const operation = this.slotOperation[slot]!;
      if (operation < 0 || this.inEffect[operation] === 1 || isObserver[operation] === 1) continue;
      const next = step(state, operation);
      if (next < 0 || (next === state && complete[operation] === Infinity)) continue;
      const effect = effectClass[operation]!;
      if (this.classStamp[effect] !== this.stamp) {
        this.classStamp[effect] = this.stamp;
        this.classBest[effect] = moves.length;
        moves.push(operation);
      } else if (isEarlier(operation, moves[this.classBest[effect]!]!, complete)) {
        moves[this.classBest[effect]!] = operation;
      }
    }
    if (moves.length - base > 1) this.orderMoves(moves, base, forced);
  }

  private orderMoves(moves: number[], base: number, forced: number): void {
    const { complete, demand } = this.problem;
    const wanted = demand === undefined ? -1 : demand.requires[forced]!;
    const rank = (operation: number): number => {
      if (operation === forced) return -Infinity;
      if (wanted >= 0 && demand!.supplies[operation]!.includes(wanted))
        return complete[operation] === Infinity ? 0 : -1;
      return complete[operation]!;
    };
    const sorted = moves.slice(base).sort((x, y) => {
      const a = rank(x);
      const b = rank(y);
      return a < b ? 1 : a > b ? -1 : y - x;
    });
    for (let index = 0; index < sorted.length; index++) moves[base + index] = sorted[index]!;
  }
}

function isEarlier(x: number, y: number, complete: Float64Array): boolean {
  return complete[x]! < complete[y]! || (complete[x] === complete[y] && x < y);
}

/** The operations that complete, in order of completion. */
export function completionOrder(problem: SearchProblem): Int32Array {
  const order: number[] = [];
  for (let op = 0; op < problem.count; op++) if (problem.complete[op] !== Infinity) order.push(op);
  order.sort((x, y) => problem.complete[x]! - problem.complete[y]! || x - y);
  return Int32Array.from(order);
}

function openedByCompletion(problem: SearchProblem, completions: Int32Array): Int32Array {
  const openedBy = new Int32Array(completions.length);
  let opened = 0;
  for (let index = 0; index < completions.length; index++) {
    const time = problem.complete[completions[index]!]!;
    while (opened < problem.count && problem.invoke[opened]! <= time) opened++;
    openedBy[index] = opened;
  }
  return openedBy;
}

/** A slot for every operation, free again after its completion; returns how many are needed. */
function assignSlots(
  problem: SearchProblem,
  completions: Int32Array,
  openedBy: Int32Array,
  slotOf: Int32Array,
): number {
  const free: number[] = [];
  let slotCount = 0;
  let opened = 0;
  for (let index = 0; index < completions.length; index++) {
    for (; opened < openedBy[index]!; opened++) slotOf[opened] = free.pop() ?? slotCount++;
    free.push(slotOf[completions[index]!]!);
  }
  return slotCount;
}
