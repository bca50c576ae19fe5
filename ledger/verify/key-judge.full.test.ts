/** The checkers' properties at full length; each figure is a number of histories. */
import { describe, expect, it } from 'vitest';
import { checkAgainstOracle, checkCounters, checkModel, checkPlanted } from './testing/properties.ts';

const seed = 7_919;

describe('checkers of one key, at length', () => {
  it('never flag a history of the linearizable model', () => checkModel(200_000, seed));
  it('agree with the oracle', () => expect(checkAgainstOracle(300_000, seed).totalBad).toBeGreaterThan(5_000));
  it('judge counters', () => expect(checkCounters(100_000, seed)).toBeGreaterThan(10_000));
  it('report every planted fault', () => expect(checkPlanted(50_000, seed).size).toBe(8));
});
