import { describe, expect, it } from 'vitest';
import { countDisagreements } from './oracle-run.ts';

describe('checkers against brute force', () => {
  it('agrees on 6,000 small histories with unique values', () => {
    const run = countDisagreements({ seed: 1, histories: 6_000, values: 0 });
    expect(run.disagreements).toEqual([]);
    expect(run.valid).toBeGreaterThan(1_000);
    expect(run.invalid).toBeGreaterThan(1_000);
    expect(run.byMethod.relay).toBeGreaterThan(300);
    expect(run.relayInvalid).toBeGreaterThan(0);
  });

  it('agrees on 6,000 small histories full of refusals', () => {
    const run = countDisagreements({ seed: 3, histories: 6_000, values: 'refusals', maxOperations: 14 });
    expect(run.disagreements).toEqual([]);
    expect(run.valid).toBeGreaterThan(500);
    expect(run.relayInvalid).toBeGreaterThan(300);
  });

  it('agrees on 6,000 small histories with repeated values', () => {
    const run = countDisagreements({ seed: 2, histories: 6_000, values: 3 });
    expect(run.disagreements).toEqual([]);
    expect(run.valid).toBeGreaterThan(1_000);
    expect(run.invalid).toBeGreaterThan(300);
    expect(run.byMethod.search).toBeGreaterThan(3_000);
  });
});
