/**
 * Model `counter`: each read lies between what must and what may have been added by then (Jepsen's interval rule).
 *
 * Owns the two bounds. An ok add that completed before the read began counts in both; any other add that was invoked before
 * the read ended may count, so that a negative one lowers the lower bound and a positive one raises the upper. Linear after a sort.
 */

import type { ForeignEvidence, Judgement } from './evidence.ts';
import type { ForeignOperation } from './history.ts';
import { effectiveValue } from './jepsen.ts';
import { placeOf } from './places.ts';
import { UserError } from './user-error.ts';
import { valueText } from './value.ts';

/** Running sums over adds, by position in the file. */
interface Sums {
  /** Added for certain by then: positive and negative amounts apart. */
  certainPositive: number;
  certainNegative: number;
  /** Invoked by then. */
  invokedPositive: number;
  invokedNegative: number;
}

interface Moment {
  readonly at: number;
  readonly apply: () => ForeignEvidence | null;
}

/** Judges the operations. Throws {@link UserError} for operations of another model or amounts that are not numbers. */
export function judgeCounter(operations: readonly ForeignOperation[]): Judgement {
  const sums: Sums = { certainPositive: 0, certainNegative: 0, invokedPositive: 0, invokedNegative: 0 };
  const moments: Moment[] = [];
  let reads = 0;
  for (const operation of operations) {
    if (operation.f === 'add') addMoments(moments, operation, sums);
    else if (operation.f !== 'read') {
      throw new UserError(`:${operation.f} is not an operation of model counter`, operation.invokeLine);
    } else if (operation.outcome === 'ok' && operation.output !== undefined && operation.output !== null) {
      const order = ++reads;
      readMoments(moments, operation, sums, () => order);
    }
  }
  moments.sort((x, y) => x.at - y.at);
  for (const { apply } of moments) {
    const evidence = apply();
    if (evidence !== null) return { verdict: 'invalid', keys: 1, evidence };
  }
  return { verdict: 'valid', keys: 1, notes: { reads } };
}

function addMoments(moments: Moment[], operation: ForeignOperation, sums: Sums): void {
  const amount = amountOf(operation);
  const positive = Math.max(0, amount);
  const negative = Math.min(0, amount);
  moments.push({
    at: operation.invokedAt,
    apply: () => {
      sums.invokedPositive += positive;
      sums.invokedNegative += negative;
      return null;
    },
  });
  if (operation.outcome !== 'ok') return;
  moments.push({
    at: operation.completedAt,
    apply: () => {
      sums.certainPositive += positive;
      sums.certainNegative += negative;
      return null;
    },
  });
}

function readMoments(moments: Moment[], operation: ForeignOperation, sums: Sums, readNumber: () => number): void {
  const seen = operation.output;
  if (typeof seen !== 'number') {
    throw new UserError(
      `a :read of a counter returned ${valueText(seen!)}, not a number below 2^53`,
      operation.completeLine,
    );
  }
  let before: Sums = { ...sums };
  moments.push({
    at: operation.invokedAt,
    apply: () => {
      before = { ...sums };
      return null;
    },
  });
  moments.push({
    at: operation.completedAt,
    apply: () => {
      const lower = before.certainPositive + sums.invokedNegative;
      const upper = sums.invokedPositive + before.certainNegative;
      if (seen >= lower && seen <= upper) return null;
      return {
        key: null,
        operation: placeOf(operation),
        prefixOperations: readNumber(),
        isSmallest: true,
        reason: `the read returned ${seen}, outside of what the adds allow: ${lower} to ${upper}`,
        statesPossible: [`${lower}..${upper}`],
        isStatesComplete: true,
        witnesses: [],
        invalidKeys: 1,
        firstInvalidKeys: [],
      };
    },
  });
}

function amountOf(operation: ForeignOperation): number {
  const amount = effectiveValue(operation);
  if (typeof amount === 'number') return amount;
  throw new UserError(`the value of :add is ${valueText(amount)}, not a number below 2^53`, operation.invokeLine);
}
