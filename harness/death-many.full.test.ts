/** `kill -9` of the harness at 100 random moments of whole runs: nothing that a client saw is missing, and every verdict is right. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { LifeSpan, runAndKill } from './testing/killed-runs.ts';

const kills = 100;
const firstSeed = 7_001;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-killed-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(process.platform !== 'linux')('kill -9 of the harness, and resume', () => {
  it(`after each of ${kills} kills: acknowledgements in the ledger or shown as the gap, the verdict right`, async () => {
    const life = new LifeSpan();
    const prng = new Prng(firstSeed);
    const phases = new Map<string, number>();
    let killed = 0;
    let violated = 0;
    for (let index = 0; killed < kills; index++) {
      const seed = firstSeed + index;
      const run = await runAndKill(join(folder, `r${seed}`), { seed, isLossy: index % 2 === 1, prng, life });
      rmSync(join(folder, `r${seed}`), { recursive: true });
      expect(run.problems, JSON.stringify(run)).toEqual([]);
      killed += run.killedIn.length;
      for (const phase of run.killedIn) phases.set(phase, (phases.get(phase) ?? 0) + 1);
      if (run.end.kind !== 'refused' && run.end.verdict === 'violated') violated++;
    }
    // Were the kills not spread over the run, or the lossy store never caught, this would prove little.
    expect([...phases.keys()]).toEqual(expect.arrayContaining(['load', 'settle', 'verify']));
    expect(violated).toBeGreaterThan(kills / 8);
  });
});
