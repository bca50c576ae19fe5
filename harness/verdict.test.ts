import { describe, expect, it } from 'vitest';
import { decideVerdict, exitCodeOf, type Verdict, verdictPrecedence } from './verdict.ts';

describe('verdicts', () => {
  it('has the exit codes of the design', () => {
    const codes: [Verdict, number][] = [
      ['violated', 1],
      ['harness-fault', 70],
      ['environment', 4],
      ['interrupted', 130],
      ['not-recovered', 2],
      ['inconclusive', 3],
      ['certified', 0],
    ];
    for (const [verdict, code] of codes) expect(exitCodeOf(verdict)).toBe(code);
  });

  it('lets the stronger of any two stand, in any order', () => {
    const order = verdictPrecedence.filter((each) => each !== 'certified');
    for (const [strong, first] of order.entries()) {
      for (const second of order.slice(strong)) {
        const reasons = [
          { verdict: first, reason: 'a' },
          { verdict: second, reason: 'b' },
        ];
        expect(decideVerdict(reasons)).toBe(first);
        expect(decideVerdict(reasons.toReversed())).toBe(first);
      }
    }
  });

  it('certifies only without any reason', () => {
    expect(decideVerdict([])).toBe('certified');
    expect(decideVerdict([{ verdict: 'inconclusive', reason: 'a' }])).toBe('inconclusive');
  });
});
