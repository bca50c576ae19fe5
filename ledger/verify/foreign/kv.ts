/**
 * Model `kv`: per key a string, "" at the start; `put` replaces it, `append` adds at its end, `get` returns it. Keys are
 * independent, so each is judged alone (linearizability is local: Herlihy and Wing 1990, theorem 1).
 */

import type { SearchBudget } from '../search/budget.ts';
import type { Demand } from '../search/demand.ts';
import type { SearchProblem } from '../search/linearize.ts';
import type { Judgement } from './evidence.ts';
import type { ForeignOperation } from './history.ts';
import { shorten } from './places.ts';
import type { SearchKey } from './search-judgement.ts';
import { judgeBySearch } from './search-judgement.ts';
import { UserError } from './user-error.ts';

/** Judges the operations. Throws {@link UserError} for operations of another model. */
export function judgeKv(operations: readonly ForeignOperation[], budget: SearchBudget): Judgement {
  const byKey = new Map<string, ForeignOperation[]>();
  for (const operation of operations) {
    if (operation.f !== 'get' && operation.f !== 'put' && operation.f !== 'append') {
      throw new UserError(`:${operation.f} is not an operation of model kv`, operation.invokeLine);
    }
    // A get without answer says nothing.
    if (operation.f === 'get' && operation.outcome !== 'ok') continue;
    const key = operation.key ?? '';
    const others = byKey.get(key);
    if (others === undefined) byKey.set(key, [operation]);
    else others.push(operation);
  }
  return judgeBySearch(
    [...byKey].map(([key, members]) => searchKey(key, members)),
    budget,
  );
}

function searchKey(key: string, operations: readonly ForeignOperation[]): SearchKey {
  const states: string[] = [];
  const stateNumbers = new Map<string, number>();
  const stateOf = (text: string): number => {
    const known = stateNumbers.get(text);
    if (known !== undefined) return known;
    stateNumbers.set(text, states.length);
    return states.push(text) - 1;
  };
  const initialState = stateOf('');
  const classes = new Map<string, number>();
  const effectClass = new Int32Array(operations.length);
  const texts: string[] = [];
  const wanted = new Int32Array(operations.length);
  operations.forEach((operation, index) => {
    const text = String(operation.f === 'get' ? operation.output : operation.input);
    texts.push(text);
    const name = `${operation.f} ${text}`;
    const effect = classes.get(name) ?? classes.size;
    classes.set(name, effect);
    effectClass[index] = effect;
    // A get's text, or a put's, is a state of its own; an append's state depends on the one before.
    wanted[index] = operation.f === 'append' ? -1 : stateOf(text);
  });
  const appended = new Map<number, number>();
  // Not a string that any operation can produce: see demandOf.
  const blindState = states.push('\u0000unseen') - 1;
  const step = (state: number, operation: number): number => {
    const f = operations[operation]!.f;
    if (f === 'get') return wanted[operation] === state ? state : -1;
    if (f === 'put') return wanted[operation]!;
    if (state === blindState) return blindState;
    const move = state * classes.size + effectClass[operation]!;
    let next = appended.get(move);
    if (next === undefined) appended.set(move, (next = stateOf(states[state]! + texts[operation]!)));
    return next;
  };
  const problem: SearchProblem = {
    count: operations.length,
    invoke: Float64Array.from(operations, ({ invokedAt }) => invokedAt),
    complete: Float64Array.from(operations, ({ completedAt }) => completedAt),
    effectClass,
    isObserver: Uint8Array.from(operations, ({ f }) => (f === 'get' ? 1 : 0)),
    initialState,
    step,
    demand: demandOf(operations, wanted, states, blindState),
  };
  return {
    key,
    operations,
    problem,
    stateName: (state) =>
      state === blindState ? 'a string that no get shows' : shorten(JSON.stringify(states[state]!)),
  };
}

/**
 * A get's text can be reached from a state that it begins with, by appends; or after a put whose text it begins with.
 * Strings with which no get to come begins are all alike until the next put: `blindState` stands for them.
 */
function demandOf(
  operations: readonly ForeignOperation[],
  wanted: Int32Array,
  states: readonly string[],
  blindState: number,
): Demand {
  const requires = wanted.map((state, index) => (operations[index]!.f === 'get' ? state : -1));
  const targets = [...new Set(requires)].filter((target) => target >= 0);
  const supplies = operations.map(({ f }, index) =>
    f === 'put' ? targets.filter((target) => states[target]!.startsWith(states[wanted[index]!]!)) : [],
  );
  const isMet = (state: number, target: number): boolean =>
    state !== blindState && states[target]!.startsWith(states[state]!);
  return { targetCount: states.length, requires, supplies, isMet, blindState };
}
