import { describe, expect, it } from 'vitest';
import { type Found, foundOf } from './found.ts';

describe('findings of a run', () => {
  it('are counted by kind and rule, with the first sentence', () => {
    const of = (kind: Found['kind'], rule: Found['rule'], reason: string) => ({ kind, rule, reason });
    expect(
      foundOf([of('lost', 'interval', 'one'), of('lost', 'replica', 'two'), of('lost', 'interval', 'three')]),
    ).toEqual([
      { kind: 'lost', rule: 'interval', reason: 'one', count: 2 },
      { kind: 'lost', rule: 'replica', reason: 'two', count: 1 },
    ]);
    expect(foundOf([])).toEqual([]);
  });
});
