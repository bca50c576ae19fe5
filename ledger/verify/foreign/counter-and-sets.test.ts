import { describe, expect, it } from 'vitest';
import { judgeCounter } from './counter.ts';
import { readJepsenEdn } from './jepsen.ts';
import { judgeSet, judgeSetFull } from './sets.ts';

const op = (process: number, type: string, f: string, value: string): string =>
  `{:process ${process}, :type :${type}, :f :${f}, :value ${value}}`;
const done = (process: number, f: string, value: string, result = value): string =>
  `${op(process, 'invoke', f, value)}\n${op(process, 'ok', f, result)}`;
const read = (process: number, result: string): string => done(process, 'read', 'nil', result);
const history = (...lines: string[]) => readJepsenEdn(lines.join('\n')).operations;

describe('counter', () => {
  const judge = (...lines: string[]) => judgeCounter(history(...lines));

  it('bounds a read by what must and what may have been added', () => {
    const adds = [done(0, 'add', '2'), op(1, 'invoke', 'add', '3')];
    for (const seen of [2, 3, 5]) expect(judge(...adds, read(2, `${seen}`)).verdict).toBe('valid');
    for (const seen of [0, 1, 6]) expect(judge(...adds, read(2, `${seen}`)).verdict).toBe('invalid');
    expect(judge(...adds, read(2, '1'))).toMatchObject({
      evidence: { operation: { line: 4, completeLine: 5 }, statesPossible: ['2..5'] },
    });
  });

  it('takes concurrent adds for possible, later ones not, failed ones never', () => {
    const overlap = [op(2, 'invoke', 'read', 'nil'), done(0, 'add', '1'), op(2, 'ok', 'read', '0')];
    expect(judge(...overlap).verdict).toBe('valid');
    expect(judge(op(2, 'invoke', 'read', 'nil'), done(0, 'add', '1'), op(2, 'ok', 'read', '1')).verdict).toBe('valid');
    expect(judge(read(2, '1'), done(0, 'add', '1')).verdict).toBe('invalid');
    const failed = [op(0, 'invoke', 'add', '1'), op(0, 'fail', 'add', '1')];
    expect(judge(...failed, read(2, '0')).verdict).toBe('valid');
    expect(judge(...failed, read(2, '1')).verdict).toBe('invalid');
  });

  it('keeps unknown adds possible for ever, nil reads legal, and negative adds on the right side', () => {
    const unknown = [op(0, 'invoke', 'add', '1'), op(0, 'info', 'add', '1')];
    expect(judge(...unknown, read(1, '0'), read(1, '1'), read(1, 'nil')).verdict).toBe('valid');
    const negative = [done(0, 'add', '5'), op(1, 'invoke', 'add', '-2')];
    for (const seen of [3, 5]) expect(judge(...negative, read(2, `${seen}`)).verdict).toBe('valid');
    for (const seen of [2, 6]) expect(judge(...negative, read(2, `${seen}`)).verdict).toBe('invalid');
  });

  it('refuses what is not a number', () => {
    expect(() => judge(done(0, 'add', '"1"'))).toThrow('line 1: the value of :add is "1"');
    expect(() => judge(done(0, 'increment', '1'))).toThrow('not an operation of model counter');
  });
});

describe('set', () => {
  const judge = (...lines: string[]) => judgeSet(history(...lines));

  it('wants acknowledged elements in the final read, and no others than added ones', () => {
    const adds = [done(0, 'add', '1'), done(0, 'add', '2'), op(1, 'invoke', 'add', '3'), op(1, 'info', 'add', '3')];
    for (const seen of ['[1 2]', '#{2 1}', '(1 2 3)']) expect(judge(...adds, read(2, seen)).verdict).toBe('valid');
    expect(judge(...adds, read(2, '[2 3]'))).toMatchObject({
      verdict: 'invalid',
      evidence: { witnesses: [{ line: 1 }] },
    });
    expect(judge(...adds, read(2, '[1 2 4]'))).toMatchObject({ verdict: 'invalid' });
    expect(judge(op(0, 'invoke', 'add', '1'), op(0, 'fail', 'add', '1'), read(2, '[1]')).verdict).toBe('invalid');
  });

  it('judges the last read that returned something', () => {
    expect(judge(done(0, 'add', '1'), read(1, '[]'), read(1, '[1]'), read(1, 'nil')).verdict).toBe('valid');
    expect(judge(done(0, 'add', '1'), read(1, '[1]'), read(1, '[]')).verdict).toBe('invalid');
  });

  it('is unknown without a read', () => {
    expect(judge(done(0, 'add', '1')).verdict).toBe('unknown');
    expect(judge(done(0, 'add', '1'), op(1, 'invoke', 'read', 'nil')).verdict).toBe('unknown');
  });

  it('does not ask a read for what was acknowledged after it began', () => {
    expect(judge(op(1, 'invoke', 'read', 'nil'), done(0, 'add', '1'), op(1, 'ok', 'read', '[]')).verdict).toBe('valid');
  });

  it('tells 1 from "1", and a pair from its parts', () => {
    expect(judge(done(0, 'add', '1'), read(1, '["1"]')).verdict).toBe('invalid');
    expect(judge(done(0, 'add', '[0 1]'), read(1, '[[0 1]]')).verdict).toBe('valid');
    expect(judge(done(0, 'add', '[0 1]'), read(1, '[0 1]')).verdict).toBe('invalid');
  });
});

describe('set-full', () => {
  const judge = (...lines: string[]) => judgeSetFull(history(...lines));

  it('wants every read to show what was acknowledged before it began', () => {
    expect(judge(done(0, 'add', '1'), read(1, '[]'), read(1, '[1]'))).toMatchObject({
      verdict: 'invalid',
      evidence: { operation: { line: 3 } },
    });
    expect(judge(read(1, '[]'), done(0, 'add', '1'), read(1, '[1]')).verdict).toBe('valid');
  });

  it('wants an element once seen to stay, even of an unknown add', () => {
    const add = op(0, 'invoke', 'add', '1');
    expect(judge(add, read(1, '[]'), read(1, '[1]'), read(1, '[1]')).verdict).toBe('valid');
    expect(judge(add, read(1, '[1]'), read(1, '[]')).verdict).toBe('invalid');
    // Two reads at a time may differ.
    const both = [
      op(1, 'invoke', 'read', 'nil'),
      op(2, 'invoke', 'read', 'nil'),
      op(1, 'ok', 'read', '[1]'),
      op(2, 'ok', 'read', '[]'),
    ];
    expect(judge(add, ...both).verdict).toBe('valid');
  });

  it('refuses phantoms: never added, added only later, listed twice', () => {
    expect(judge(read(1, '[1]'), done(0, 'add', '1'), read(1, '[1]')).verdict).toBe('invalid');
    expect(judge(done(0, 'add', '1'), read(1, '[1 1]')).verdict).toBe('invalid');
    expect(judge(done(0, 'add', '1'), read(1, '[1 2]')).verdict).toBe('invalid');
  });

  it('is unknown without a read, and refuses a read that is no collection', () => {
    expect(judge(done(0, 'add', '1')).verdict).toBe('unknown');
    expect(() => judge(read(1, '7'))).toThrow('line 2: a :read of a set returned 7');
  });
});
