import { describe, expect, it } from 'vitest';
import { system as tiny } from '../docs/examples/tiny-map/adapter.ts';
import { UsageError } from './errors.ts';
import { loadSystem } from './load-system.ts';
import { leftOutWorkloads, withSystem } from './system-options.ts';
import { variantsOf } from './systems/catalogue.ts';
import { etcd } from './systems/etcd/etcd.ts';

const added = async (...words: string[]): Promise<string> => (await withSystem(words)).slice(words.length).join(' ');

describe('a system and the rest of the command line', () => {
  it('leaves Zaris and other commands alone', async () => {
    for (const words of [[], ['--duration', '2m'], ['list'], ['--system', 'zaris']])
      expect(await withSystem(words)).toEqual(words);
  });

  it('adds what is missing: nodes, copies, partitions, workloads that the system can run', async () => {
    expect(await added('--system', 'redis')).toBe(
      '--nodes 3 --rf 3 --partitions 1 --workload set:5,registers:4,counters:1,create:1,churn:1,ttl:1,renewals:1,recreate:1',
    );
    expect(await added('--system=etcd', '--nodes', '5')).toBe(
      '--rf 5 --partitions 1 --workload set:5,registers:4,cas:1,lists:1,create:1,churn:1,recreate:1',
    );
    expect(await added('--system', 'etcd', '--nodes=5', '--rf=5', '--partitions', '1', '--workload', 'set')).toBe('');
  });

  it('takes a variant from --profile, and leaves a run profile alone', async () => {
    expect(await withSystem(['--system', 'redis', '--profile', 'wait-1'])).toEqual(
      expect.arrayContaining(['--system', 'redis:wait-1']),
    );
    expect(await withSystem(['--profile=min-replicas', '--system=redis'])).toContain('--system=redis:min-replicas');
    expect(await withSystem(['--system', 'redis', '--profile', 'smoke'])).toEqual(
      expect.arrayContaining(['--profile', 'smoke']),
    );
  });

  it.each([
    [['--system', 'redis:never'], /There is no system "redis:never"; there are zaris, redis/],
    [['--system', 'etcd:x'], /There is no system/],
    [
      ['--system', 'etcd', '--rf', '2'],
      /Every node of etcd holds every key, so --rf is the number of nodes \(3\), not 2/,
    ],
    [['--system', 'etcd', '--partitions', '64'], /etcd has 1 partition, so --partitions cannot be 64/],
    [
      ['--system', 'redis', '--workload', 'cas:2'],
      /The workload "cas" needs compareAndSet, versions, which redis async does not offer/,
    ],
    [['--system', './no-such-file.ts'], /There is no file/],
    [['--system', 'harness/parse.ts'], /exports no "system"/],
  ])('refuses %j in one sentence', async (words, sentence) => {
    const refusal = withSystem(words);
    await expect(refusal).rejects.toBeInstanceOf(UsageError);
    await expect(refusal).rejects.toThrow(sentence);
  });

  it('loads a user’s own adapter from its file', async () => {
    expect((await loadSystem('docs/examples/tiny-map/adapter.ts')).name).toBe('tiny-map');
  });

  it('loads every variant that help names', async () => {
    for (const variant of variantsOf('redis'))
      expect((await loadSystem(`redis:${variant}`)).name).toBe(`redis ${variant}`);
    expect((await loadSystem('redis')).name).toBe('redis async');
  });

  it('names what was left out', () => {
    expect(leftOutWorkloads(etcd.capabilities, 'etcd')).toEqual([
      'The workload counters was left out: etcd does not offer counters.',
      'The workload ttl was left out: etcd does not offer ttl.',
      'The workload renewals was left out: etcd does not offer ttl.',
    ]);
    expect(leftOutWorkloads({ ...tiny.capabilities, compareAndSet: false }, 'x')).toContain(
      'The workload registers was left out: x does not offer compareAndSet.',
    );
  });
});
