import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Completion, StoreClient, Version } from '../../../workloads/port.ts';
import { compareVersions } from '../../../workloads/port.ts';
import { eventually, hasProgram, openStoreCluster, type StoreCluster } from '../../testing/store-cluster.ts';
import { etcd } from './etcd.ts';

/** Only what never comes takes so long. */
const patienceMs = 60_000;
const isHere = hasProgram('etcd');

function versionOf(completion: Completion): Version {
  if (completion.kind === 'info' || completion.version === undefined || completion.version === null)
    throw new Error(`no version in ${JSON.stringify(completion)}`);
  return completion.version;
}

describe.skipIf(!isHere)('etcd (etcd needed)', () => {
  let store: StoreCluster;
  let client: StoreClient;

  beforeAll(async () => {
    store = await openStoreCluster(etcd, 3);
    client = store.system.client(0);
  }, 180_000);
  afterAll(() => store?.[Symbol.asyncDispose]());

  it('orders a key by its revisions: write, read, compare-and-set, delete, create', async () => {
    expect(await client.execute({ f: 'read', key: 'a' })).toMatchObject({ kind: 'ok', value: null, version: null });
    const first = versionOf(await client.execute({ f: 'write', key: 'a', value: 'é 1' }));
    const read = await client.execute({ f: 'read', key: 'a' });
    expect(read).toMatchObject({ kind: 'ok', value: 'é 1', version: first });
    expect(await client.execute({ f: 'create', key: 'a', value: '2' })).toMatchObject({
      kind: 'fail',
      why: 'condition',
      version: first,
    });
    const second = versionOf(await client.execute({ f: 'cas', key: 'a', value: '2', expected: first }));
    expect(compareVersions(second, first)).toBeGreaterThan(0);
    expect(await client.execute({ f: 'read', key: 'a' })).toMatchObject({ value: '2', version: second });
    expect(await client.execute({ f: 'cas', key: 'a', value: '3', expected: first })).toMatchObject({
      kind: 'fail',
      why: 'condition',
      version: second,
    });
    expect(await client.execute({ f: 'delete', key: 'a', expected: first })).toMatchObject({
      kind: 'fail',
      why: 'condition',
      version: second,
    });
    const gone = versionOf(await client.execute({ f: 'delete', key: 'a' }));
    expect(compareVersions(gone, second)).toBeGreaterThan(0);
    expect(await client.execute({ f: 'delete', key: 'a' })).toMatchObject({ kind: 'fail', why: 'condition' });
    expect(await client.execute({ f: 'create', key: 'a', value: '4' })).toMatchObject({ kind: 'ok' });
  });

  it('does not do what it does not have, and says so', async () => {
    expect(await client.execute({ f: 'add', key: 'n', delta: 1 })).toMatchObject({ kind: 'fail', why: 'invalid' });
    expect(await client.execute({ f: 'write', key: 't', value: '1', ttlMs: 50 })).toMatchObject({
      kind: 'fail',
      why: 'invalid',
    });
  });

  it('shows every member its own copy', async () => {
    const version = versionOf(await client.execute({ f: 'write', key: 'copied', value: 'x' }));
    // A copy that follows may be a moment behind.
    const copies = await eventually('every copy', patienceMs, async () => {
      const peeked = await Promise.all(
        ['n1', 'n2', 'n3'].map((nodeId) => store.system.peek(nodeId, 0, ['copied', 'none'])),
      );
      return peeked.every((copy) => copy?.keys[0]?.value !== null) ? peeked : null;
    });
    for (const copy of copies)
      expect(copy?.keys).toEqual([
        { key: 'copied', value: 'x', version },
        { key: 'none', value: null, version: null },
      ]);
    expect(copies.filter((copy) => copy?.role === 'primary')).toHaveLength(1);
    expect(await store.system.facts()).toMatchObject({
      replicationFactor: 3,
      minInSync: 2,
      versions: [{ name: 'etcd' }],
    });
  });

  it('follows the leader over a kill, and the killed member comes back as another incarnation', async () => {
    const before = (await store.system.status.status())?.partitions[0];
    const killed = before?.primary as string;
    await store.cluster.cluster.kill(killed);
    const after = await eventually('another leader', patienceMs, async () => {
      const partition = (await store.system.status.status())?.partitions[0];
      return partition !== undefined && partition.primary !== killed && partition.serving ? partition : null;
    });
    expect(after.term).toBeGreaterThan(before?.term ?? 0);
    const other = await eventually('an acknowledged write', patienceMs, async () => {
      const completion = await client.execute({ f: 'write', key: 'later', value: '1' });
      return completion.kind === 'ok' ? completion : null;
    });
    expect(other.node).not.toBe(killed);
    await store.cluster.cluster.startNode(killed);
    const whole = await eventually('healthy', patienceMs, async () => {
      const status = await store.system.status.status();
      return status?.partitions[0]?.health === 'Healthy' ? status : null;
    });
    expect(whole.nodes.find((node) => node.nodeId === killed)?.incarnation).toBe(2);
  }, 180_000);

  it('acknowledges nothing without a majority, and has no status then', async () => {
    await Promise.all(['n1', 'n2'].map((nodeId) => store.cluster.cluster.pause(nodeId)));
    const completion = await client.execute({ f: 'write', key: 'alone', value: '1' });
    expect(completion.kind).toBe('info');
    expect(await store.system.status.status()).toBeNull();
    await Promise.all(['n1', 'n2'].map((nodeId) => store.cluster.cluster.resume(nodeId)));
  }, 180_000);

  it('refuses what it could not send', async () => {
    await Promise.all(['n1', 'n2', 'n3'].map((nodeId) => store.cluster.cluster.kill(nodeId)));
    const kinds = await eventually('refused', patienceMs, async () => {
      const completion = await client.execute({ f: 'write', key: 'x', value: '1' });
      return completion.kind === 'fail' && completion.why === 'refused' ? completion : null;
    });
    expect(kinds.error).toMatch(/No connection established/);
  }, 180_000);
});
