import { describe, expect, it } from 'vitest';
import { brokenStores } from '../../sim/broken/catalogue.ts';
import { readConfig } from '../../zaris/server/config.ts';
import { runLengths, runWords } from './broken-runs.ts';
import { settingsOf } from './play-store.ts';

const run = { cluster: 'docker', durationMs: 30_000, seed: 5, resultsDir: 'results/selftest', isBroken: true } as const;

describe('the runs of a broken store', () => {
  it.each(brokenStores)('$name: an ordinary run of the broken program, within the budget', async (store) => {
    const settings = await settingsOf({ ...run, store });
    expect(settings).toMatchObject({
      cluster: 'docker',
      nodeEntry: 'sim/broken/main.ts',
      onLoss: 'stop',
      beyondBudget: false,
      contract: 'durable',
      chaosLevel: 'brutal',
      durationMs: 30_000,
      seed: 5,
      replicationFactor: Number(store.pins['rf']),
    });
    expect(settings.nodeEnvironment).toMatchObject({ ZARIS_BROKEN: store.name });
    expect(settings.faultNames?.length).toBeGreaterThan(0);
  });

  it.each(brokenStores)('$name: a node reads every setting that it is given', async (store) => {
    const { nodeEnvironment } = await settingsOf({ ...run, store });
    const own = { ZARIS_NODE_ID: 'n1', ZARIS_DATA_DIR: '/data' };
    expect(readConfig({ ...own, ...nodeEnvironment }, []).unknown).toEqual(['ZARIS_BROKEN']);
  });

  it('what needs more on real nodes than in the simulator gets it', async () => {
    const store = brokenStores.find(({ name }) => name === 'no-exactly-once');
    if (store === undefined) throw new Error('there is no such store');
    expect(await settingsOf({ ...run, store })).toMatchObject({
      faultNames: ['reset', 'client-partition', 'kill'],
      ratePerSecond: Infinity,
    });
  });

  it('the shipped store in its place differs by nothing else', () => {
    for (const store of brokenStores) {
      const sound = runWords({ ...run, store, isBroken: false });
      const broken = runWords({ ...run, store });
      expect(sound.join(' ')).not.toContain('broken');
      expect(broken.filter((word) => !sound.includes(word))).toEqual([
        '--node-entry',
        'sim/broken/main.ts',
        `ZARIS_BROKEN=${store.name}`,
      ]);
    }
  });

  it.each([
    [300_000, [30_000, 60_000, 60_000, 60_000, 60_000, 30_000]],
    [90_000, [30_000, 60_000]],
    [45_000, [45_000]],
    [50_000, [30_000, 20_000]],
    [20_000, [20_000]],
  ])('%i ms are shared by a short run and longer ones', (totalMs, lengths) => {
    expect(runLengths(totalMs)).toEqual(lengths);
    expect(lengths.reduce((sum, one) => sum + one, 0)).toBe(totalMs);
  });
});
