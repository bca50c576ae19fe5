import { describe, expect, it } from 'vitest';
import { countDisagreements } from './oracle-run.ts';

const minutes = 60_000;

describe('checkers against brute force, at length', () => {
  for (const { seed, histories, values, maxOperations } of [
    { seed: 101, histories: 100_000, values: 0, maxOperations: 9 },
    { seed: 102, histories: 50_000, values: 0, maxOperations: 13 },
    { seed: 106, histories: 60_000, values: 'refusals' as const, maxOperations: 14 },
    { seed: 103, histories: 50_000, values: 3, maxOperations: 9 },
    { seed: 104, histories: 30_000, values: 2, maxOperations: 12 },
    { seed: 105, histories: 30_000, values: 5, maxOperations: 13 },
  ]) {
    const kind = values === 0 ? 'unique' : values === 'refusals' ? 'unique, often refused' : `${values}`;
    it(
      `agrees on ${histories} histories, up to ${maxOperations} operations, ${kind} values`,
      { timeout: 10 * minutes },
      () => {
        const run = countDisagreements({ seed, histories, values, maxOperations });
        expect(run.disagreements).toEqual([]);
        expect(run.valid + run.invalid).toBe(histories);
        expect(run.invalid).toBeGreaterThan(histories / 20);
        expect(run.relayInvalid).toBeGreaterThan(50);
      },
    );
  }
});
