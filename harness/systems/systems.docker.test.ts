/** Redis and etcd in containers, from image to conformance, and Redis's signature loss under a cut primary. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { engineForTests } from '../../docker/testing/engine-for-tests.ts';
import { openDockerCluster } from '../clusters/docker.ts';
import { checkRunning } from '../conformance/live.ts';
import { etcd } from './etcd/etcd.ts';
import { redis } from './redis/redis.ts';
import type { System } from './system.ts';

const engine = await engineForTests();
const folder = mkdtempSync(join(tmpdir(), 'systems-docker-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open(system: System, stack: AsyncDisposableStack) {
  const runId = `systems-${process.pid}-${system.name.replace(/\W/g, '-')}`;
  const logsDir = join(folder, runId, 'logs');
  mkdirSync(logsDir, { recursive: true });
  const plan = { clusterId: runId, nodeCount: 3, replicationFactor: 3, minInSync: 2, partitionCount: 1 };
  const cluster = await openDockerCluster({
    runId,
    nodeCount: 3,
    logsDir,
    environment: () => ({}),
    nodeEntry: null,
    ...(system.program === undefined
      ? {}
      : { program: { program: system.program, plan, unsupportedFaults: system.unsupportedFaults ?? new Map() } }),
    clock: { nowMs: () => performance.now(), wallMs: () => Date.now() },
    say: () => undefined,
    signal: new AbortController().signal,
  });
  stack.defer(() => cluster.dispose());
  const running = system.connect({ plan, addresses: cluster.addresses(), nowMs: () => performance.now() });
  stack.defer(() => running.close());
  await running.bootstrap(60_000, new AbortController().signal);
  return { cluster: cluster.cluster, running };
}

describe.skipIf(engine.kind === 'none')(
  `other systems in containers${engine.kind === 'none' ? ` (skipped: ${engine.why})` : ''}`,
  () => {
    it.each([etcd, redis('min-replicas') as System])(
      '$name keeps to the port',
      async (system) => {
        await using stack = new AsyncDisposableStack();
        const { cluster, running } = await open(system, stack);
        const checks = await checkRunning({ definition: system, running, cluster });
        expect(checks.filter(({ problem }) => problem !== null)).toEqual([]);
        expect((await cluster.unsupported()).get('wipe')).toBe(system.unsupportedFaults?.get('wipe'));
      },
      300_000,
    );

    it('redis async acknowledges on a primary that is cut off, and loses that write', async () => {
      await using stack = new AsyncDisposableStack();
      const { cluster, running } = await open(redis('async') as System, stack);
      const client = running.client(0);
      expect((await client.execute({ f: 'write', key: 'kept', value: '1' })).kind).toBe('ok');
      await cluster.setCuts(
        ['n2', 'n3'].flatMap((other) => [
          { from: 'n1', to: other },
          { from: other, to: 'n1' },
        ]),
      );
      const until = async (isSo: () => Promise<boolean>): Promise<void> => {
        for (let tries = 0; tries < 300 && !(await isSo()); tries++)
          await new Promise((resolve) => setTimeout(resolve, 200));
      };
      const primary = async () => (await running.status.status())?.partitions[0]?.primary;
      await until(async () => ![undefined, 'n1'].includes((await primary()) ?? undefined));
      expect(await client.execute({ f: 'write', key: 'lost', value: '1' })).toMatchObject({ kind: 'ok', node: 'n1' });
      await cluster.setCuts([]);
      await until(async () => (await running.status.status())?.partitions[0]?.health === 'Healthy');
      await until(async () => (await client.execute({ f: 'read', key: 'lost' })).node !== 'n1');
      expect(await client.execute({ f: 'read', key: 'kept' })).toMatchObject({ kind: 'ok', value: '1' });
      expect(await client.execute({ f: 'read', key: 'lost' })).toMatchObject({ kind: 'ok', value: null });
    }, 300_000);
  },
);
