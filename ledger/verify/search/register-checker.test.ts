import { describe, expect, it } from 'vitest';
import { Prng } from '../../../lib/prng.ts';
import { unlimitedBudget } from './budget.ts';
import { linearize } from './linearize.ts';
import { RegisterChecker } from './register-checker.ts';
import type { RegisterHistory } from './register-history.ts';
import {
  allOperations,
  allocateHistory,
  casKind,
  failedStatus,
  okStatus,
  readKind,
  unknownStatus,
  writeKind,
} from './register-history.ts';
import { registerProblem } from './register-search.ts';
import { isLinearizableByBruteForce, randomHistory } from './testing.ts';

const open = Infinity;
type Row = readonly [what: string, a: number, b: number, invoke: number, complete: number];

/** `read`, `write`, `cas`, `denied` (failed cas); an open end makes it unknown. Rows in order of invocation. */
function historyOf(rows: readonly Row[]): RegisterHistory {
  const history = allocateHistory(rows.length);
  rows.forEach(([what, a, b, invoke, complete], op) => {
    history.kind[op] = what === 'read' ? readKind : what === 'write' ? writeKind : casKind;
    history.status[op] = what === 'denied' ? failedStatus : complete === open ? unknownStatus : okStatus;
    history.a[op] = what === 'read' ? -1 : a;
    history.b[op] = what === 'read' ? a : b;
    history.invoke[op] = invoke;
    history.complete[op] = complete;
  });
  return history;
}

function judge(rows: readonly Row[], initial = -1) {
  const history = historyOf(rows);
  const checker = new RegisterChecker(unlimitedBudget());
  const verdict = checker.judge(history, allOperations(history), initial);
  const expected = isLinearizableByBruteForce(history, initial) ? 'valid' : 'invalid';
  expect(verdict.kind).toBe(expected);
  const evidence =
    verdict.kind === 'invalid' ? checker.explain(history, allOperations(history), initial, verdict.method) : null;
  return { ...verdict, evidence };
}

describe('literal histories with unique values', () => {
  it('finds a read of a value that was overwritten before it began', () => {
    const verdict = judge([
      ['write', 1, 0, 0, 1],
      ['write', 2, 0, 2, 3],
      ['read', 1, 0, 4, 5],
      ['read', 2, 0, 6, 7],
    ]);
    expect(verdict.kind).toBe('invalid');
    expect(verdict.evidence).toMatchObject({
      operation: 2,
      prefixCompletions: 3,
      isSmallest: true,
      conflict: { kind: 'overlap', values: [1, 2] },
      statesPossible: [2],
    });
  });

  it('lets overlapping writes take either order, but one order only', () => {
    const writes: Row[] = [
      ['write', 1, 0, 0, 9],
      ['write', 2, 0, 1, 8],
    ];
    expect(judge([...writes, ['read', 1, 0, 10, 11]]).kind).toBe('valid');
    expect(judge([...writes, ['read', 2, 0, 10, 11]]).kind).toBe('valid');
    expect(judge([...writes, ['read', 1, 0, 10, 11], ['read', 2, 0, 12, 13]]).kind).toBe('invalid');
  });

  it('takes equal times for concurrent', () => {
    expect(
      judge([
        ['write', 1, 0, 0, 5],
        ['read', -1, 0, 5, 6],
      ]).kind,
    ).toBe('valid');
    expect(
      judge([
        ['write', 1, 0, 0, 5],
        ['read', -1, 0, 6, 7],
      ]).kind,
    ).toBe('invalid');
  });

  it('allows an unknown write to appear late, to stay away, but not to come back', () => {
    expect(
      judge([
        ['write', 1, 0, 0, open],
        ['read', -1, 0, 5, 6],
        ['read', 1, 0, 7, 8],
      ]).kind,
    ).toBe('valid');
    expect(
      judge([
        ['write', 1, 0, 0, open],
        ['read', -1, 0, 5, 6],
      ]).kind,
    ).toBe('valid');
    expect(
      judge([
        ['write', 1, 0, 0, open],
        ['read', 1, 0, 5, 6],
        ['read', -1, 0, 7, 8],
      ]).kind,
    ).toBe('invalid');
  });

  it('takes an unknown compare-and-set for done when its value was seen', () => {
    const rows: Row[] = [
      ['write', 1, 0, 0, 1],
      ['cas', 1, 2, 2, open],
      ['cas', 2, 3, 4, open],
      ['read', 3, 0, 6, 7],
    ];
    expect(judge(rows).kind).toBe('valid');
    expect(judge([...rows, ['read', 2, 0, 8, 9]])).toMatchObject({ kind: 'invalid', evidence: { operation: 4 } });
    const evidence = judge([
      ['write', 1, 0, 0, 1],
      ['cas', 9, 2, 2, open],
      ['read', 2, 0, 6, 7],
    ]).evidence;
    expect(evidence?.conflict).toEqual({ kind: 'never-written', value: 9 });
  });

  it('lets one compare-and-set take a value, not two, and no circle', () => {
    const twice = judge([
      ['write', 1, 0, 0, 1],
      ['cas', 1, 2, 2, 9],
      ['cas', 1, 3, 2, 9],
    ]);
    expect(twice.evidence?.conflict).toEqual({ kind: 'taken-twice', value: 1 });
    expect(twice.evidence?.witnesses).toEqual([1, 2]);
    expect(
      judge([
        ['cas', 1, 2, 0, 9],
        ['cas', 2, 1, 0, 9],
      ]).evidence?.conflict.kind,
    ).toBe('cycle');
  });

  it('wants nothing between a compare-and-set and the value it took', () => {
    // Another write must fall between 1 and 2: it is over before the compare-and-set begins.
    const rows: Row[] = [
      ['write', 1, 0, 0, 1],
      ['write', 5, 0, 2, 3],
      ['cas', 1, 2, 4, 5],
    ];
    expect(judge(rows).kind).toBe('invalid');
    expect(
      judge([
        ['write', 1, 0, 0, 9],
        ['write', 5, 0, 2, 3],
        ['cas', 1, 2, 4, 5],
      ]).kind,
    ).toBe('valid');
  });
});

describe('failed compare-and-sets', () => {
  it('are violations inside a tenure that nothing can interrupt', () => {
    const rows: Row[] = [
      ['write', 1, 0, 0, 1],
      ['write', 2, 0, 2, 9],
      ['denied', 1, 3, 3, 4],
      ['read', 1, 0, 6, 7],
    ];
    const conflict = { kind: 'denied', value: 1 };
    expect(judge(rows)).toMatchObject({ kind: 'invalid', evidence: { operation: 3, conflict, statesPossible: [2] } });
  });

  it('are explained by a concurrent write', () => {
    expect(
      judge([
        ['write', 1, 0, 0, 1],
        ['write', 2, 0, 2, 9],
        ['denied', 1, 3, 3, 4],
      ]),
    ).toMatchObject({
      kind: 'valid',
      method: 'relay',
    });
    expect(
      judge([
        ['write', 1, 0, 0, 1],
        ['denied', 1, 3, 3, 4],
      ]).kind,
    ).toBe('invalid');
  });

  it('are explained by an unseen unknown write or compare-and-set, each once', () => {
    expect(
      judge([
        ['write', 1, 0, 0, 1],
        ['write', 2, 0, 2, open],
        ['denied', 1, 3, 3, 4],
      ]).kind,
    ).toBe('valid');
    expect(
      judge([
        ['write', 1, 0, 0, 1],
        ['cas', 1, 2, 2, open],
        ['denied', 1, 3, 3, 4],
      ]).kind,
    ).toBe('valid');
    // The value seen afterwards shows that 1 was still there.
    const rows: Row[] = [
      ['write', 1, 0, 0, 1],
      ['cas', 1, 2, 2, open],
      ['denied', 1, 3, 3, 4],
      ['read', 1, 0, 5, 6],
    ];
    expect(judge(rows).kind).toBe('invalid');
  });

  it('choose among unseen writes the one that no later denial spoils', () => {
    // 3 first, until the denial of 3; then 2, whose own denial is over by then. 2 first would leave nothing for 3's denial.
    const rows: Row[] = [
      ['write', 1, 0, 0, 1],
      ['write', 2, 0, 2, open],
      ['write', 3, 0, 2, open],
      ['denied', 1, 7, 3, 4],
      ['denied', 2, 8, 5, 6],
      ['denied', 3, 9, 7, 8],
    ];
    expect(judge(rows)).toMatchObject({ kind: 'valid', method: 'relay' });
    expect(judge([...rows, ['denied', 2, 10, 9, 10]]).kind).toBe('invalid');
  });

  it('cannot all be explained by one concurrent write that must hold still', () => {
    // 2 may interrupt 1 in the first denial or be late for the second, whose expected value is 2.
    const rows: Row[] = [
      ['write', 1, 0, 0, 1],
      ['write', 2, 0, 2, 20],
      ['denied', 1, 8, 3, 5],
      ['denied', 2, 9, 6, 8],
    ];
    expect(judge(rows)).toMatchObject({ kind: 'invalid', method: 'relay' });
  });
});

describe('the smallest prefix', () => {
  it('is invalid, and the same without its last operation is not', () => {
    const prng = new Prng(77);
    const checker = new RegisterChecker(unlimitedBudget());
    let seen = 0;
    for (let index = 0; index < 3_000; index++) {
      const values = prng.pick([0, 3]);
      const history = randomHistory(prng, { maxOperations: 9, values, unknownChance: 0.1, mutateChance: 1 });
      const verdict = checker.judge(history, allOperations(history), -1);
      if (verdict.kind !== 'invalid') continue;
      seen++;
      const evidence = checker.explain(history, allOperations(history), -1, verdict.method)!;
      const upTo = (isLastIn: boolean): RegisterHistory => prefixOf(history, evidence.operation, isLastIn);
      expect(isLinearizableByBruteForce(upTo(true), -1)).toBe(false);
      expect(isLinearizableByBruteForce(upTo(false), -1)).toBe(true);
      expect(evidence.isSmallest).toBe(true);
    }
    expect(seen).toBeGreaterThan(400);
  });
});

/** What is known when `last` has completed (or just before): later completions are open. */
function prefixOf(history: RegisterHistory, last: number, isLastIn: boolean): RegisterHistory {
  const end = history.complete[last]!;
  const rows: Row[] = [];
  for (let op = 0; op < history.count; op++) {
    const { kind, status, a, b, invoke, complete } = history;
    const isDone = complete[op]! < end || (complete[op] === end && (op < last || (op === last && isLastIn)));
    if (invoke[op]! > end) continue;
    if (kind[op] === readKind) {
      if (isDone && status[op] === okStatus) rows.push(['read', b[op]!, 0, invoke[op]!, complete[op]!]);
    } else if (status[op] === failedStatus) {
      if (isDone) rows.push(['denied', a[op]!, b[op]!, invoke[op]!, complete[op]!]);
    } else {
      rows.push([kind[op] === writeKind ? 'write' : 'cas', a[op]!, b[op]!, invoke[op]!, isDone ? complete[op]! : open]);
    }
  }
  return historyOf(rows);
}

describe('longer histories', () => {
  it('never calls a simulated register bad', () => {
    const prng = new Prng(5);
    for (let index = 0; index < 300; index++) {
      const [values, maxOperations] = index % 3 === 0 ? [4, 50] : [0, 300];
      const history = randomHistory(prng, { maxOperations, values, unknownChance: 0.05, mutateChance: 0 });
      const verdict = new RegisterChecker(unlimitedBudget()).judge(history, allOperations(history), -1);
      expect(verdict.kind).toBe('valid');
    }
  });

  it('agrees with the search where values are unique', () => {
    const prng = new Prng(6);
    let invalid = 0;
    for (let index = 0; index < 500; index++) {
      const history = randomHistory(prng, { maxOperations: 40, values: 0, unknownChance: 0.05, mutateChance: 0.5 });
      const verdict = new RegisterChecker(unlimitedBudget()).judge(history, allOperations(history), -1);
      const { problem } = registerProblem(history, allOperations(history), -1);
      expect(linearize(problem, unlimitedBudget()).kind).toBe(verdict.kind);
      if (verdict.kind === 'invalid') invalid++;
    }
    expect(invalid).toBeGreaterThan(50);
  });
});

describe('budget', () => {
  it('answers unknown, never valid, when the time is over', () => {
    const prng = new Prng(9);
    const history = randomHistory(prng, { maxOperations: 4_000, values: 40, unknownChance: 0.05, mutateChance: 0 });
    const budget = { nowMs: () => 1, deadlineMs: 0, memoBytes: 1 << 20 };
    const { problem } = registerProblem(history, allOperations(history), -1);
    expect(history.count).toBeGreaterThan(1_000);
    expect(linearize(problem, budget).kind).toBe('unknown');
  });

  it('stays exact with a memo table that is emptied again and again', () => {
    const prng = new Prng(10);
    for (let index = 0; index < 200; index++) {
      const history = randomHistory(prng, { maxOperations: 12, values: 3, unknownChance: 0.3, mutateChance: 0.7 });
      const { problem } = registerProblem(history, allOperations(history), -1);
      const expected = isLinearizableByBruteForce(history, -1) ? 'valid' : 'invalid';
      expect(linearize(problem, unlimitedBudget(1)).kind).toBe(expected);
    }
  });
});
