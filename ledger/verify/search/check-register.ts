/**
 * Linearizability of registers from plain operations, for stores that give no versions.
 *
 * Owns the translation from a harness's operations to columns. If it were wrong (a refused operation taken for a
 * failed one, say), a good store would be called bad.
 */

import type { SearchBudget } from './budget.ts';
import { conflictText } from './conflict-text.ts';
import { earliestEvidence, groupByKey, judgeKeys } from './judge-keys.ts';
import type { RegisterMethod } from './register-checker.ts';
import {
  allocateHistory,
  casKind,
  failedStatus,
  okStatus,
  readKind,
  unknownStatus,
  writeKind,
} from './register-history.ts';

/** One operation on one key; null stands for the absent value. Times are of one clock, any unit. */
export interface RegisterOperation {
  readonly key: string;
  readonly f: 'read' | 'write' | 'cas' | 'delete';
  /**
   * `ok` took effect. `fail` did not happen and says nothing. `mismatch` (cas only): judged, the state was not `expected` — an
   * observation. `info` unknown, may take effect at any time after invoke.
   */
  readonly outcome: 'ok' | 'fail' | 'mismatch' | 'info';
  /** read: the result. write, cas: the new value. delete: not used. */
  readonly value?: string | null;
  /** cas: the expected value; null expects absence (create). */
  readonly expected?: string | null;
  readonly invokedAt: number;
  /** Not used for `info`. */
  readonly completedAt: number;
}

/** Why a history is not linearizable; numbers are indexes into the operations given. */
export interface RegisterFinding {
  readonly key: string;
  readonly method: RegisterMethod;
  /** The operation at whose completion the history of its key cannot be explained any more; null: see `isSmallest`. */
  readonly operation: number | null;
  readonly reason: string;
  readonly witnesses: readonly number[];
  /** Values possible when `operation` had to take effect. */
  readonly statesPossible: readonly (string | null)[];
  /** False where the budget ended the search for the smallest prefix. */
  readonly isSmallest: boolean;
}

/** The verdict; `unknown` lists the keys on which the budget ended. */
export type CheckRegisterResult =
  | { readonly verdict: 'valid'; readonly keys: number }
  | {
      readonly verdict: 'invalid';
      readonly keys: number;
      readonly evidence: RegisterFinding;
      readonly invalidKeys: readonly string[];
    }
  | { readonly verdict: 'unknown'; readonly keys: number; readonly undecidedKeys: readonly string[] };

/** Absent, among value numbers. */
const absent = -1;

/**
 * Judges the operations, in any order, key by key; every key starts with `initial` (default: absent). Keys whose written
 * values are all different are decided in O(n log n), whatever the concurrency (failed compare-and-sets may add a search); keys
 * with repeated values, a delete where the key also starts absent among them, by search within the budget.
 */
export function checkRegister(
  operations: readonly RegisterOperation[],
  budget: SearchBudget,
  initial: string | null = null,
): CheckRegisterResult {
  const texts: string[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (text: string | null | undefined): number => {
    if (text === null || text === undefined) return absent;
    const known = numbers.get(text);
    if (known !== undefined) return known;
    numbers.set(text, texts.length);
    texts.push(text);
    return texts.length - 1;
  };
  const keyNames: string[] = [];
  const keyNumbers = new Map<string, number>();
  const history = allocateHistory(operations.length);
  const keys = new Uint32Array(operations.length);
  operations.forEach((operation, index) => {
    let key = keyNumbers.get(operation.key);
    if (key === undefined) {
      key = keyNames.push(operation.key) - 1;
      keyNumbers.set(operation.key, key);
    }
    keys[index] = key;
    const { f, outcome } = operation;
    history.kind[index] = f === 'read' ? readKind : f === 'cas' ? casKind : writeKind;
    history.status[index] = outcome === 'ok' ? okStatus : outcome === 'mismatch' ? failedStatus : unknownStatus;
    // A failed operation did not happen: a read of unknown result says just that.
    if (outcome === 'fail') history.kind[index] = readKind;
    history.invoke[index] = operation.invokedAt;
    history.complete[index] = outcome === 'info' || outcome === 'fail' ? Infinity : operation.completedAt;
    if (f === 'read') history.b[index] = numberOf(operation.value);
    else if (f === 'cas') {
      history.a[index] = numberOf(operation.expected);
      history.b[index] = numberOf(operation.value);
    } else history.a[index] = f === 'delete' ? absent : numberOf(operation.value);
  });
  const textOf = (value: number): string | null => (value === absent ? null : texts[value]!);
  const verdict = judgeKeys(history, groupByKey(history, keys, keyNames.length), numberOf(initial), budget);
  if (verdict.kind === 'valid') return { verdict: 'valid', keys: verdict.keys };
  if (verdict.kind === 'unknown') {
    return { verdict: 'unknown', keys: verdict.keys, undecidedKeys: verdict.unknown.map((key) => keyNames[key]!) };
  }
  const found = earliestEvidence(history, verdict)!;
  const { evidence } = found;
  return {
    verdict: 'invalid',
    keys: verdict.keys,
    invalidKeys: verdict.invalid.map(({ key }) => keyNames[key]!),
    evidence: {
      key: keyNames[found.key]!,
      method: found.method,
      operation: evidence?.operation ?? null,
      reason: conflictText(evidence?.conflict ?? { kind: 'unexplained' }, (value) => textOf(value) ?? 'absence'),
      witnesses: evidence?.witnesses ?? [],
      statesPossible: (evidence?.statesPossible ?? []).map(textOf),
      isSmallest: evidence?.isSmallest ?? false,
    },
  };
}
