import { describe, expect, it } from 'vitest';
import { sourceCode } from '../ledger/verify/history.ts';
import { drawOptions } from './options.ts';
import { runSim } from './run-seed.ts';

describe('retiring keys', () => {
  it('reads a key once, keeps up with the load, and asks every replica of what it retires', async () => {
    const options = drawOptions(3, {
      durationMs: '120000',
      nodes: '5',
      rf: '3',
      partitions: '8',
      sessions: '16',
      ratePerSecond: '300',
      mix: 'set:1',
      readRatio: '0.1',
      faults: 'kill,pause',
      // The sessions alone remember 4,096 keys.
      maxLiveKeys: '9000',
      beatMs: '250',
      minLatencyMs: '0.2',
      meanLatencyMs: '0.3',
      lossChance: '0',
      slowNodeMs: '0',
      chaos: 'gentle',
    });
    const { history, judgement } = await runSim({ seed: 3, options });
    let retired = 0;
    let reads = 0;
    let live = 0;
    let fewestReplicas = Infinity;
    for (const key of history.histories(0, 1)) {
      const sources = Array.from({ length: key.size }, (_, row) => key.source[row]);
      reads += sources.filter((source) => source === sourceCode.retire).length;
      if (!key.retired) live += 1;
      else {
        retired += 1;
        fewestReplicas = Math.min(fewestReplicas, sources.filter((source) => source === sourceCode.replica).length);
      }
    }
    expect(judgement.verdict).toBe('certified');
    expect(retired).toBeGreaterThan(10_000);
    // A key is read again only where a fault came between. When copies were asked at once, which hardly ever are level between two
    // beats, it was nine reads for each, and the cap stopped the load.
    expect(reads / retired).toBeLessThan(1.5);
    expect(fewestReplicas).toBeGreaterThanOrEqual(3);
    // From half of the cap on keys go as they come.
    expect(live).toBeLessThan(0.7 * options.maxLiveKeys);
  });
});
