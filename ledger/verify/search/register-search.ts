/**
 * One register key as a search problem (linearize.ts), for keys whose values repeat. Owns the translation from columns to
 * `step`; if it were wrong, so would be every verdict on such keys.
 */

import type { RegisterHistory } from './register-history.ts';
import {
  casKind,
  failedStatus,
  isRelevantAt,
  readKind,
  unknownStatus,
  wholeHistory,
  writeKind,
} from './register-history.ts';
import type { Demand } from './demand.ts';
import type { SearchProblem } from './linearize.ts';
import { ValueIds } from './value-ids.ts';

/** The problem, and what its numbers stand for. */
export interface RegisterProblem {
  readonly problem: SearchProblem;
  /** For each operation of the problem its number in the history. */
  readonly operations: Int32Array;
  /** For each state its value. */
  readonly values: readonly number[];
}

/** Builds the problem of a key from its operations, given in order of invocation. */
export function registerProblem(history: RegisterHistory, operations: Uint32Array, initial: number): RegisterProblem {
  const chosen = operations.filter((operation) => isRelevantAt(history, operation, wholeHistory));
  const count = chosen.length;
  const ids = new ValueIds();
  const values: number[] = [];
  ids.begin();
  const stateOf = (value: number): number => {
    const id = ids.idOf(value);
    values[id] = value;
    return id;
  };
  const initialState = stateOf(initial);
  const isObserver = new Uint8Array(count);
  const requires = new Int32Array(count).fill(-1);
  const produces = new Int32Array(count).fill(-1);
  const denies = new Int32Array(count).fill(-1);
  const classes = new Map<string, number>();
  const effectClass = new Int32Array(count);
  const complete = new Float64Array(count);
  for (let op = 0; op < count; op++) {
    const operation = chosen[op]!;
    const kind = history.kind[operation]!;
    const status = history.status[operation]!;
    complete[op] = status === unknownStatus ? Infinity : history.complete[operation]!;
    if (kind === readKind) requires[op] = stateOf(history.b[operation]!);
    else if (kind === writeKind) produces[op] = stateOf(history.a[operation]!);
    else if (status === failedStatus) denies[op] = stateOf(history.a[operation]!);
    else {
      requires[op] = stateOf(history.a[operation]!);
      produces[op] = stateOf(history.b[operation]!);
    }
    isObserver[op] = kind === readKind || (kind === casKind && status === failedStatus) ? 1 : 0;
    const name = `${requires[op]} ${produces[op]} ${denies[op]}`;
    const known = classes.get(name);
    effectClass[op] = known ?? classes.size;
    if (known === undefined) classes.set(name, classes.size);
  }
  const step = (state: number, op: number): number => {
    if (requires[op]! >= 0 && requires[op] !== state) return -1;
    if (denies[op] === state) return -1;
    return produces[op]! >= 0 ? produces[op]! : state;
  };
  const invoke = Float64Array.from(chosen, (operation) => history.invoke[operation]!);
  const demand: Demand = {
    targetCount: values.length,
    requires,
    supplies: Array.from(produces, (state) => (state < 0 ? [] : [state])),
    isMet: (state, target) => state === target,
    isExact: true,
  };
  return {
    problem: { count, invoke, complete, effectClass, isObserver, initialState, step, demand },
    operations: Int32Array.from(chosen),
    values,
  };
}
