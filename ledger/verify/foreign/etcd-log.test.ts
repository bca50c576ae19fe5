import { describe, expect, it } from 'vitest';
import { unlimitedBudget } from '../search/budget.ts';
import { judgeCasRegister } from './cas-register.ts';
import { readEtcdLog } from './etcd-log.ts';
import { UserError } from './user-error.ts';

const line = (process: number | string, type: string, f: string, value: string): string =>
  `INFO  jepsen.util - ${process}\t:${type}\t:${f}\t${value}`;
const judge = (lines: readonly string[], end = '\n') =>
  judgeCasRegister(
    readEtcdLog(lines.join(end)).operations,
    { initial: null, isNilReadLegal: false },
    unlimitedBudget(),
  );
const write = (process: number, value: number): string[] => [
  line(process, 'invoke', 'write', `${value}`),
  line(process, 'ok', 'write', `${value}`),
];
const read = (process: number, value: string): string[] => [
  line(process, 'invoke', 'read', 'nil'),
  line(process, 'ok', 'read', value),
];
const cas = (process: number, type: string, value: string): string[] => [
  line(process, 'invoke', 'cas', '[1 2]'),
  line(process, type, 'cas', value),
];

describe('etcd-log', () => {
  it('takes a failed compare-and-set for an observation', () => {
    expect(judge([...write(0, 1), ...cas(1, 'fail', '[1 2]')]).verdict).toBe('invalid');
    expect(judge([...write(0, 3), ...cas(1, 'fail', '[1 2]')]).verdict).toBe('valid');
  });

  it('takes nil for the absent value: read late, it is a loss', () => {
    expect(judge([...read(0, 'nil'), ...write(0, 1)]).verdict).toBe('valid');
    const lost = judge([...write(0, 1), ...read(0, 'nil')]);
    expect(lost).toMatchObject({
      verdict: 'invalid',
      evidence: { operation: { line: 3, completeLine: 4, process: '0', text: 'read → nil' }, statesPossible: ['1'] },
    });
  });

  it('lets a timed-out read be anything, a timed-out write or cas happen late or never', () => {
    expect(
      judge([...write(0, 1), line(1, 'invoke', 'read', 'nil'), line(1, 'fail', 'read', ':timed-out')]).verdict,
    ).toBe('valid');
    const unknown = [...write(0, 1), ...cas(1, 'info', ':timed-out'), ...read(2, '1')];
    expect(judge(unknown).verdict).toBe('valid');
    expect(judge([...unknown, ...read(2, '2')]).verdict).toBe('valid');
    expect(judge([...unknown, ...read(2, '2'), ...read(2, '1')]).verdict).toBe('invalid');
  });

  it('reads spaces for tabs, CRLF, blank lines, other loggers, nemesis, and a file cut after an invocation', () => {
    const lines = [
      'INFO  jepsen.core - Worker 0 starting',
      '',
      line(':nemesis', 'info', 'start', 'nil'),
      ...write(0, 1),
      ...read(1, '1').map((text) => text.replaceAll('\t', '    ')),
      line(2, 'invoke', 'write', '7'),
    ];
    expect(judge(lines, '\r\n').verdict).toBe('valid');
    expect(readEtcdLog(`${lines.join('\r\n')}\r\n`).total).toBe(3);
  });

  it.each([
    [[...write(0, 1), 'INFO  jepsen.util - 3\t:inv'], 'line 3: not an event'],
    [[line(0, 'ok', 'read', '1')], 'line 1: process 0 completes :read but has nothing open'],
    [[line(0, 'invoke', 'write', 'x')], 'line 1: :invoke :write with value x is not in this format'],
    [
      [line(0, 'invoke', 'cas', '[1 2]'), line(0, 'fail', 'cas', ':timed-out')],
      'line 2: :fail :cas with value :timed-out',
    ],
    [[line(0, 'invoke', 'write', '1'), line(0, 'ok', 'write', '2')], "line 2: the value differs from the invocation's"],
    [[line(0, 'invoke', 'push', '1')], 'line 1: :push is none of'],
    [['', ''], 'the file holds no event'],
  ])('refuses %j', (lines, reason) => {
    expect(() => readEtcdLog(lines.join('\n'))).toThrow(UserError);
    expect(() => readEtcdLog(lines.join('\n'))).toThrow(reason);
  });
});
