/** One broken store on local processes is caught; the shipped one, with the same faults, load and seed, is not. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { skippedEntry } from '../../sim/broken/wrong-messages.ts';
import { realWorld } from '../commands/real-world.ts';
import { Interruption } from '../run/interruption.ts';
import { certify } from '../run/run.ts';
import { type PlayedStore, playStore } from './play-store.ts';

/** Kills come in the first half of it. */
const loadMs = 20_000;
/** A busy machine needs most of it to start five nodes. */
const testMs = 240_000;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-broken-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function play(isBroken: boolean): Promise<PlayedStore> {
  const interruption = new Interruption();
  return playStore({
    store: skippedEntry,
    cluster: 'process',
    totalMs: loadMs,
    firstSeed: 1,
    resultsDir: join(folder, 'results'),
    isBroken,
    certify: async (settings) =>
      certify(settings, { ...(await realWorld(settings, interruption)), out: { write: () => true } }),
    isOver: () => interruption.early.aborted,
    nowMs: () => performance.now(),
  });
}

describe('a store whose replicas skip entries', { timeout: testMs }, () => {
  it('is caught by what was lost', async () => {
    const row = await play(true);
    expect(row).toMatchObject({ lastVerdict: 'violated', outcome: { kind: 'caught' }, runs: 1 });
    expect(row.outcome).toMatchObject({ finding: { kind: 'lost' } });
    expect(row.confirmedFaults).toBeGreaterThan(0);
    expect(row.failovers).toBeGreaterThan(0);
  });

  it('the shipped one in its place is not', async () => {
    const row = await play(false);
    expect(row.outcome).toMatchObject({
      kind: 'missed',
      why: expect.stringMatching(/^the run ended (certified|inconclusive|not-recovered)/),
    });
    expect(row.confirmedFaults).toBeGreaterThan(0);
    expect(row.acknowledged).toBeGreaterThan(0);
  });
});
