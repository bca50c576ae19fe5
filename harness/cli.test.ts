import { describe, expect, it } from 'vitest';
import { parseCommandLine } from './cli.ts';
import { UsageError } from './errors.ts';
import type { RunSettings } from './settings.ts';

const parse = async (...words: string[]): Promise<RunSettings> => {
  const command = await parseCommandLine(words, '0');
  if (command.kind !== 'run') throw new Error(`not a run but ${command.kind}`);
  return command.settings;
};

describe('the command line', () => {
  it('runs by default, with defaults that make a good run', async () => {
    const settings = await parse('--duration', '1h30m');
    expect(settings).toMatchObject({
      durationMs: 5_400_000,
      replicationFactor: 3,
      nodeCount: 5,
      cluster: 'docker',
      contract: 'durable',
      sessions: 64,
      keep: false,
      maxOperations: Infinity,
    });
    expect(await parse('run', '--duration', '90s', '--seed', '0x10')).toMatchObject({ durationMs: 90_000, seed: 16 });
    expect((await parse()).seed).not.toBe((await parse()).seed);
  });

  it('takes every option', async () => {
    const settings = await parse(
      '--rate',
      'max',
      '--faults',
      'kill,partition',
      '--node-env',
      'A=b=c',
      '--node-env',
      'D=',
      '--workload',
      'set',
      '--keep',
      '--on-loss',
      'freeze',
      '--ledger-sync',
      'full',
      '--max-operations',
      '10',
    );
    expect(settings).toMatchObject({
      ratePerSecond: Infinity,
      nodeEnvironment: { A: 'b=c', D: '' },
      keep: true,
      onLoss: 'freeze',
      ledgerSync: 'full',
      maxOperations: 10,
    });
    expect(settings.faultNames).toEqual(expect.arrayContaining(['kill', 'isolate', 'halves']));
  });

  it.each([
    [['--rf', '3.5']],
    [['--rf', '-1']],
    [['--rf', '6', '--nodes', '7']],
    [['--rf', '']],
    [['--nodes', '0']],
    [['--duration', '1s']],
    [['--duration', '30d']],
    [['--duration', '']],
    [['--rate', '0']],
    [['--rate', 'x']],
    [['--rate', '1e30']],
    [['--rate', '']],
    [['--sessions', '0']],
    [['--seed', '-1']],
    [['--seed', '4294967296']],
    [['--faults', 'kil']],
    [['--faults', 'kill,,pause']],
    [['--workload', 'nothing']],
    [['--chaos', 'wild']],
    [['--cluster', 'cloud']],
    [['--system', 'mongo']],
    [['--contract', 'none']],
    [['--schedule', '/no/such/file']],
    [['--partitions', '100']],
    [['--node-env', 'A']],
    [['--node-entry', 'no/such/program.ts']],
    [['--duration', '2m', '--duration', '3m']],
    [['--min-in-sync', '4']],
    [['--read-ratio', '1']],
    [['--value-bytes', '1']],
    [['extra']],
    [['--duration']],
  ])('refuses %j as a usage error', async (words) => {
    await expect(parseCommandLine(words, '0')).rejects.toBeInstanceOf(UsageError);
  });
});
