import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LinkRule } from '../chaos/ports.ts';
import type { DockerCluster } from './cluster.ts';
import { engineForTests, lookedAt, tinyCluster, tinyImage } from './testing/engine-for-tests.ts';

const found = await engineForTests();
const title = found.kind === 'engine' ? 'Docker faults' : `Docker faults (skipped: ${found.why})`;
const bothWays = (rule: (from: string, to: string) => LinkRule): LinkRule[] => [rule('n1', 'n2'), rule('n2', 'n1')];

describe.skipIf(found.kind === 'none')(title, { timeout: 60_000 }, () => {
  let cluster: DockerCluster;

  beforeAll(async () => {
    if (found.kind === 'none') return;
    const image = await tinyImage(found.engine);
    cluster = await tinyCluster(found.engine, image, { nodeCount: 2, clockFaults: true });
    for (const nodeId of cluster.nodeIds()) await answers(nodeId);
  }, 300_000);

  afterAll(async () => {
    await cluster?.dispose();
  }, 60_000);

  async function answers(nodeId: string): Promise<void> {
    for (let attempt = 0; attempt < 1_200; attempt++) {
      if ((await cluster.probeNode(nodeId)).outcome === 'reachable') return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${nodeId} does not answer`);
  }
  const link = (from: string, to: string) => lookedAt(() => cluster.probeLink(from, to));
  const effect = async (rule: LinkRule) => (await cluster.probeRule(rule)).effect;

  it('resets connections between nodes and with the client, and heals', async () => {
    const rules = bothWays((from, to) => ({ kind: 'reset', from, to }));
    await cluster.setLinkRules(rules);
    const probe = await cluster.probeLink('n1', 'n2');
    expect([probe.outcome, probe.evidence]).toEqual(['unreachable', 'n1 to n2: refused, though somebody listens']);
    expect(await link('client', 'n2')).toBe('reachable');
    await cluster.setLinkRules([
      { kind: 'reset', from: 'client', to: 'n1' },
      { kind: 'reset', from: 'n1', to: 'client' },
    ]);
    expect([
      await link('n1', 'n2'),
      await link('client', 'n1'),
      await link('n1', 'client'),
      await link('n2', 'client'),
    ]).toEqual(['reachable', 'unreachable', 'unreachable', 'reachable']);
    await cluster.setLinkRules([]);
    expect([await link('client', 'n1'), await link('n1', 'client')]).toEqual(['reachable', 'reachable']);
  });

  it.each([
    ['loss between nodes', { kind: 'loss', from: 'n1', to: 'n2', percent: 30 }],
    ['loss from the client', { kind: 'loss', from: 'client', to: 'n1', percent: 30 }],
    ['loss to the client', { kind: 'loss', from: 'n1', to: 'client', percent: 30 }],
    ['a rate between nodes', { kind: 'rate', from: 'n1', to: 'n2', bytesPerSecond: 100_000 }],
    ['a rate to the client', { kind: 'rate', from: 'n1', to: 'client', bytesPerSecond: 100_000 }],
  ] as [string, LinkRule][])('sees %s come and go, and in one direction only', async (_what, rule) => {
    const back = { ...rule, from: rule.to, to: rule.from } as LinkRule;
    expect(await effect(rule)).toBe('absent');
    await cluster.setLinkRules([rule]);
    expect([await effect(rule), await effect(back)]).toEqual(['seen', 'absent']);
    await cluster.setLinkRules([]);
    expect(await effect(rule)).toBe('absent');
  });

  it('tells the senders into one receiver apart, asked all at once', async () => {
    const rules = (['client', 'n2'] as const).map((from): LinkRule => ({ kind: 'loss', from, to: 'n1', percent: 30 }));
    await cluster.setLinkRules(rules);
    expect(await Promise.all(rules.map((rule) => effect(rule)))).toEqual(['seen', 'seen']);
    await cluster.setLinkRules([rules[1] as LinkRule]);
    expect(await Promise.all(rules.map((rule) => effect(rule)))).toEqual(['absent', 'seen']);
    await cluster.setLinkRules([]);
  });

  it('refuses to delay packets', async () => {
    await expect(
      cluster.setLinkRules([{ kind: 'delay', from: 'n1', to: 'n2', delayMs: 50, jitterMs: 0 }]),
    ).rejects.toThrow('latency');
    await cluster.setLinkRules([]);
    expect((await cluster.unsupported()).get('latency')).toBeDefined();
    expect((await cluster.unsupported()).get('clock')).toBeUndefined();
  });

  it("moves one node's wall clock and nothing else, over a restart and a wipe, also while it is paused", async () => {
    const near = async (nodeId: string, offsetMs: number) => {
      // A look that a busy machine held up is off by as much, and is looked again.
      const farthest = async (): Promise<number> => {
        const seen = await cluster.probeClock(nodeId);
        return Math.max(Math.abs(seen.wallOffsetMs - offsetMs), Math.abs(seen.monotonicOffsetMs));
      };
      await expect.poll(farthest).toBeLessThan(500);
    };
    await near('n1', 0);
    await cluster.setClockOffset('n1', 3_600_000);
    await near('n1', 3_600_000);
    await near('n2', 0);
    await cluster.kill('n1');
    await cluster.startNode('n1');
    await near('n1', 3_600_000);
    await cluster.wipe('n1');
    await cluster.startNode('n1');
    await near('n1', 3_600_000);
    await cluster.pause('n1');
    await cluster.setClockOffset('n1', -5_500);
    await cluster.resume('n1');
    await near('n1', -5_500);
    await cluster.setClockOffset('n1', 0);
    await near('n1', 0);
  });

  it('has the kernel kill a node for memory, and lets it start again without a limit', async () => {
    await cluster.oom('n2');
    expect(await cluster.state('n2')).toMatchObject({ kind: 'exited', oomKilled: true });
    await cluster.startNode('n2');
    await answers('n2');
    expect(await cluster.state('n2')).toMatchObject({ kind: 'running' });
    const grown = await cluster.exec('n2', ['node', '-e', 'console.log(Buffer.alloc(3e8, 1).length)'], 20_000);
    expect(grown).toMatchObject({ exitCode: 0, stdout: '300000000\n' });
  });
});
