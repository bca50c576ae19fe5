import { describe, expect, it } from 'vitest';
import type { Mutation } from '../model/client-wire.ts';
import { type Version, seq, term } from '../model/ids.ts';
import { judgeMutation } from './judge.ts';

const version = (atSeq: number): Version => ({ term: term(1), seq: seq(atSeq) });
const position = version(9);
const judge = (mutation: Mutation, value: string | null): string => {
  const judged = judgeMutation(mutation, value === null ? null : { value, version: version(3) }, position);
  return judged.kind === 'effect' ? `${judged.effect.kind} ${judged.value ?? ''}`.trim() : judged.result.status;
};

describe('judging a mutation', () => {
  const table: readonly (readonly [string, Mutation, string | null, string])[] = [
    ['put', { kind: 'put', key: 'k', value: 'v' }, null, 'put'],
    ['put over', { kind: 'put', key: 'k', value: 'v' }, 'old', 'put'],
    ['put if absent, absent', { kind: 'put', key: 'k', value: 'v', ifAbsent: true }, null, 'put'],
    ['put if absent, present', { kind: 'put', key: 'k', value: 'v', ifAbsent: true }, 'old', 'Conflict'],
    ['put if version, right', { kind: 'put', key: 'k', value: 'v', ifVersion: version(3) }, 'old', 'put'],
    ['put if version, wrong', { kind: 'put', key: 'k', value: 'v', ifVersion: version(2) }, 'old', 'Conflict'],
    ['put if version, absent', { kind: 'put', key: 'k', value: 'v', ifVersion: version(3) }, null, 'Conflict'],
    ['delete', { kind: 'delete', key: 'k' }, 'old', 'delete'],
    ['delete, absent', { kind: 'delete', key: 'k' }, null, 'NotFound'],
    ['delete if version, wrong', { kind: 'delete', key: 'k', ifVersion: version(4) }, 'old', 'Conflict'],
    ['add to nothing', { kind: 'add', key: 'k', delta: 5 }, null, 'put 5'],
    ['add', { kind: 'add', key: 'k', delta: -5 }, '3', 'put -2'],
    ['add below min', { kind: 'add', key: 'k', delta: -5, min: 0 }, '3', 'Conflict'],
    ['add above max', { kind: 'add', key: 'k', delta: 5, max: 7 }, '3', 'Conflict'],
    ['add down to min', { kind: 'add', key: 'k', delta: -3, min: 0 }, '3', 'put 0'],
    ['add up to max', { kind: 'add', key: 'k', delta: 4, max: 7 }, '3', 'put 7'],
    ['add to text', { kind: 'add', key: 'k', delta: 5 }, 'three', 'InvalidInput'],
    ['add beyond what is exact', { kind: 'add', key: 'k', delta: Number.MAX_SAFE_INTEGER }, '3', 'Conflict'],
  ];
  it.each(table)('%s', (_name, mutation, value, expected) => expect(judge(mutation, value)).toBe(expected));

  it('a refusal carries the version that it was judged against', () => {
    const absent = judgeMutation({ kind: 'delete', key: 'k' }, null, position);
    expect(absent).toEqual({ kind: 'refusal', result: { status: 'NotFound', version: position } });
    const present = judgeMutation(
      { kind: 'put', key: 'k', value: 'v', ifAbsent: true },
      { value: 'x', version: version(3) },
      position,
    );
    expect(present).toEqual({ kind: 'refusal', result: { status: 'Conflict', version: version(3) } });
  });
});
