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
 * - **Supply**: a state is not left while certain operations still require it and no operation that may produce it is left.
 * - An operation of unknown outcome that would change nothing is not tried: leaving it out is as good.
 */

import type { SearchBudget } from './budget.ts';
import { isOutOfTime } from './budget.ts';
import { ConfigurationTable } from './configuration-table.ts';

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
  /** Optional, both or neither: the one state that the operation requires, the one that it leaves; −1 for none or any. */
  readonly requires?: Int32Array;
  readonly produces?: Int32Array;
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

/** A problem cut to a prefix, and for each of its operations the number in the whole problem. */
export interface CutProblem {
  readonly problem: SearchProblem;
  readonly original: Int32Array;
}

/** States kept for evidence. */
const maxLastStates = 64;

/** Configurations between two looks at the clock. */
const configurationsPerClockLook = 512;

/** Trail entry: the frontier moved on by one completion. Other entries are operation numbers. */
const advanced = -1;

/** Searches for a linearization. With `isThorough`, impossible histories are searched too, for `lastStates`. */
export function linearize(problem: SearchProblem, budget: SearchBudget, isThorough = false): SearchResult {
  return new Linearizer(problem, budget).run(isThorough);
}

/** How many operations complete. */
export function completionCount(problem: SearchProblem): number {
  return completionOrder(problem).length;
}

/**
 * The prefix that ends with completion number `kept`, counted from 1. Operations that complete later are open in it: observers say nothing
 * yet and go, others may have happened or not.
 */
export function cutProblem(problem: SearchProblem, kept: number): CutProblem {
  const order = completionOrder(problem);
  if (kept >= order.length) return { problem, original: Int32Array.from({ length: problem.count }, (_, op) => op) };
  const isKept = new Uint8Array(problem.count);
  for (let index = 0; index < kept; index++) isKept[order[index]!] = 1;
  const endTime = kept === 0 ? -Infinity : problem.complete[order[kept - 1]!]!;
  const chosen: number[] = [];
  for (let op = 0; op < problem.count; op++) {
    if (problem.invoke[op]! <= endTime && (isKept[op] === 1 || problem.isObserver[op] === 0)) chosen.push(op);
  }
  const pick = (from: Int32Array): Int32Array => Int32Array.from(chosen, (op) => from[op]!);
  const cut: SearchProblem = {
    count: chosen.length,
    invoke: Float64Array.from(chosen, (op) => problem.invoke[op]!),
    complete: Float64Array.from(chosen, (op) => (isKept[op] === 1 ? problem.complete[op]! : Infinity)),
    effectClass: pick(problem.effectClass),
    isObserver: Uint8Array.from(chosen, (op) => problem.isObserver[op]!),
    initialState: problem.initialState,
    step: (state, op) => problem.step(state, chosen[op]!),
    ...(problem.requires === undefined ? {} : { requires: pick(problem.requires) }),
    ...(problem.produces === undefined ? {} : { produces: pick(problem.produces) }),
  };
  return { problem: cut, original: Int32Array.from(chosen) };
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
  private readonly required: Int32Array | null;
  private readonly supplied: Int32Array | null;
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
    const stateCount = problem.requires === undefined ? 0 : maxState(problem) + 1;
    this.required = problem.requires === undefined ? null : new Int32Array(stateCount);
    this.supplied = problem.produces === undefined ? null : new Int32Array(stateCount);
    for (let op = 0; op < problem.count; op++) this.count(op, 1);
  }

  run(isThorough: boolean): SearchResult {
    // Per frame: the trail's length and the state to go back to, and the range of moves still to try.
    const trailMarks: number[] = [];
    const states: number[] = [];
    const moveEnds: number[] = [];
    const moves: number[] = [];
    let untilLook = configurationsPerClockLook;
    if (!isThorough && this.lacksSupply()) return this.invalid();
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

  /** A certain operation requires a state that nothing produces. */
  private lacksSupply(): boolean {
    if (this.required === null) return false;
    for (let state = 0; state < this.required.length; state++) {
      if (state !== this.state && this.required[state]! > 0 && this.supplied![state] === 0) return true;
    }
    return false;
  }

  /** Puts a move into effect; false when it leaves a state that is still required and cannot come back. */
  private apply(operation: number): boolean {
    const left = this.state;
    this.state = this.problem.step(left, operation);
    this.putInEffect(operation);
    if (this.state !== left && this.required !== null) {
      if (this.required[left]! > 0 && this.supplied![left]! === 0) return false;
    }
    this.settle();
    return true;
  }

  private putInEffect(operation: number): void {
    this.inEffect[operation] = 1;
    this.trail.push(operation);
    this.count(operation, -1);
  }

  private count(operation: number, by: number): void {
    if (this.required === null) return;
    const requires = this.problem.requires![operation]!;
    if (requires >= 0 && this.problem.complete[operation]! !== Infinity) this.required[requires]! += by;
    const produces = this.problem.produces![operation]!;
    if (produces >= 0) this.supplied![produces]! += by;
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
        this.count(entry, 1);
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
    const { complete, requires, produces } = this.problem;
    const wanted = requires === undefined ? -1 : requires[forced]!;
    const rank = (operation: number): number => {
      if (operation === forced) return -Infinity;
      if (wanted >= 0 && produces![operation] === wanted) return complete[operation]! === Infinity ? 0 : -1;
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
  return complete[x]! < complete[y]! || (complete[x]! === complete[y]! && x < y);
}

function completionOrder(problem: SearchProblem): Int32Array {
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

function maxState(problem: SearchProblem): number {
  let max = problem.initialState;
  for (let op = 0; op < problem.count; op++) {
    max = Math.max(max, problem.requires![op]!, problem.produces![op]!);
  }
  return max;
}
