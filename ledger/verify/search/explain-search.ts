/**
 * Evidence from a search that found no linearization: the smallest prefix that has none, and the states in which the
 * register (or map, or lock) could have been when its last operation had to take effect. Owns only evidence.
 */

import type { SearchBudget } from './budget.ts';
import { sliceOf } from './budget.ts';
import type { Demand } from './demand.ts';
import type { SearchProblem } from './linearize.ts';
import { completionOrder, linearize, maxLastStates } from './linearize.ts';
import { smallestPrefix } from './smallest-prefix.ts';

/** Milliseconds for telling apart states that no operation tells apart. */
const exactStatesMs = 250;

/** Numbers are those of the problem. */
export interface SearchEvidence {
  /** The operation whose completion ends the smallest prefix that cannot be explained. */
  readonly operation: number;
  readonly prefixCompletions: number;
  /** False where the budget ended the search for a smaller one. */
  readonly isSmallest: boolean;
  readonly states: readonly number[];
  readonly isStatesComplete: boolean;
}

/** A problem cut to a prefix; `chosen` gives for each of its operations the number in the whole problem. */
interface CutProblem {
  readonly problem: SearchProblem;
  readonly chosen: readonly number[];
}

/** Explains a problem that {@link linearize} called invalid. Null when the budget ends before it is found so again. */
export function explainSearch(problem: SearchProblem, budget: SearchBudget): SearchEvidence | null {
  const result = linearize(problem, budget);
  if (result.kind !== 'invalid') return null;
  const order = completionOrder(problem);
  const prefix = smallestPrefix(
    result.explained,
    order.length,
    (kept) => linearize(cutProblem(problem, order, kept).problem, budget).kind,
  );
  const operation = order[prefix.completions - 1]!;
  const cut = cutProblem(problem, order, prefix.completions);
  const exact = linearize(withoutDemandOf(cut, operation, false), sliceOf(budget, exactStatesMs));
  const last = exact.kind === 'unknown' ? linearize(withoutDemandOf(cut, operation, true), budget) : exact;
  const states = last.kind === 'invalid' ? last.lastStates : [];
  return {
    operation,
    prefixCompletions: prefix.completions,
    isSmallest: prefix.isMinimal,
    states,
    isStatesComplete: last.kind === 'invalid' && states.length < maxLastStates,
  };
}

/**
 * The prefix that ends with completion number `kept`, counted from 1. Operations that complete later are open in it: observers say nothing
 * yet and go, others may have happened or not.
 */
function cutProblem(problem: SearchProblem, order: Int32Array, kept: number): CutProblem {
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
    ...(problem.demand === undefined ? {} : { demand: cutDemand(problem.demand, chosen) }),
  };
  return { problem: cut, chosen };
}

/**
 * The problem with the last operation's own demand left out: pruning by it would leave out the very states from which it
 * is hopeless. So would putting all states from which it cannot be met into one.
 */
function withoutDemandOf(cut: CutProblem, operation: number, isBlindAllowed: boolean): SearchProblem {
  const { problem, chosen } = cut;
  if (problem.demand === undefined) return problem;
  const requires = problem.demand.requires.slice();
  requires[chosen.indexOf(operation)] = -1;
  const { blindState, ...demand } = problem.demand;
  const isBlind = isBlindAllowed && blindState !== undefined;
  return { ...problem, demand: isBlind ? { ...demand, requires, blindState } : { ...demand, requires } };
}

function cutDemand(demand: Demand, chosen: readonly number[]): Demand {
  return {
    ...demand,
    requires: Int32Array.from(chosen, (op) => demand.requires[op]!),
    supplies: chosen.map((op) => demand.supplies[op]!),
  };
}
