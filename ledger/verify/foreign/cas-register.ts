/**
 * Model `cas-register`: one register (or one per key), `read`, `write N`, `cas [FROM TO]`.
 *
 * Owns the translation of a format's events to register operations. Jepsen's `independent` histories, whose values are
 * [key value] pairs throughout, are judged key by key.
 */

import type { SearchBudget } from '../search/budget.ts';
import { conflictText } from '../search/conflict-text.ts';
import type { RegistersVerdict } from '../search/judge-keys.ts';
import { earliestEvidence, groupByKey, judgeKeys } from '../search/judge-keys.ts';
import type { RegisterHistory } from '../search/register-history.ts';
import {
  allocateHistory,
  casKind,
  failedStatus,
  okStatus,
  readKind,
  unknownStatus,
  writeKind,
} from '../search/register-history.ts';
import type { Judgement, OperationPlace } from './evidence.ts';
import { maxNamed } from './evidence.ts';
import type { ForeignOperation } from './history.ts';
import { effectiveValue } from './jepsen.ts';
import { placeOf } from './places.ts';
import { UserError } from './user-error.ts';
import type { Value } from './value.ts';
import { valueText } from './value.ts';

/** What differs between the formats. */
export interface RegisterRules {
  /** Jepsen: a read of nil is always legal. etcd-log: nil is the absent value. */
  readonly isNilReadLegal: boolean;
  readonly initial: Value;
}

/** Judges the operations of a text format. Throws {@link UserError} for operations of another model. */
export function judgeCasRegister(
  operations: readonly ForeignOperation[],
  rules: RegisterRules,
  budget: SearchBudget,
): Judgement {
  const isKeyed = rules.isNilReadLegal && isIndependent(operations);
  const values = new Numbering();
  const keys = new Numbering();
  const kept: ForeignOperation[] = [];
  const rows: Row[] = [];
  for (const operation of operations) {
    const { key, row } = toRow(operation, rules, isKeyed, values);
    if (row === null) continue;
    row.key = keys.numberOf(key);
    kept.push(operation);
    rows.push(row);
  }
  const initial = values.numberOf(rules.initial);
  const history = toColumns(kept, rows);
  const groups = groupByKey(
    history,
    Uint32Array.from(rows, (row) => row.key),
    keys.texts.length,
  );
  const verdict = judgeKeys(history, groups, initial, budget);
  return toJudgement(verdict, history, {
    keyName: (key) => (isKeyed ? keys.texts[key]! : null),
    valueName: (value) => values.texts[value]!,
    place: (operation) => placeOf(kept[operation]!),
  });
}

/** How numbers are shown. */
export interface Naming {
  readonly keyName: (key: number) => string | null;
  readonly valueName: (value: number) => string;
  readonly place: (operation: number) => OperationPlace;
}

/** The judgement that a verdict on registers amounts to. */
export function toJudgement(verdict: RegistersVerdict, history: RegisterHistory, naming: Naming): Judgement {
  const keys = Math.max(1, verdict.keys);
  if (verdict.kind === 'valid') return { verdict: 'valid', keys, notes: { ...verdict.byMethod } };
  const name = (key: number): string => naming.keyName(key) ?? 'the only key';
  if (verdict.kind === 'unknown') {
    const named = verdict.unknown.slice(0, maxNamed).map(name).join(', ');
    return { verdict: 'unknown', keys, reason: `out of budget on ${verdict.unknown.length} of ${keys} keys: ${named}` };
  }
  const found = earliestEvidence(history, verdict)!;
  const { evidence } = found;
  return {
    verdict: 'invalid',
    keys,
    evidence: {
      key: naming.keyName(found.key),
      operation: evidence === null ? null : naming.place(evidence.operation),
      prefixOperations: evidence?.prefixCompletions ?? null,
      isSmallest: evidence?.isSmallest ?? false,
      reason: conflictText(evidence?.conflict ?? { kind: 'unexplained' }, naming.valueName),
      statesPossible: (evidence?.statesPossible ?? []).map(naming.valueName),
      isStatesComplete: evidence?.isStatesComplete ?? false,
      witnesses: (evidence?.witnesses ?? []).slice(0, maxNamed).map(naming.place),
      invalidKeys: verdict.invalid.length,
      firstInvalidKeys: verdict.invalid.slice(0, maxNamed).map(({ key }) => name(key)),
    },
  };
}

interface Row {
  readonly kind: number;
  readonly status: number;
  readonly a: number;
  readonly b: number;
  key: number;
}

/** Numbers for values, by canonical text. */
class Numbering {
  readonly texts: string[] = [];
  private readonly numbers = new Map<string, number>();

  numberOf(value: Value): number {
    const text = valueText(value);
    const known = this.numbers.get(text);
    if (known !== undefined) return known;
    this.numbers.set(text, this.texts.length);
    return this.texts.push(text) - 1;
  }
}

/** One operation as a row; null for what says nothing. */
function toRow(
  operation: ForeignOperation,
  rules: RegisterRules,
  isKeyed: boolean,
  values: Numbering,
): { readonly key: Value; readonly row: Row | null } {
  const tuple = isKeyed ? (operation.input as readonly Value[]) : null;
  const key = tuple === null ? null : tuple[0]!;
  const effective = isKeyed ? (effectiveValue(operation) as readonly Value[])[1]! : effectiveValue(operation);
  const status = operation.outcome === 'ok' ? okStatus : operation.outcome === 'fail' ? failedStatus : unknownStatus;
  switch (operation.f) {
    case 'read': {
      const seen = isKeyed ? effective : (operation.output ?? null);
      if (operation.outcome !== 'ok' || (seen === null && rules.isNilReadLegal)) return { key, row: null };
      return { key, row: { kind: readKind, status, a: 0, b: values.numberOf(seen), key: 0 } };
    }
    case 'write':
      return { key, row: { kind: writeKind, status, a: values.numberOf(effective), b: 0, key: 0 } };
    case 'cas': {
      if (!isPair(effective)) {
        throw new UserError(`the value of :cas is not [FROM TO] but ${valueText(effective)}`, operation.invokeLine);
      }
      const [from, to] = effective;
      return { key, row: { kind: casKind, status, a: values.numberOf(from), b: values.numberOf(to), key: 0 } };
    }
    default:
      throw new UserError(`:${operation.f} is not an operation of model cas-register`, operation.invokeLine);
  }
}

/** True when every value is a [key value] pair: reads are invoked with [key nil], compare-and-sets with [key [from to]]. */
function isIndependent(operations: readonly ForeignOperation[]): boolean {
  let reads = 0;
  for (const { f, input, output, outcome } of operations) {
    if (!isPair(input)) return false;
    if (f === 'read') {
      if (input[1] !== null) return false;
      reads++;
    }
    if (f === 'cas' && !isPair(input[1])) return false;
    if (outcome === 'ok' && output !== undefined && output !== null) {
      if (!isPair(output) || valueText(output[0]) !== valueText(input[0])) return false;
    }
  }
  return reads > 0;
}

function isPair(value: Value | undefined): value is readonly [Value, Value] {
  return Array.isArray(value) && value.length === 2;
}

function toColumns(kept: readonly ForeignOperation[], rows: readonly Row[]): RegisterHistory {
  const history = allocateHistory(rows.length);
  rows.forEach((row, index) => {
    history.kind[index] = row.kind;
    history.status[index] = row.status;
    history.a[index] = row.a;
    history.b[index] = row.b;
    history.invoke[index] = kept[index]!.invokedAt;
    history.complete[index] = kept[index]!.completedAt;
  });
  return history;
}
