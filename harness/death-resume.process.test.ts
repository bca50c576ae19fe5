/** `kill -9` of the harness and `resume`, in short: one run of a sound store and one of a store that loses. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { LifeSpan, runAndKill } from './testing/killed-runs.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-killed-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(process.platform !== 'linux')('kill -9 of the harness, and resume', { timeout: 300_000 }, () => {
  it.each([
    { isLossy: false, seed: 11, verdict: 'inconclusive' },
    { isLossy: true, seed: 12, verdict: 'violated' },
  ])('with a store that loses ($isLossy) ends $verdict', async ({ isLossy, seed, verdict }) => {
    const life = new LifeSpan();
    // Shorter than the load: the kill comes before the end on any machine.
    life.ms = 4_000;
    const run = await runAndKill(join(folder, `r${seed}`), { seed, isLossy, prng: new Prng(seed), life });
    expect(run.problems, JSON.stringify(run)).toEqual([]);
    expect(run.end, JSON.stringify(run)).toMatchObject({ kind: 'judged', verdict });
    expect(run.acknowledged).toBeGreaterThan(0);
  });
});
