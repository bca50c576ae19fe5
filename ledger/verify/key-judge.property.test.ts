import { describe, expect, it } from 'vitest';
import { checkAgainstOracle, checkCounters, checkModel, checkPlanted } from './testing/properties.ts';

const seed = 20_240_607;

describe('checkers of one key', () => {
  it('never flag a history of the linearizable model', () => checkModel(3_000, seed));

  it('never flag what the oracle can explain, and flag all that it cannot where versions are total', () => {
    const counts = checkAgainstOracle(6_000, seed);
    expect(counts.totalBad).toBeGreaterThan(100);
    // Where versions are partial most is still caught; a search decides the rest.
    expect(counts.flagged / counts.bad).toBeGreaterThan(0.8);
  });

  it('never flag a sound counter, and always one that lost or doubled an addition', () =>
    expect(checkCounters(4_000, seed)).toBeGreaterThan(1_000));

  it('report every planted fault as what it is', () => {
    const planted = checkPlanted(600, seed);
    for (const kind of ['lost', 'stale', 'resurrected', 'phantom', 'duplicated', 'diverged', 'corrupt', 'reordered'])
      expect(planted.get(kind)).toBeGreaterThan(20);
  });
});
