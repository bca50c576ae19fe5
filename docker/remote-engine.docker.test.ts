import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DockerCluster } from './cluster.ts';
import type { Effect } from './node-life.ts';
import { engineForTests, lookedAt, tinyCluster, tinyImage } from './testing/engine-for-tests.ts';

const found = await engineForTests();
const title =
  found.kind === 'engine' ? 'Docker cluster seen as remote' : `Docker cluster seen as remote (skipped: ${found.why})`;

/** An engine whose processes this host cannot see: rules by exec in the seats, signals through the engine. */
describe.skipIf(found.kind === 'none')(title, { timeout: 60_000 }, () => {
  const effects: Effect[] = [];
  let cluster: DockerCluster;

  beforeAll(async () => {
    if (found.kind === 'none') return;
    const image = await tinyImage(found.engine);
    const engine = { ...found.engine, local: false };
    cluster = await tinyCluster(engine, image, { nodeCount: 2, onEffect: (effect) => effects.push(effect) });
  }, 300_000);

  afterAll(async () => {
    await cluster?.dispose();
  }, 60_000);

  const link = (from: string, to: string) => lookedAt(() => cluster.probeLink(from, to));

  it('cuts, keeps a restarted node cut off, and heals, through the seats alone', async () => {
    expect([cluster.netnsMethod, await link('n1', 'n2')]).toEqual(['exec', 'reachable']);
    await cluster.setCuts([{ from: 'n1', to: 'n2' }]);
    expect(await link('n1', 'n2')).toBe('unreachable');
    await cluster.kill('n1');
    await cluster.startNode('n1');
    expect(await link('n2', 'n1')).toBe('unreachable');
    await cluster.pause('n2');
    await cluster.setCuts([]);
    expect(await link('n1', 'n2')).toBe('reachable');
  });

  it('kills what is frozen, by the engine', async () => {
    await cluster.pause('n2');
    await cluster.kill('n2');
    expect(await cluster.state('n2')).toMatchObject({ kind: 'exited', exitCode: 137 });
    expect(effects.filter((effect) => effect.kind === 'killed').map((effect) => effect.via)).toEqual([
      'engine',
      'engine',
    ]);
  });

  it('says what it cannot do or see', async () => {
    expect((await cluster.unsupported()).get('oom')).toContain('only root beside the engine');
    expect((await cluster.probePacket('n1', 'n2')).outcome).toBe('unknown');
    expect((await cluster.probeLink('n1', 'client')).outcome).toBe('unknown');
  });
});
