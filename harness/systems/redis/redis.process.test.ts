import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StoreClient } from '../../../workloads/port.ts';
import { eventually, hasProgram, openStoreCluster, type StoreCluster } from '../../testing/store-cluster.ts';
import type { System } from '../system.ts';
import { redis } from './redis.ts';

/** Only what never comes takes so long. */
const patienceMs = 60_000;
const isHere = hasProgram('redis-server');
const profile = (name: string): System => redis(name) as System;

describe.skipIf(!isHere)('Redis with Sentinel (redis-server needed)', () => {
  let store: StoreCluster;
  let client: StoreClient;

  beforeAll(async () => {
    store = await openStoreCluster(profile('wait-1'), 3);
    client = store.system.client(0);
  }, 180_000);
  afterAll(() => store?.[Symbol.asyncDispose]());

  it('writes, reads, creates, counts and deletes, and says who served', async () => {
    expect(await client.execute({ f: 'read', key: 'a' })).toMatchObject({ kind: 'ok', value: null });
    expect(await client.execute({ f: 'write', key: 'a', value: 'é 1' })).toMatchObject({
      kind: 'ok',
      node: 'n1',
      partition: 0,
    });
    expect(await client.execute({ f: 'read', key: 'a' })).toMatchObject({ kind: 'ok', value: 'é 1' });
    expect(await client.execute({ f: 'create', key: 'a', value: '2' })).toMatchObject({
      kind: 'fail',
      why: 'condition',
    });
    expect(await client.execute({ f: 'create', key: 'b', value: '2' })).toMatchObject({ kind: 'ok' });
    expect(await client.execute({ f: 'delete', key: 'b' })).toMatchObject({ kind: 'ok' });
    expect(await client.execute({ f: 'delete', key: 'b' })).toMatchObject({ kind: 'fail', why: 'condition' });
    expect(await client.execute({ f: 'add', key: 'n', delta: 4 })).toMatchObject({ kind: 'ok', value: '4' });
    expect(await client.execute({ f: 'cas', key: 'a', value: 'x', expected: [0, 1] })).toMatchObject({
      kind: 'fail',
      why: 'invalid',
    });
    expect(await client.execute({ f: 'write', key: 't', value: 'gone', ttlMs: 50 })).toMatchObject({ kind: 'ok' });
    await new Promise((resolve) => setTimeout(resolve, 120));
    expect(await client.execute({ f: 'read', key: 't' })).toMatchObject({ kind: 'ok', value: null });
  });

  it('reads versions and copies from the live servers', async () => {
    const facts = await store.system.facts();
    expect(facts).toMatchObject({ replicationFactor: 3, minInSync: 2, partitions: 1 });
    expect(facts.versions[0]?.value).toMatch(/^7\./);
    // A copy that follows may be a moment behind.
    const copies = await eventually('every copy', patienceMs, async () => {
      const peeked = await Promise.all(['n1', 'n2', 'n3'].map((nodeId) => store.system.peek(nodeId, 0, ['a', 'none'])));
      return peeked.every((copy) => copy?.keys[0]?.value !== null) ? peeked : null;
    });
    for (const copy of copies)
      expect(copy?.keys).toEqual([
        { key: 'a', value: 'é 1', version: null },
        { key: 'none', value: null, version: null },
      ]);
    expect(copies.map((copy) => copy?.role)).toEqual(['primary', 'replica', 'replica']);
  });

  it('acknowledges nothing that no replica has, and does not call it failed', async () => {
    await Promise.all(['n2', 'n3'].map((nodeId) => store.cluster.cluster.pause(nodeId)));
    expect(await client.execute({ f: 'write', key: 'alone', value: '1' })).toMatchObject({
      kind: 'info',
      error: expect.stringMatching(/^WAIT: 0 of 1/),
    });
    await Promise.all(['n2', 'n3'].map((nodeId) => store.cluster.cluster.resume(nodeId)));
    await eventually('healthy again', patienceMs, async () => {
      const status = await store.system.status.status();
      return status?.partitions[0]?.health === 'Healthy' ? status : null;
    });
  }, 180_000);

  it('follows a failover: another primary under a higher term, the old one back as a replica', async () => {
    const before = (await store.system.status.status())?.partitions[0];
    expect(before?.primary).toBe('n1');
    await store.cluster.cluster.kill('n1');
    const after = await eventually('another primary', patienceMs, async () => {
      const partition = (await store.system.status.status())?.partitions[0];
      return partition !== undefined && partition.primary !== 'n1' && partition.serving ? partition : null;
    });
    expect(after.term).toBeGreaterThan(before?.term ?? 0);
    expect(after.health).toBe('Degraded');
    const later = await eventually('an acknowledged write', patienceMs, async () => {
      const completion = await client.execute({ f: 'write', key: 'later', value: '1' });
      return completion.kind === 'ok' ? completion : null;
    });
    expect(later.node).toBe(after.primary);
    await store.cluster.cluster.startNode('n1');
    const whole = await eventually('all three again', patienceMs, async () => {
      const status = await store.system.status.status();
      return status?.partitions[0]?.health === 'Healthy' ? status : null;
    });
    expect(whole.nodes.find((node) => node.nodeId === 'n1')?.incarnation).toBe(2);
    expect(whole.partitions[0]?.inSync).toContain('n1');
  }, 180_000);

  it('refuses when there is no primary, and never rejects', async () => {
    await Promise.all(['n1', 'n2', 'n3'].map((nodeId) => store.cluster.cluster.kill(nodeId)));
    const lonely = store.system.client(7);
    const completion = await lonely.execute({ f: 'write', key: 'x', value: '1' });
    expect(completion.kind === 'fail' && completion.why === 'refused').toBe(true);
    expect(await store.system.status.status()).toBeNull();
    expect(await store.system.peek('n1', 0, ['a'])).toBeNull();
  }, 180_000);
});
