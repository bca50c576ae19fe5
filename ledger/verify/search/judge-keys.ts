/**
 * Judges all register keys of a history, one after another in one memory, and gathers the evidence.
 *
 * Owns the sum of the keys' verdicts: one invalid key makes the history invalid, whatever ran out of budget; else one
 * undecided key makes it unknown; only all keys valid is valid.
 */

import type { SearchBudget } from './budget.ts';
import type { RegisterEvidence, RegisterMethod } from './register-checker.ts';
import { RegisterChecker } from './register-checker.ts';
import type { RegisterHistory } from './register-history.ts';

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

/** Keys for which evidence is worked out. */
const maxExplainedKeys = 16;

/** Groups operations by key with a counting sort, then by invocation where the history is not in that order. */
export function groupByKey(history: RegisterHistory, key: Uint32Array, keyCount: number): KeyGroups {
  const starts = new Uint32Array(keyCount + 1);
  let isOrdered = true;
  for (let op = 0; op < history.count; op++) {
    starts[key[op]! + 1]!++;
    if (op > 0 && history.invoke[op]! < history.invoke[op - 1]!) isOrdered = false;
  }
  for (let index = 0; index < keyCount; index++) starts[index + 1]! += starts[index]!;
  const fill = starts.slice();
  const order = new Uint32Array(history.count);
  for (let op = 0; op < history.count; op++) order[fill[key[op]!]!++] = op;
  if (!isOrdered) {
    for (let index = 0; index < keyCount; index++) {
      const { invoke } = history;
      order.subarray(starts[index]!, starts[index + 1]!).sort((x, y) => invoke[x]! - invoke[y]! || x - y);
    }
  }
  return { order, starts };
}

/** Judges every key. */
export function judgeKeys(
  history: RegisterHistory,
  groups: KeyGroups,
  initial: number,
  budget: SearchBudget,
): RegistersVerdict {
  const checker = new RegisterChecker(budget);
  const byMethod = { zones: 0, relay: 0, search: 0 };
  const invalid: InvalidKey[] = [];
  const unknown: number[] = [];
  let keys = 0;
  const operationsOf = (key: number): Uint32Array =>
    groups.order.subarray(groups.starts[key]!, groups.starts[key + 1]!);
  for (let key = 0; key + 1 < groups.starts.length; key++) {
    const operations = operationsOf(key);
    if (operations.length === 0) continue;
    keys++;
    const verdict = checker.judge(history, operations, initial);
    byMethod[verdict.method]++;
    if (verdict.kind === 'unknown') unknown.push(key);
    else if (verdict.kind === 'invalid') invalid.push({ key, method: verdict.method, evidence: null });
  }
  const explained = invalid.map((found, index) => {
    if (index >= maxExplainedKeys) return found;
    return { ...found, evidence: checker.explain(history, operationsOf(found.key), initial, found.method) };
  });
  const kind = invalid.length > 0 ? 'invalid' : unknown.length > 0 ? 'unknown' : 'valid';
  return { kind, keys, byMethod, invalid: explained, unknown };
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
