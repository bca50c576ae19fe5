/**
 * For tests: small random register histories and a brute-force oracle. Owns nothing that ships; the oracle is written from
 * the definition alone (orders of operations, tried one by one) so that it shares no reasoning with the checkers.
 */

import type { Prng } from '../../../lib/prng.ts';
import type { RegisterHistory } from './register-history.ts';
import {
  allocateHistory,
  casKind,
  failedStatus,
  okStatus,
  readKind,
  unknownStatus,
  writeKind,
} from './register-history.ts';

/** True when some order of the operations that happened is legal and agrees with real time. At most 24 operations. */
export function isLinearizableByBruteForce(history: RegisterHistory, initial: number): boolean {
  const { count, kind, status, a, b, invoke, complete } = history;
  const must: number[] = [];
  const may: number[] = [];
  for (let op = 0; op < count; op++) {
    if (status[op] === unknownStatus) {
      if (kind[op] !== readKind) may.push(op);
    } else if (!(status[op] === failedStatus && kind[op] !== casKind)) must.push(op);
  }
  const seen = new Set<string>();
  const isOpenTo = (op: number, done: number): boolean =>
    must.every((m) => (done & (1 << m)) !== 0 || m === op || !(complete[m]! < invoke[op]!));
  const visit = (done: number, state: number): boolean => {
    if (must.every((op) => (done & (1 << op)) !== 0)) return true;
    const key = `${done} ${state}`;
    if (seen.has(key)) return false;
    seen.add(key);
    for (const op of [...must, ...may]) {
      if ((done & (1 << op)) !== 0 || !isOpenTo(op, done)) continue;
      let next = state;
      if (kind[op] === readKind) {
        if (b[op] !== state) continue;
      } else if (kind[op] === writeKind) next = a[op]!;
      else if (status[op] === failedStatus) {
        if (a[op] === state) continue;
      } else {
        if (a[op] !== state) continue;
        next = b[op]!;
      }
      if (visit(done | (1 << op), next)) return true;
    }
    return false;
  };
  return visit(0, initial);
}

/** Shape of random histories. */
export interface RandomHistoryShape {
  readonly maxOperations: number;
  /** 0: every written value is new. Otherwise values are below this. */
  readonly values: number;
  readonly unknownChance: number;
  /** Chance that one recorded result is changed. */
  readonly mutateChance: number;
}

/** A history recorded from a simulated register (nil = −1 at the start), then perhaps changed in one place. */
export function randomHistory(prng: Prng, shape: RandomHistoryShape): RegisterHistory {
  const count = prng.between(1, shape.maxOperations);
  const history = allocateHistory(count);
  const span = prng.pick([count, 2 * count, 4 * count]);
  const length = prng.pick([2, 4, 8, 4 * count]);
  const kinds = prng.pick([
    [readKind, readKind, writeKind, casKind, casKind],
    [writeKind, casKind],
    [readKind, writeKind, writeKind, casKind, casKind, casKind],
  ]);
  const starts = Array.from({ length: count }, () => prng.below(span)).sort((x, y) => x - y);
  const points: { op: number; at: number }[] = [];
  for (let op = 0; op < count; op++) {
    history.invoke[op] = starts[op]!;
    const duration = prng.below(length);
    history.complete[op] = starts[op]! + duration;
    points.push({ op, at: starts[op]! + prng.float() * duration });
    history.kind[op] = prng.pick(kinds);
    if (history.kind[op] !== readKind && prng.chance(shape.unknownChance)) {
      history.status[op] = unknownStatus;
      history.complete[op] = Infinity;
      points[op]!.at = prng.chance(0.3) ? Infinity : starts[op]! + prng.float() * 3 * length;
    }
  }
  points.sort((x, y) => x.at - y.at);
  let state = -1;
  for (const { op, at } of points) {
    const fresh = shape.values === 0 ? op + 1 : prng.below(shape.values);
    const isApplied = at !== Infinity;
    if (history.kind[op] === readKind) history.b[op] = state;
    else if (history.kind[op] === writeKind) {
      history.a[op] = fresh;
      if (isApplied) state = fresh;
    } else {
      // Expect the present state, or some other operation's value, so that refusals are common.
      const guess = shape.values === 0 ? prng.below(count + 1) : prng.below(shape.values);
      history.a[op] = prng.chance(0.6) ? state : guess === 0 ? -1 : guess;
      history.b[op] = fresh;
      if (history.a[op] === state) {
        if (isApplied) state = fresh;
      } else if (history.status[op] === okStatus) history.status[op] = failedStatus;
    }
  }
  if (prng.chance(shape.mutateChance)) mutate(history, prng, shape.values);
  return history;
}

function mutate(history: RegisterHistory, prng: Prng, values: number): void {
  const op = prng.below(history.count);
  const value = prng.below((values === 0 ? history.count : values) + 1);
  const other = value === 0 ? -1 : value;
  if (history.kind[op] === readKind) history.b[op] = other;
  else if (history.kind[op] === casKind) {
    if (prng.chance(0.5)) history.a[op] = other;
    else if (history.status[op] !== unknownStatus)
      history.status[op] = history.status[op] === okStatus ? failedStatus : okStatus;
  } else if (history.status[op] === okStatus && prng.chance(0.5)) {
    history.status[op] = unknownStatus;
    history.complete[op] = Infinity;
  }
}

/** A history made for the relay: few certain values, unseen writers, and many refusals that only they can explain. */
export function randomRefusals(prng: Prng, maxOperations: number): RegisterHistory {
  const count = prng.between(4, maxOperations);
  const history = allocateHistory(count);
  const valueCount = prng.between(2, Math.max(2, count >> 1));
  const span = 2 * count;
  const starts = Array.from({ length: count }, () => prng.below(span)).sort((x, y) => x - y);
  const roles = prng.shuffle(Array.from({ length: count }, (_, index) => index < valueCount));
  let value = 0;
  for (let op = 0; op < count; op++) {
    const invoke = (history.invoke[op] = starts[op]!);
    const anyValue = prng.below(valueCount + 1);
    const expected = anyValue === 0 ? -1 : anyValue;
    history.complete[op] = invoke + prng.below(prng.pick([2, 4, span]));
    if (roles[op] === true) {
      value++;
      history.kind[op] = prng.chance(0.3) ? casKind : writeKind;
      history.a[op] = history.kind[op] === writeKind ? value : expected;
      history.b[op] = value;
      if (!prng.chance(0.6)) continue;
      history.status[op] = unknownStatus;
      history.complete[op] = Infinity;
    } else if (prng.chance(0.85)) {
      history.kind[op] = casKind;
      history.status[op] = failedStatus;
      history.a[op] = expected;
    } else {
      history.kind[op] = readKind;
      history.b[op] = expected;
    }
  }
  return history;
}
