import { describe, expect, it } from 'vitest';
import { unlimitedBudget } from './budget.ts';
import type { RegisterOperation } from './check-register.ts';
import { checkRegister } from './check-register.ts';

const at = (invokedAt: number, completedAt: number): Pick<RegisterOperation, 'key' | 'invokedAt' | 'completedAt'> => ({
  key: 'k',
  invokedAt,
  completedAt,
});

describe('checkRegister', () => {
  it('judges keys apart, in any order of operations', () => {
    const operations: RegisterOperation[] = [
      { ...at(4, 5), f: 'read', outcome: 'ok', value: 'a' },
      { ...at(0, 1), f: 'write', outcome: 'ok', value: 'a' },
      { ...at(0, 1), key: 'other', f: 'read', outcome: 'ok', value: null },
    ];
    expect(checkRegister(operations, unlimitedBudget())).toEqual({ verdict: 'valid', keys: 2 });
  });

  it('names the read that shows a loss', () => {
    const operations: RegisterOperation[] = [
      { ...at(0, 1), f: 'write', outcome: 'ok', value: 'a' },
      { ...at(2, 3), f: 'write', outcome: 'ok', value: 'b' },
      { ...at(4, 5), f: 'read', outcome: 'ok', value: 'a' },
    ];
    expect(checkRegister(operations, unlimitedBudget())).toMatchObject({
      verdict: 'invalid',
      invalidKeys: ['k'],
      evidence: { key: 'k', operation: 2, statesPossible: ['b'], isSmallest: true },
    });
  });

  it('knows deletes: absent afterwards, and no resurrection', () => {
    const operations: RegisterOperation[] = [
      { ...at(0, 1), f: 'write', outcome: 'ok', value: 'a' },
      { ...at(2, 3), f: 'delete', outcome: 'ok' },
      { ...at(4, 5), f: 'read', outcome: 'ok', value: null },
    ];
    expect(checkRegister(operations, unlimitedBudget()).verdict).toBe('valid');
    const risen: RegisterOperation = { ...at(6, 7), f: 'read', outcome: 'ok', value: 'a' };
    expect(checkRegister([...operations, risen], unlimitedBudget())).toMatchObject({
      verdict: 'invalid',
      evidence: { operation: 3, statesPossible: [null] },
    });
  });

  it('tells a failed operation from a mismatch', () => {
    const write: RegisterOperation = { ...at(0, 1), f: 'write', outcome: 'ok', value: 'a' };
    const cas = (outcome: 'fail' | 'mismatch'): RegisterOperation => ({
      ...at(2, 3),
      f: 'cas',
      outcome,
      expected: 'a',
      value: 'b',
    });
    expect(checkRegister([write, cas('fail')], unlimitedBudget()).verdict).toBe('valid');
    expect(checkRegister([write, cas('mismatch')], unlimitedBudget()).verdict).toBe('invalid');
    const phantom: RegisterOperation = { ...at(4, 5), f: 'read', outcome: 'ok', value: 'b' };
    expect(checkRegister([write, cas('fail'), phantom], unlimitedBudget()).verdict).toBe('invalid');
  });

  it('lets an unknown write appear later', () => {
    const operations: RegisterOperation[] = [
      { ...at(0, 1), f: 'write', outcome: 'info', value: 'a' },
      { ...at(2, 3), f: 'read', outcome: 'ok', value: null },
      { ...at(4, 5), f: 'read', outcome: 'ok', value: 'a' },
    ];
    expect(checkRegister(operations, unlimitedBudget()).verdict).toBe('valid');
  });

  it('creates once: two creates of an absent key cannot both succeed', () => {
    const create = (value: string): RegisterOperation => ({
      ...at(0, 9),
      f: 'cas',
      outcome: 'ok',
      expected: null,
      value,
    });
    expect(checkRegister([create('a')], unlimitedBudget()).verdict).toBe('valid');
    expect(checkRegister([create('a'), create('b')], unlimitedBudget()).verdict).toBe('invalid');
  });
});
