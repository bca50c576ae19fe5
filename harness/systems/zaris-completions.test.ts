import { describe, expect, it } from 'vitest';
import type { Operation } from '../../workloads/port.ts';
import type { CallStatus } from '../../zaris/client/contract.ts';
import type { OperationResult } from '../../zaris/client/result.ts';
import { finalStatuses, transientStatuses } from '../../zaris/model/status.ts';
import { seq, term } from '../../zaris/model/ids.ts';
import { completionOf } from './zaris-completions.ts';

const result = (status: CallStatus, more: Partial<OperationResult> = {}): OperationResult => ({
  status,
  isSuccess: status === 'Ok',
  inDoubt: false,
  attempts: 1,
  elapsedMs: 1,
  version: { term: term(3), seq: seq(9) },
  partition: 5,
  epoch: 4,
  servedBy: 'n2',
  ...more,
});
const read: Operation = { f: 'read', key: 'k' };
const write: Operation = { f: 'write', key: 'k', value: 'v' };
const create: Operation = { f: 'create', key: 'k', value: 'v' };
const cas: Operation = { f: 'cas', key: 'k', value: 'v', expected: [1, 1] };
const erase: Operation = { f: 'delete', key: 'k' };
const add: Operation = { f: 'add', key: 'k', delta: 2 };
const served = { partition: 5, epoch: 4, node: 'n2', attempts: 1 };

const statuses: readonly CallStatus[] = [
  ...finalStatuses,
  ...transientStatuses,
  'TransportError',
  'DeadlineExceeded',
  'Cancelled',
  'Closed',
  'Overloaded',
];

describe('what a result of the client means', () => {
  it('is info whenever the client is in doubt, whatever the status', () => {
    for (const status of statuses) {
      for (const operation of [write, create, cas, erase, add])
        expect(completionOf(operation, result(status, { inDoubt: true })).kind, status).toBe('info');
    }
  });

  it('is ok for a mutation only with Ok', () => {
    for (const status of statuses)
      expect(completionOf(write, result(status)).kind === 'ok', status).toBe(status === 'Ok');
  });

  it.each([
    [read, result('Ok', { value: 'x' }), { kind: 'ok', value: 'x', version: [3, 9], ...served }],
    [read, result('NotFound'), { kind: 'ok', value: null, version: [3, 9], ...served }],
    [write, result('Ok'), { kind: 'ok', version: [3, 9], ...served }],
    [add, result('Ok', { value: '7' }), { kind: 'ok', value: '7', version: [3, 9], ...served }],
    [create, result('Conflict'), { kind: 'fail', why: 'condition', error: 'Conflict', version: [3, 9], ...served }],
    [cas, result('NotFound'), { kind: 'fail', why: 'condition', error: 'NotFound', version: [3, 9], ...served }],
    [erase, result('NotFound'), { kind: 'fail', why: 'condition', error: 'NotFound', version: [3, 9], ...served }],
    [write, result('InvalidInput'), { kind: 'fail', why: 'invalid', error: 'InvalidInput', ...served }],
    [
      write,
      result('Unavailable', { reason: 'too few copies', attempts: 3 }),
      { kind: 'fail', why: 'refused', error: 'Unavailable: too few copies', ...served, attempts: 3 },
    ],
    // Every copy is gone, says the store: whoever reads has seen that the value is not there; a write has not happened.
    [read, result('Lost'), { kind: 'ok', value: null, version: null, ...served }],
    [write, result('Lost'), { kind: 'fail', why: 'refused', error: 'Lost', ...served }],
    [read, result('DeadlineExceeded'), { kind: 'fail', why: 'refused', error: 'DeadlineExceeded', ...served }],
  ])('%j with %j', (operation, outcome, expected) => {
    expect(completionOf(operation, outcome)).toEqual(expected);
  });

  it('is info for a status that nobody knows', () => {
    expect(completionOf(write, result('Martian' as CallStatus)).kind).toBe('info');
  });
});
