/** Every broken store is caught, and the shipped one under the very same seed, faults and load is not accused. */
import { describe, expect, it } from 'vitest';
import { drawOptions } from '../options.ts';
import { outcomeOf } from '../outcome.ts';
import { runSim } from '../run-seed.ts';
import { selfTest } from '../selftest.ts';
import { brokenStores } from './catalogue.ts';

/** Wall time per store, ms; the goal for all together is three minutes. */
const boundMs = 60_000;

describe('broken stores', () => {
  it('are at least fourteen, each under a name of its own', () => {
    expect(new Set(brokenStores.map((store) => store.name)).size).toBe(brokenStores.length);
    expect(brokenStores.length).toBeGreaterThanOrEqual(14);
  });

  it.each(brokenStores)('$name: $doc', async (store) => {
    const row = await selfTest(store, 1, boundMs);
    expect(row, `${store.name} was not caught`).toMatchObject({ isCaught: true });
    const seed = row.seed as number;
    const sound = outcomeOf(
      await runSim({
        seed,
        options: drawOptions(seed, store.pins),
        checkers: true,
        ...(store.policy === undefined ? {} : { policy: store.policy }),
      }),
    );
    expect(sound.reasons).toEqual([]);
    expect(sound.kind).toBe('passed');
  });
});
