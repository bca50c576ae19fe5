import { describe, expect, it } from 'vitest';
import { verdictPrecedence } from '../verdict.ts';
import type { Found } from '../found.ts';
import { judgeCatch, type RunFacts } from './judge-catch.ts';

const lost: Found = { kind: 'lost', rule: 'interval', reason: 'the key is gone', count: 3 };
const stale: Found = { kind: 'stale', rule: 'interval', reason: 'a read shows an older value', count: 1 };
const expects = ['lost', 'stale'] as const;

const facts = (changes: Partial<RunFacts> = {}): RunFacts => ({
  verdict: 'violated',
  headline: 'NOT CERTIFIED: 3 acknowledged writes were lost',
  found: [lost],
  overshoots: [],
  crashed: [],
  ...changes,
});

describe('what catches a broken store', () => {
  it('is an expected finding within the budget; of several the one that it must show first', () => {
    expect(judgeCatch(expects, facts())).toEqual({ kind: 'caught', finding: lost });
    expect(judgeCatch(expects, facts({ found: [stale, lost] }))).toEqual({ kind: 'caught', finding: lost });
    expect(judgeCatch(expects, facts({ found: [stale] }))).toEqual({ kind: 'caught', finding: stale });
  });

  // Each row is the caught run above with one thing changed.
  it.each([
    ['a crash', { crashed: ['n2'] }, /^n2 crashed/],
    ['faults past the budget', { overshoots: ['F3'] }, /^the faults F3 went past the budget/],
    ['a finding of another kind', { found: [{ ...lost, kind: 'phantom' }] }, /^found only phantom \(interval\)/],
    ['the word of replicas', { found: [{ ...lost, rule: 'replica' }] }, /^found only lost \(replica\)/],
    ['digests', { found: [{ ...lost, rule: 'digest' }] }, /^found only/],
    ['no finding that is listed', { found: [] }, /nothing that is listed/],
    [
      'a stall',
      { verdict: 'not-recovered', headline: 'it did not come back' },
      /ended not-recovered: it did not come back/,
    ],
  ] satisfies readonly (readonly [string, Partial<RunFacts>, RegExp])[])('is not %s', (_, changes, why) => {
    const judged = judgeCatch(expects, facts(changes));
    expect(judged).toMatchObject({ kind: 'missed', why: expect.stringMatching(why) });
  });

  it.each(verdictPrecedence.filter((verdict) => verdict !== 'violated'))('is no run that ended %s', (verdict) => {
    expect(judgeCatch(expects, facts({ verdict })).kind).toBe('missed');
  });

  it('counts a fencing finding only where another rule saw something in the history', () => {
    const fencing: Found = { kind: 'fencing', rule: 'two-primaries', reason: 'two primaries', count: 1 };
    expect(judgeCatch(['fencing'], facts({ found: [fencing] })).kind).toBe('missed');
    expect(judgeCatch(['fencing', 'lost'], facts({ found: [fencing, lost] }))).toEqual({
      kind: 'caught',
      finding: lost,
    });
  });
});
