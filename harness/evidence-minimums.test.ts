import { describe, expect, it } from 'vitest';
import { parseCommandLine } from './cli.ts';
import { minimumsOf } from './evidence-minimums.ts';
import type { RunSettings } from './settings.ts';
import { settingsFrom, storedSettings } from './stored-settings.ts';

async function settings(...words: string[]): Promise<RunSettings> {
  const command = await parseCommandLine(words, '0');
  if (command.kind !== 'run') throw new Error(`not a run but ${command.kind}`);
  return command.settings;
}

describe('what a certificate needs', () => {
  it('follows from duration and rate', async () => {
    expect(minimumsOf(await settings('--duration', '2m'))).toEqual({
      acked: 4_800,
      ackedPerFaultKind: 100,
      failovers: 1,
      plannedPerRole: 3,
    });
    expect(minimumsOf(await settings('--duration', '10s', '--rate', '100')).acked).toBe(40);
    expect(minimumsOf(await settings('--max-operations', '100')).acked).toBe(4);
  });

  it('asks for no failover where there are no faults, or one copy', async () => {
    expect(minimumsOf(await settings('--chaos', 'none')).failovers).toBe(0);
    expect(minimumsOf(await settings('--rf', '1')).failovers).toBe(0);
  });

  it('can be set', async () => {
    const set = await settings(
      '--min-acked',
      '7',
      '--min-acked-per-fault',
      '0',
      '--min-failovers',
      '50',
      '--min-planned-per-role',
      '1',
    );
    expect(minimumsOf(set)).toEqual({ acked: 7, ackedPerFaultKind: 0, failovers: 50, plannedPerRole: 1 });
  });
});

describe('profiles', () => {
  it('set options, and what stands on the command line wins', async () => {
    expect(await settings('--profile', 'nightly')).toMatchObject({
      durationMs: 4 * 3_600_000,
      profile: 'nightly',
      evidence: { minFailovers: 100 },
    });
    expect(await settings('--duration', '1h', '--profile=nightly')).toMatchObject({ durationMs: 3_600_000 });
    expect(await settings('--profile', 'release')).toMatchObject({ ledgerSync: 'full', ratePerSecond: 1_500 });
    expect((await settings()).profile).toBeNull();
  });
});

describe('settings in the ledger', () => {
  it.each([
    [['--rate', 'max', '--workload', 'set:2,registers', '--fail-if', 'recovery.p99>5s', '--fail-if', 'lost>0']],
    [['--max-operations', '10', '--node-env', 'A=b', '--faults', 'kill', '--profile', 'smoke']],
    [['--image', 'a@sha256:b', '--keep', '--on-loss', 'freeze']],
  ])('come back as they were: %j', async (words) => {
    const before = await settings(...words, '--seed', '5');
    const stored: unknown = JSON.parse(JSON.stringify(storedSettings(before)));
    expect(settingsFrom(stored, before.resultsDir)).toEqual(before);
  });
});
