import { describe, expect, it } from 'vitest';
import { unlimitedBudget } from '../search/budget.ts';
import { judgeCasRegister } from './cas-register.ts';
import { readJepsenEdn, readJepsenJson } from './jepsen.ts';
import { judgeMutex } from './mutex.ts';
import { UserError } from './user-error.ts';
import type { Value } from './value.ts';

const register = (text: string, initial: Value = null) =>
  judgeCasRegister(readJepsenEdn(text).operations, { initial, isNilReadLegal: true }, unlimitedBudget());
const op = (process: number | string, type: string, f: string, value = 'nil'): string =>
  `{:process ${process}, :type :${type}, :f :${f}, :value ${value}}`;
const done = (process: number, f: string, value: string, result = value): string =>
  `${op(process, 'invoke', f, value)} ${op(process, 'ok', f, result)}`;
const reasonOf = (use: () => unknown): string => {
  try {
    use();
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
  throw new Error('nothing was refused');
};

describe('jepsen histories', () => {
  it('come as a vector, a list, or maps one after another', () => {
    const events = `${done(0, 'write', '1')}\n; comment\n${done(1, 'read', 'nil', '1')}`;
    for (const text of [events, `[${events}]`, `(${events})`, `[${events}]\r\n`, `#_ignored [${events}]`]) {
      expect(readJepsenEdn(text).total).toBe(2);
      expect(register(text).verdict).toBe('valid');
    }
  });

  it('accept tagged operations and ignore nemesis', () => {
    const text = `${op(':nemesis', 'info', 'start')} #jepsen.history.Op${op(0, 'invoke', 'write', '1')} ${op(':nemesis', 'info', 'stop')}`;
    expect(readJepsenEdn(text).operations).toHaveLength(1);
    expect(readJepsenEdn('[]').total).toBe(0);
  });

  it('take :fail for "did not happen", not for an observation', () => {
    const cas = `${op(1, 'invoke', 'cas', '[1 2]')} ${op(1, 'fail', 'cas', '[1 2]')}`;
    expect(register(`${done(0, 'write', '1')} ${cas}`).verdict).toBe('valid');
    expect(register(`${done(0, 'write', '1')} ${cas} ${done(2, 'read', 'nil', '2')}`).verdict).toBe('invalid');
  });

  it('keep :info and what never completed open to the end', () => {
    for (const end of [op(1, 'info', 'write', '2'), '']) {
      const text = `${done(0, 'write', '1')} ${op(1, 'invoke', 'write', '2')} ${end} ${done(2, 'read', 'nil', '1')} ${done(3, 'read', 'nil', '2')}`;
      expect(register(text).verdict).toBe('valid');
      expect(register(`${text} ${done(4, 'read', 'nil', '1')}`).verdict).toBe('invalid');
    }
  });

  it('allow a read of nil always, and honour the initial value', () => {
    expect(register(`${done(0, 'write', '1')} ${done(1, 'read', 'nil', 'nil')}`).verdict).toBe('valid');
    expect(register(done(0, 'read', 'nil', '0')).verdict).toBe('invalid');
    expect(register(done(0, 'read', 'nil', '0'), 0).verdict).toBe('valid');
  });

  it('do not trust the value with which a read was invoked', () => {
    expect(
      register(`${op(0, 'invoke', 'read', '9')} ${done(1, 'write', '1')} ${op(0, 'ok', 'read', '1')}`).verdict,
    ).toBe('valid');
  });

  it('are judged key by key where all values are [key value] pairs', () => {
    const text = [
      done(0, 'write', '[:x 1]'),
      done(0, 'write', '[:y 2]'),
      done(0, 'read', '[:x nil]', '[:x 1]'),
      done(0, 'cas', '[:y [2 3]]'),
      done(0, 'read', '[:y nil]', '[:y 3]'),
    ].join('\n');
    expect(register(text)).toMatchObject({ verdict: 'valid', keys: 2 });
    const bad = register(`${text}\n${done(0, 'read', '[:x nil]', '[:x 3]')}`);
    expect(bad).toMatchObject({
      verdict: 'invalid',
      evidence: { key: ':x', operation: { line: 6 }, statesPossible: ['1'] },
    });
  });

  it('are refused with line and reason', () => {
    expect(reasonOf(() => readJepsenEdn(`\n${op(3, 'ok', 'read', '1')}`))).toBe(
      'line 2: process 3 completes :read but has nothing open',
    );
    expect(reasonOf(() => readJepsenEdn(`${op(3, 'invoke', 'read')}\n${op(3, 'invoke', 'read')}`))).toContain(
      'line 2: process 3 invokes',
    );
    expect(reasonOf(() => readJepsenEdn(`${op(3, 'invoke', 'read')}\n${op(3, 'ok', 'write', '1')}`))).toContain(
      'line 2: process 3 completes :write',
    );
    expect(reasonOf(() => readJepsenEdn('{:type :invoke, :f :read}'))).toBe('line 1: :process is missing');
    expect(reasonOf(() => readJepsenEdn('[1 2]'))).toContain('line 1: not a map');
    expect(reasonOf(() => readJepsenEdn(' ; nothing\n'))).toBe('the file is empty');
    expect(reasonOf(() => register(done(0, 'cas', '7')))).toContain('not [FROM TO]');
    expect(reasonOf(() => register(done(0, 'enqueue', '7')))).toContain('not an operation of model cas-register');
  });
});

describe('jepsen-json', () => {
  const event = (process: number | string, type: string, f: string, value: unknown): object => ({
    process,
    type,
    f,
    value,
  });
  const events = [
    event(0, 'invoke', 'cas', [1, 2]),
    event('nemesis', 'info', 'start', null),
    event(0, 'fail', 'cas', [1, 2]),
    event(1, 'invoke', 'write', '"}],'),
    event(1, 'ok', 'write', '"}],'),
  ];

  it('reads one array on one line or on many', () => {
    for (const text of [
      JSON.stringify(events),
      JSON.stringify(events, null, 2),
      `${events.map((e) => JSON.stringify(e)).join('\r\n')}\n`,
    ]) {
      const { operations, total } = readJepsenJson(text);
      expect(total).toBe(2);
      expect(operations.map(({ f, input, outcome }) => [f, input, outcome])).toEqual([['write', '"}],', 'ok']]);
    }
  });

  it('keeps integers beyond 2^53 apart', () => {
    const text = '[{"process":0,"type":"invoke","f":"write","value":9007199254740993}]';
    expect(readJepsenJson(text).operations[0]!.input).toBe(9007199254740993n);
  });

  it('says where it is broken', () => {
    const lines = events.map((e) => JSON.stringify(e));
    expect(reasonOf(() => readJepsenJson(`[${lines.join(',\n')}`))).toContain(
      'line 1: the array that starts here is never closed',
    );
    expect(reasonOf(() => readJepsenJson(`[${lines.join(',\n').slice(0, -4)}`))).toContain('line 5: ');
    expect(reasonOf(() => readJepsenJson(`[${lines.join('\n')}]`))).toContain('line 2: a comma is missing');
    expect(reasonOf(() => readJepsenJson(`[\n{"process": 1,}]`))).toContain('line 2: not JSON');
    expect(reasonOf(() => readJepsenJson('[]\n x'))).toContain('line 2: text follows');
  });
});

describe('mutex', () => {
  const judge = (text: string) => judgeMutex(readJepsenEdn(text).operations, unlimitedBudget());
  it('is held by one at a time', () => {
    expect(
      judge(`${done(0, 'acquire', 'nil')} ${done(0, 'release', 'nil')} ${done(1, 'acquire', 'nil')}`).verdict,
    ).toBe('valid');
    expect(judge(`${done(0, 'acquire', 'nil')}\n${done(1, 'acquire', 'nil')}`)).toMatchObject({
      verdict: 'invalid',
      evidence: { operation: { line: 2, process: '1' }, statesPossible: ['held'] },
    });
    expect(judge(done(0, 'release', 'nil')).verdict).toBe('invalid');
  });

  it('may have been released by an unknown release, once', () => {
    const unknown = `${done(0, 'acquire', 'nil')} ${op(0, 'invoke', 'release')} ${op(0, 'info', 'release')} ${done(1, 'acquire', 'nil')}`;
    expect(judge(unknown).verdict).toBe('valid');
    expect(judge(`${unknown} ${done(2, 'acquire', 'nil')}`).verdict).toBe('invalid');
  });
});
