/**
 * Judges all register keys of a history, one after another in one memory, and gathers the evidence.
 *
 * Owns the sum of the keys' verdicts: one invalid key makes the history invalid, whatever ran out of budget; else one
 * undecided key makes it unknown; only all keys valid is valid.
 */

import type { SearchBudget } from './budget.ts';
import { sliceOf } from './budget.ts';
import type { RegisterEvidence, RegisterMethod } from './register-checker.ts';
import { RegisterChecker } from './register-checker.ts';
import type { RegisterHistory } from './register-history.ts';
import { decideInRounds } from './rounds.ts';

/** Operation numbers grouped by key, in order of invocation: key k has `order[starts[k]]` up to `order[starts[k + 1]]`. */
export interface KeyGroups {
  readonly order: Uint32Array;
  readonly starts: Uint32Array;
}

/** A key that cannot be explained; `evidence` is null for keys beyond the first few and when the budget ended. */
export interface InvalidKey {
  readonly key: number;
  readonly method: RegisterMethod;
  readonly evidence: RegisterEvidence | null;
}

/** Verdict on a history of registers. */
export interface RegistersVerdict {
  readonly kind: 'valid' | 'invalid' | 'unknown';
  /** Keys with operations. */
  readonly keys: number;
  /** How many keys each method decided. */
  readonly byMethod: Readonly<Record<RegisterMethod, number>>;
  /** In order of key. */
  readonly invalid: readonly InvalidKey[];
  /** Keys on which the budget ended. */
  readonly unknown: readonly number[];
}

/** Milliseconds for all evidence together. */
const evidenceMs = 10_000;

/** Keys for which evidence is worked out. */
const maxExplainedKeys = 16;

/** Where each key's operations start when they stand key after key, from the number of operations of each key. */
export function startsOf(counts: Uint32Array): Uint32Array {
  const starts = new Uint32Array(counts.length + 1);
  for (let key = 0; key < counts.length; key++) starts[key + 1] = starts[key]! + counts[key]!;
  return starts;
}

/** Groups operations by key with a counting sort. */
export function groupByKey(history: RegisterHistory, key: Uint32Array, keyCount: number): KeyGroups {
  const counts = new Uint32Array(keyCount);
  for (let op = 0; op < history.count; op++) counts[key[op]!]!++;
  const starts = startsOf(counts);
  const fill = starts.slice();
  const order = new Uint32Array(history.count);
  for (let op = 0; op < history.count; op++) order[fill[key[op]!]!++] = op;
  return inOrderOfInvocation(history, { order, starts });
}

/** The groups of a history that stands key after key already. */
export function groupsOf(history: RegisterHistory, starts: Uint32Array): KeyGroups {
  const order = new Uint32Array(history.count);
  for (let op = 0; op < history.count; op++) order[op] = op;
  return inOrderOfInvocation(history, { order, starts });
}

/** Sorts, in place, the groups that are not in order of invocation. */
function inOrderOfInvocation(history: RegisterHistory, groups: KeyGroups): KeyGroups {
  const { invoke } = history;
  const { order, starts } = groups;
  for (let key = 0; key + 1 < starts.length; key++) {
    const group = order.subarray(starts[key], starts[key + 1]);
    for (let index = 1; index < group.length; index++) {
      if (invoke[group[index]!]! >= invoke[group[index - 1]!]!) continue;
      group.sort((x, y) => invoke[x]! - invoke[y]! || x - y);
      break;
    }
  }
  return groups;
}

/** Judges every key. */
export function judgeKeys(
  history: RegisterHistory,
  groups: KeyGroups,
  initial: number,
  budget: SearchBudget,
): RegistersVerdict {
  const checker = new RegisterChecker(budget);
  const operationsOf = (key: number): Uint32Array => groups.order.subarray(groups.starts[key], groups.starts[key + 1]);
  const keys: number[] = [];
  for (let key = 0; key + 1 < groups.starts.length; key++) {
    if (groups.starts[key] !== groups.starts[key + 1]) keys.push(key);
  }
  const byMethod = { zones: 0, relay: 0, search: 0 };
  const invalid: InvalidKey[] = [];
  const unknown = decideInRounds(keys, budget, (key, slice) => {
    checker.setBudget(slice);
    const { kind, method } = checker.judge(history, operationsOf(key), initial);
    if (kind !== 'unknown') byMethod[method]++;
    if (kind === 'invalid') invalid.push({ key, method, evidence: null });
    return kind;
  });
  invalid.sort((x, y) => x.key - y.key);
  checker.setBudget(sliceOf(budget, evidenceMs));
  const explained = invalid.map((found, index) => {
    if (index >= maxExplainedKeys) return found;
    return { ...found, evidence: checker.explain(history, operationsOf(found.key), initial, found.method) };
  });
  const kind = invalid.length > 0 ? 'invalid' : unknown.length > 0 ? 'unknown' : 'valid';
  return { kind, keys: keys.length, byMethod, invalid: explained, unknown };
}

/** Of the explained keys, the one whose contradiction is complete first; null when none is explained. */
export function earliestEvidence(history: RegisterHistory, verdict: RegistersVerdict): InvalidKey | null {
  let earliest: InvalidKey | null = null;
  let time = Infinity;
  for (const found of verdict.invalid) {
    if (found.evidence === null) continue;
    const completed = history.complete[found.evidence.operation]!;
    if (earliest !== null && completed >= time) continue;
    earliest = found;
    time = completed;
  }
  return earliest ?? verdict.invalid[0] ?? null;
}
