import { describe, expect, it } from 'vitest';
import { system } from '../../docs/examples/tiny-map/adapter.ts';
import { etcd } from '../systems/etcd/etcd.ts';
import { redis } from '../systems/redis/redis.ts';
import { shapeProblems } from './shape.ts';

describe('the shape of an adapter', () => {
  it('is what ours and the example have', () => {
    for (const each of [system, etcd, redis('async'), redis('wait-1'), redis('min-replicas')])
      expect(shapeProblems(each)).toEqual([]);
  });

  it.each([
    ['nothing at all', null, /^system must be an object/],
    ['a name that is none', { ...system, name: 'a/b' }, /^system\.name must be a short name/],
    ['no connect', { ...system, connect: undefined }, /^system\.connect must be a function/],
    [
      'a capability that is neither true nor false',
      { ...system, capabilities: { ...system.capabilities, compareAndSet: 'yes' } },
      /^system\.capabilities\.compareAndSet must be true or false/,
    ],
    [
      'compare-and-set without versions',
      { ...system, capabilities: { ...system.capabilities, versions: false } },
      /compareAndSet needs versions/,
    ],
    ['no program', { ...system, program: undefined }, /system\.program must say what runs/],
    [
      'a source of an unknown kind',
      { ...system, program: { ...system.program, source: { kind: 'tarball' } } },
      /^system\.program\.source.* must be \{ kind/,
    ],
    [
      'a contract without a permitted loss',
      { ...system, contract: () => ({ acknowledgement: 'x', durable: false, permittedLoss: null }) },
      /must name a permittedLoss/,
    ],
    [
      'a contract that throws',
      {
        ...system,
        contract: () => {
          throw new Error('boom');
        },
      },
      /throws: boom/,
    ],
    [
      'a permitted finding of no name',
      {
        ...system,
        contract: () => ({ acknowledgement: 'x', durable: false, permittedLoss: 'any', permits: ['lost'] }),
      },
      /permits\.0 may hold stale/,
    ],
  ])('tells an author of %s in one sentence', (_what, candidate, sentence) => {
    const problems = shapeProblems(candidate);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(sentence);
    expect(problems[0]).toMatch(/\.$/);
  });
});
