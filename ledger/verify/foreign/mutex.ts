/** Model `mutex`: `acquire` takes a free lock, `release` frees a held one; free at the start. Owners are not known to it. */

import type { SearchBudget } from '../search/budget.ts';
import type { SearchProblem } from '../search/linearize.ts';
import type { Judgement } from './evidence.ts';
import type { ForeignOperation } from './history.ts';
import { judgeBySearch } from './search-judgement.ts';
import { UserError } from './user-error.ts';

const free = 0;
const held = 1;
const stateNames = ['free', 'held'];

/** Judges the operations. Throws {@link UserError} for operations of another model. */
export function judgeMutex(operations: readonly ForeignOperation[], budget: SearchBudget): Judgement {
  const count = operations.length;
  const requires = new Int32Array(count);
  operations.forEach((operation, index) => {
    if (operation.f !== 'acquire' && operation.f !== 'release') {
      throw new UserError(`:${operation.f} is not an operation of model mutex`, operation.invokeLine);
    }
    requires[index] = operation.f === 'acquire' ? free : held;
  });
  const problem: SearchProblem = {
    count,
    invoke: Float64Array.from(operations, ({ invokedAt }) => invokedAt),
    complete: Float64Array.from(operations, ({ completedAt }) => completedAt),
    effectClass: requires,
    isObserver: new Uint8Array(count),
    initialState: free,
    step: (state, operation) => (requires[operation] === state ? 1 - state : -1),
    demand: {
      targetCount: stateNames.length,
      requires,
      supplies: Array.from(requires, (state) => [1 - state]),
      isMet: (state, target) => state === target,
      isExact: true,
    },
  };
  return judgeBySearch([{ key: null, operations, problem, stateName: (state) => stateNames[state]! }], budget);
}
