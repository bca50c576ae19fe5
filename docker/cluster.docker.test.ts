import { readFileSync, readdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DockerCluster } from './cluster.ts';
import { labelNames } from './labels.ts';
import { execInContainer } from './netns.ts';
import type { Effect } from './node-life.ts';
import { engineForTests, lookedAt, testClock, tinyCluster, tinyImage } from './testing/engine-for-tests.ts';

const found = await engineForTests();
const title = found.kind === 'engine' ? 'Docker cluster' : `Docker cluster (skipped: ${found.why})`;
const both = (a: string, b: string) => [
  { from: a, to: b },
  { from: b, to: a },
];

describe.skipIf(found.kind === 'none')(title, { timeout: 60_000 }, () => {
  const effects: Effect[] = [];
  const logsDir = mkdtempSync(join(tmpdir(), 'zaris-cluster-test-'));
  let cluster: DockerCluster;

  beforeAll(async () => {
    if (found.kind === 'none') return;
    const image = await tinyImage(found.engine);
    cluster = await tinyCluster(found.engine, image, { logsDir, onEffect: (effect) => effects.push(effect) });
    for (const nodeId of cluster.nodeIds()) await healthy(nodeId);
  }, 300_000);

  afterAll(async () => {
    await cluster?.dispose();
  }, 60_000);

  async function healthy(nodeId: string): Promise<{ nodeId: string; starts: number }> {
    const port = cluster.addresses().get(nodeId)?.hostHttpPort;
    for (let attempt = 0; attempt < 600; attempt++) {
      try {
        const response = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(500) });
        return (await response.json()) as { nodeId: string; starts: number };
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    throw new Error(`${nodeId} does not answer`);
  }

  const link = (from: string, to: string) => lookedAt(() => cluster.probeLink(from, to));
  const packets = (from: string, to: string) => lookedAt(() => cluster.probePacket(from, to));

  it('reaches every node over its published port, and every link is open', async () => {
    expect(cluster.nodeIds()).toEqual(['n1', 'n2', 'n3']);
    for (const nodeId of cluster.nodeIds()) expect((await healthy(nodeId)).nodeId).toBe(nodeId);
    expect([
      await link('n1', 'n2'),
      await link('client', 'n1'),
      await link('n1', 'client'),
      await packets('n2', 'n3'),
    ]).toEqual(Array(4).fill('reachable'));
    expect((await cluster.exec('n1', ['hostname'])).stdout.trim()).toBe('n1');
  });

  it('cuts one direction only, and heals', async () => {
    await cluster.setCuts([{ from: 'n1', to: 'n2' }]);
    expect([
      await packets('n1', 'n2'),
      await packets('n2', 'n1'),
      await link('n2', 'n1'),
      await link('n1', 'n3'),
    ]).toEqual(['unreachable', 'reachable', 'unreachable', 'reachable']);
    await cluster.setCuts([]);
    expect([await packets('n1', 'n2'), await link('n1', 'n2')]).toEqual(['reachable', 'reachable']);
  });

  it('cuts at both ends', async () => {
    await cluster.setCuts([{ from: 'n1', to: 'n2' }]);
    if (found.kind === 'none') return;
    const rulesOf = async (nodeId: string) => {
      const [seat] = await found.engine.docker.listContainers({
        filters: {
          label: [`${labelNames.node}=${nodeId}`, `${labelNames.role}=seat`, `${labelNames.run}=${cluster.runId}`],
        },
      });
      return (await execInContainer(found.engine.docker, seat?.Id ?? '', ['iptables', '-w', '5', '-S'])).stdout;
    };
    const { n1, n2 } = { n1: cluster.addresses().get('n1')?.ip, n2: cluster.addresses().get('n2')?.ip };
    expect(await rulesOf('n1')).toContain(`-A ZARIS_CUT_OUT -d ${n2}/32 -j DROP`);
    expect(await rulesOf('n2')).toContain(`-A ZARIS_CUT_IN -s ${n1}/32 -j DROP`);
    await cluster.setCuts([]);
    expect(await rulesOf('n1')).not.toContain('DROP');
  });

  it('cuts the client off, and only it', async () => {
    await cluster.setCuts(both('client', 'n1'));
    expect([(await cluster.probeNode('n1')).outcome, await link('client', 'n1'), await link('n1', 'n2')]).toEqual([
      'unreachable',
      'unreachable',
      'reachable',
    ]);
    await cluster.setCuts([]);
    expect((await cluster.probeNode('n1')).outcome).toBe('reachable');
  });

  it('keeps a node that restarts inside a cut cut off from its first packet on', async () => {
    await cluster.setCuts(both('n1', 'n2'));
    await cluster.kill('n1');
    expect(await packets('n2', 'n1')).toBe('unreachable');
    await cluster.startNode('n1');
    expect([await packets('n1', 'n2'), await packets('n2', 'n1'), await link('n3', 'n1')]).toEqual([
      'unreachable',
      'unreachable',
      'reachable',
    ]);
    await cluster.wipe('n1');
    await cluster.startNode('n1');
    expect([await packets('n1', 'n2'), await link('n2', 'n1')]).toEqual(['unreachable', 'unreachable']);
    await cluster.setCuts([]);
    expect(await link('n1', 'n2')).toBe('reachable');
  });

  it('pauses without the link going down, heals cuts of a paused node without exec, and kills it while paused', async () => {
    await healthy('n2');
    await cluster.pause('n2');
    await cluster.pause('n2');
    expect([(await cluster.state('n2')).kind, (await cluster.probeNode('n2')).outcome, await link('n1', 'n2')]).toEqual(
      ['paused', 'unreachable', 'reachable'],
    );
    await cluster.setCuts(both('n1', 'n2'));
    expect(await link('n1', 'n2')).toBe('unreachable');
    await cluster.setCuts([]);
    expect([await link('n1', 'n2'), (await cluster.state('n2')).kind]).toEqual(['reachable', 'paused']);
    expect((await cluster.exec('n2', ['true'])).exitCode).toBe(-1);
    await cluster.resume('n2');
    await cluster.resume('n2');
    await healthy('n2');
    await cluster.pause('n2');
    await cluster.kill('n2');
    await cluster.kill('n2');
    expect(await cluster.state('n2')).toMatchObject({ kind: 'exited', exitCode: 137, oomKilled: false });
    await expect(cluster.pause('n2')).rejects.toThrow('n2 is not running');
    await cluster.startNode('n2');
    await cluster.startNode('n2');
    expect((await healthy('n2')).starts).toBe(2);
  });

  it('keeps address and ports over a restart and a wipe, the disk only over the restart', async () => {
    const before = cluster.addresses().get('n3');
    const instance = (await cluster.state('n3')) as { instance: string };
    await cluster.stop('n3', 5_000);
    expect(await cluster.state('n3')).toMatchObject({ kind: 'exited', exitCode: 0, instance: instance.instance });
    await cluster.startNode('n3');
    expect((await healthy('n3')).starts).toBe(2);
    expect(((await cluster.state('n3')) as { instance: string }).instance).not.toBe(instance.instance);
    await cluster.wipe('n3');
    expect((await cluster.state('n3')).kind).toBe('absent');
    await cluster.startNode('n3');
    expect([(await healthy('n3')).starts, cluster.addresses().get('n3')]).toEqual([1, before]);
  });

  it('saves the log of each incarnation apart', async () => {
    const files = readdirSync(logsDir);
    expect(files).toContain('n3-1.log');
    const first = readFileSync(join(logsDir, 'n3-1.log'), 'utf8');
    expect(first).toContain('tiny n3 start 1');
    expect(first).toContain('tiny n3 stops');
    const second = readFileSync(join(logsDir, 'n3-2.log'), 'utf8');
    expect(second).toContain('tiny n3 start 2');
    expect(second).not.toContain('start 1');
    expect(await cluster.logs('n3')).toContain('tiny n3 start 1');
  });

  it('tells when things took effect, in order', () => {
    const ofN2 = effects
      .filter((effect) => effect.nodeId === 'n2' && effect.kind !== 'links')
      .map((effect) => effect.kind);
    expect(ofN2).toEqual(['started', 'paused', 'resumed', 'paused', 'killed', 'started']);
    const times = effects.map((effect) => effect.atMs);
    expect(Math.max(...times)).toBeLessThanOrEqual(testClock.nowMs());
  });

  it('adds a node and removes it, and refuses what does not exist', async () => {
    expect(await cluster.addNode()).toBe('n4');
    await cluster.setCuts([{ from: 'n4', to: 'n1' }]);
    expect(await packets('n4', 'n1')).toBe('unreachable');
    await cluster.removeNode('n4');
    await cluster.removeNode('n4');
    expect([cluster.nodeIds(), (await cluster.state('n4')).kind]).toEqual([['n1', 'n2', 'n3'], 'absent']);
    await expect(cluster.setCuts([{ from: 'n4', to: 'n1' }])).rejects.toThrow('There is no node n4');
    await expect(cluster.addNode()).resolves.toBe('n5');
  });

  it('leaves nothing behind, and may be disposed of twice', async () => {
    await cluster.pause('n1');
    await cluster.dispose();
    await cluster.dispose();
    if (found.kind === 'none') return;
    const { docker } = found.engine;
    const filters = { label: [`${labelNames.run}=${cluster.runId}`] };
    expect(await docker.listContainers({ all: true, filters })).toEqual([]);
    expect(await docker.listNetworks({ filters })).toEqual([]);
    expect((await docker.listVolumes({ filters })).Volumes ?? []).toEqual([]);
  });
});
