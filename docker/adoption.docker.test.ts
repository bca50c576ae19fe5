import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findRun } from './adoption.ts';
import { DockerCluster } from './cluster.ts';
import { zarisPorts } from './containers.ts';
import { EnvironmentError } from './errors.ts';
import { cleanRun, sweep } from './sweep.ts';
import { engineForTests, testClock, tinyImage } from './testing/engine-for-tests.ts';
import type { NodeImage } from './image.ts';

const found = await engineForTests();
const title = found.kind === 'engine' ? 'adoption' : `adoption (skipped: ${found.why})`;

describe.skipIf(found.kind === 'none')(title, { timeout: 180_000 }, () => {
  const engine = found.kind === 'engine' ? found.engine : (null as never);
  const runId = `adopt-${process.pid}`;
  const logsDir = mkdtempSync(join(tmpdir(), 'zaris-adopt-'));
  let image: NodeImage;

  beforeAll(async () => {
    if (found.kind !== 'engine') return;
    image = await tinyImage(engine);
    // A harness that starts two nodes, freezes one, cuts a link, and is killed.
    const program = join(import.meta.dirname, 'testing', 'abandoned-run.ts');
    const child = spawn(process.execPath, [program, runId, image.name, image.base, logsDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }, 300_000);
  afterAll(async () => {
    if (found.kind === 'engine') await cleanRun(engine.docker, runId);
  });

  const options = {
    engine,
    clock: testClock,
    runId,
    environment: (nodeId: string) => ({ ZARIS_NODE_ID: nodeId }),
    logsDir,
  };

  it('takes over nodes, addresses, disks and links as they stand, and no sweep takes them then', async () => {
    const before = await findRun(engine.docker, runId, zarisPorts);
    if (before.kind !== 'found') throw new Error(before.why);
    const cluster = await DockerCluster.adopt(options);
    expect(cluster.nodeIds()).toEqual(['n1', 'n2']);
    expect(cluster.image).toBe(image.name);
    expect((await cluster.state('n1')).kind).toBe('paused');
    expect((await cluster.state('n2')).kind).toBe('running');
    expect((await cluster.probeLink('n2', 'n1')).outcome).toBe('unreachable');
    const swept = await sweep(engine.docker);
    expect(swept.swept.map((run) => run.runId)).not.toContain(runId);

    await cluster.setCuts([]);
    await cluster.resume('n1');
    // It may have been frozen before it listened for the first time.
    const reached = async (): Promise<string> => (await cluster.probeLink('n2', 'n1')).outcome;
    await expect.poll(reached, { timeout: 20_000 }).toBe('reachable');
    const address = before.run.nodes.find((node) => node.nodeId === 'n1');
    expect(cluster.addresses().get('n1')).toMatchObject({ ip: address?.ip, hostHttpPort: address?.hostHttpPort });
    await expect.poll(async () => (await cluster.probeNode('n1')).outcome, { timeout: 20_000 }).toBe('reachable');

    // The disk is the old one: the tiny server counts its starts there.
    await cluster.kill('n2');
    await cluster.startNode('n2');
    await expect.poll(async () => (await cluster.logs('n2')).includes('start 2'), { timeout: 20_000 }).toBe(true);
    await expect(DockerCluster.adopt(options)).rejects.toBeInstanceOf(EnvironmentError);
    expect(await cluster.addNode()).toBe('n3');
    await cluster.dispose();
    const after = await findRun(engine.docker, runId, zarisPorts);
    expect(after).toEqual({ kind: 'impossible', why: 'nothing of it is on the engine any more' });
  });
});
