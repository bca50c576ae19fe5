/** For tests: runs the checkers and the oracle side by side over seeded random histories. */

import { Prng } from '../../../lib/prng.ts';
import { unlimitedBudget } from './budget.ts';
import { linearize } from './linearize.ts';
import { RegisterChecker } from './register-checker.ts';
import { allOperations } from './register-history.ts';
import { registerProblem } from './register-search.ts';
import { isLinearizableByBruteForce, randomHistory, randomRefusals } from './testing.ts';

/** Counts of one run; `disagreements` holds the first few histories that were judged differently. */
export interface OracleRun {
  valid: number;
  invalid: number;
  relayInvalid: number;
  byMethod: { zones: number; relay: number; search: number };
  disagreements: object[];
}

/** What to run. `values`: 0 for unique ones, or how many; `refusals` takes the generator made for the relay. */
export interface OraclePlan {
  readonly seed: number;
  readonly histories: number;
  readonly values: number | 'refusals';
  readonly maxOperations?: number;
}

/** Judges random histories by the checker, by the search alone and by brute force. */
export function countDisagreements(options: OraclePlan): OracleRun {
  const prng = new Prng(options.seed);
  const run: OracleRun = {
    valid: 0,
    invalid: 0,
    relayInvalid: 0,
    byMethod: { zones: 0, relay: 0, search: 0 },
    disagreements: [],
  };
  const budget = unlimitedBudget();
  const checker = new RegisterChecker(budget);
  for (let index = 0; index < options.histories; index++) {
    const maxOperations = options.maxOperations ?? 9;
    const unknownChance = prng.pick([0, 0.1, 0.4]);
    const { values } = options;
    const history =
      values === 'refusals'
        ? randomRefusals(prng, maxOperations)
        : randomHistory(prng, { maxOperations, values, unknownChance, mutateChance: 0.5 });
    const initial = prng.chance(0.9) ? -1 : 1;
    const expected = isLinearizableByBruteForce(history, initial) ? 'valid' : 'invalid';
    const verdict = checker.judge(history, allOperations(history), initial);
    const searched = linearize(registerProblem(history, allOperations(history), initial).problem, budget).kind;
    run[expected]++;
    run.byMethod[verdict.method]++;
    if (verdict.method === 'relay' && expected === 'invalid') run.relayInvalid++;
    if ((verdict.kind !== expected || searched !== expected) && run.disagreements.length < 5) {
      run.disagreements.push({
        index,
        expected,
        judged: verdict.kind,
        searched,
        initial,
        method: verdict.method,
        ...history,
      });
    }
  }
  return run;
}
