import { describe, expect, it } from 'vitest';
import { brokenStores } from '../../sim/broken/catalogue.ts';
import { UsageError } from '../errors.ts';
import { usualNames } from './broken-runs.ts';
import { parseSelfTest } from './options.ts';

const parse = (line: string) => parseSelfTest(line.split(' ').filter((word) => word !== ''));
const namesOf = async (line: string): Promise<string[]> => {
  const wish = await parse(line);
  return wish.kind === 'text' ? [] : wish.stores.map(({ name }) => name);
};

describe('certify selftest', () => {
  it('plays all in the simulator, five on real nodes', async () => {
    const all = brokenStores.map(({ name }) => name);
    expect(await parse('')).toMatchObject({ kind: 'sim', limitMs: 120_000, firstSeed: null });
    expect(await namesOf('')).toEqual(all);
    expect(await parse('--cluster docker')).toMatchObject({ kind: 'real', cluster: 'docker', totalMs: 300_000 });
    expect((await namesOf('--cluster docker')).toSorted()).toEqual([...usualNames].toSorted());
    expect(new Set(usualNames).size).toBe(5);
    expect(await namesOf('--cluster docker --only all')).toEqual(all);
  });

  it('takes names as a list, or one after the other', async () => {
    const two = ['ack-before-replication', 'no-lease'];
    expect(await namesOf('--cluster process --only no-lease,ack-before-replication')).toEqual(two);
    expect(await namesOf('--cluster docker --only no-lease --only ack-before-replication')).toEqual(two);
    expect(await namesOf('--only no-lease')).toEqual(['no-lease']);
  });

  it('takes time, seed and folder', async () => {
    expect(await parse('--cluster docker --duration 90s --seed 0x10 --results elsewhere')).toMatchObject({
      totalMs: 90_000,
      firstSeed: 16,
      resultsDir: 'elsewhere',
    });
    expect(await parse('--limit 10s --seed 7')).toMatchObject({ kind: 'sim', limitMs: 10_000, firstSeed: 7 });
  });

  it.each([
    ['--only nothing-of-the-kind', /no broken store "nothing-of-the-kind"/],
    ['--cluster docker --only no-lease,', /--only must be a list/],
    ['--cluster elsewhere', /--help/],
    ['--cluster docker --limit 2m', /say --duration/],
    ['--duration 2m', /--duration is for real nodes/],
    ['--results elsewhere', /--results is for real nodes/],
    ['--cluster docker --duration 2s', /from 10s to 60m/],
    ['--cluster docker --duration soon', /must be a duration/],
    ['--cluster docker --seed x', /--seed must be/],
    ['--onyl no-lease', /--help/],
  ])('refuses %s in one sentence', async (line, why) => {
    const error = await parse(line).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(UsageError);
    expect((error as Error).message).toMatch(why);
    expect((error as Error).message).not.toContain('\n');
  });

  it('help names every store, the five, and the exit codes', async () => {
    const help = await parse('--help');
    const text = help.kind === 'text' ? help.text : '';
    for (const { name } of brokenStores) expect(text).toContain(name);
    expect(text).toContain('--cluster docker');
    expect(text).toContain('4 no engine');
  });
});
