/** Judges keys by search (search/linearize.ts) and words the result. Owns the sum of the keys' verdicts. */

import type { SearchBudget } from '../search/budget.ts';
import { sliceOf } from '../search/budget.ts';
import { explainSearch } from '../search/explain-search.ts';
import { decideInRounds } from '../search/rounds.ts';
import type { SearchProblem } from '../search/linearize.ts';
import { linearize } from '../search/linearize.ts';
import type { Judgement } from './evidence.ts';
import { maxNamed } from './evidence.ts';
import type { ForeignOperation } from './history.ts';
import { placeOf } from './places.ts';

/** One key's problem; `operations` are those of the problem, in its order. */
export interface SearchKey {
  readonly key: string | null;
  readonly operations: readonly ForeignOperation[];
  readonly problem: SearchProblem;
  readonly stateName: (state: number) => string;
}

/** Milliseconds for all evidence together. */
const evidenceMs = 3_000;

/** One invalid key makes it invalid; else one out of budget makes it unknown. */
export function judgeBySearch(keys: readonly SearchKey[], budget: SearchBudget): Judgement {
  const invalid: SearchKey[] = [];
  let explored = 0;
  const unknown = decideInRounds(keys, budget, (key, slice) => {
    const result = linearize(key.problem, slice);
    explored += result.explored;
    if (result.kind === 'invalid') invalid.push(key);
    return result.kind;
  });
  const nameOf = ({ key }: SearchKey): string => key ?? 'the only key';
  if (invalid.length > 0) return explain(invalid, keys.length, sliceOf(budget, evidenceMs), nameOf);
  if (unknown.length > 0) {
    const named = unknown.slice(0, maxNamed).map(nameOf).join(', ');
    return {
      verdict: 'unknown',
      keys: keys.length,
      reason: `out of budget on ${unknown.length} of ${keys.length} keys: ${named}`,
    };
  }
  return { verdict: 'valid', keys: keys.length, notes: { search: keys.length, configurations: explored } };
}

function explain(
  invalid: readonly SearchKey[],
  keys: number,
  budget: SearchBudget,
  nameOf: (key: SearchKey) => string,
): Judgement {
  let best: { readonly key: SearchKey; readonly found: ReturnType<typeof explainSearch>; readonly at: number } | null =
    null;
  for (const key of invalid.slice(0, maxNamed)) {
    const found = explainSearch(key.problem, budget);
    const at = found === null ? Infinity : key.operations[found.operation]!.completedAt;
    if (best === null || at < best.at) best = { key, found, at };
  }
  const { key, found } = best!;
  return {
    verdict: 'invalid',
    keys,
    evidence: {
      key: key.key,
      operation: found === null ? null : placeOf(key.operations[found.operation]!),
      prefixOperations: found?.prefixCompletions ?? null,
      isSmallest: found?.isSmallest ?? false,
      reason: 'no order of the operations up to here is legal and agrees with real time',
      statesPossible: (found?.states ?? []).map(key.stateName),
      isStatesComplete: found?.isStatesComplete ?? false,
      witnesses: [],
      invalidKeys: invalid.length,
      firstInvalidKeys: invalid.slice(0, maxNamed).map(nameOf),
    },
  };
}
