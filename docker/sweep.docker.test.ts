import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { labelNames } from './labels.ts';
import { cleanRun, keepRun, sweep } from './sweep.ts';
import type { SweepReport } from './sweep.ts';
import { engineForTests, tinyCluster, tinyImage } from './testing/engine-for-tests.ts';
import type { NodeImage } from './image.ts';

const found = await engineForTests();
const title = found.kind === 'engine' ? 'sweep' : `sweep (skipped: ${found.why})`;

describe.skipIf(found.kind === 'none')(title, { timeout: 120_000 }, () => {
  const docker = found.kind === 'engine' ? found.engine.docker : (null as never);
  const left: string[] = [];
  let image: NodeImage;

  beforeAll(async () => {
    if (found.kind === 'engine') image = await tinyImage(found.engine);
  }, 300_000);

  afterAll(async () => {
    for (const runId of left) await cleanRun(docker, runId);
  }, 60_000);

  /** Starts a cluster in a process of its own, which then pauses a node, cuts a link and is killed with -9. */
  async function abandonedRun(runId: string): Promise<void> {
    left.push(runId);
    const logs = mkdtempSync(join(tmpdir(), 'zaris-sweep-'));
    const script = join(import.meta.dirname, 'testing', 'abandoned-run.ts');
    const child = spawn(process.execPath, [script, runId, image.name, image.base, logs], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    expect(line.toString()).toContain('ready');
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async function things(runId: string): Promise<readonly [containers: number, networks: number, volumes: number]> {
    const filters = { label: [`${labelNames.run}=${runId}`] };
    const volumes = await docker.listVolumes({ filters });
    return [
      (await docker.listContainers({ all: true, filters })).length,
      (await docker.listNetworks({ filters })).length,
      (volumes.Volumes ?? []).length,
    ];
  }

  const sweptOf = (report: SweepReport, runId: string) => report.swept.find((run) => run.runId === runId);

  it('removes what a killed harness left, paused nodes too, and leaves the living and the kept alone', async () => {
    if (found.kind === 'none') return;
    await using living = await tinyCluster(found.engine, image, { nodeCount: 1 });
    const [dead, kept] = [`dead-${process.pid}`, `kept-${process.pid}`];
    await Promise.all([abandonedRun(dead), abandonedRun(kept)]);
    await keepRun(docker, kept);
    expect(await things(dead)).toEqual([4, 1, 2]);

    const report = await sweep(docker);
    expect(sweptOf(report, dead)).toMatchObject({ containers: 4, networks: 1, volumes: 2, problems: [] });
    expect(sweptOf(report, dead)?.proof).toMatch(/is gone/);
    expect(await things(dead)).toEqual([0, 0, 0]);

    expect(report.spared.find((run) => run.runId === kept)?.why).toBe('kept');
    expect(await things(kept)).toEqual([4, 1, 3]);
    expect(report.spared.find((run) => run.runId === living.runId)?.why).toContain('is alive');
    expect((await living.state('n1')).kind).toBe('running');

    expect(await cleanRun(docker, kept)).toMatchObject({ containers: 4, networks: 1, volumes: 3, problems: [] });
    expect(await things(kept)).toEqual([0, 0, 0]);
  });

  it('leaves alone what has only part of our labels, and what is not ours', async () => {
    if (found.kind === 'none') return;
    const runId = `partial-${process.pid}`;
    left.push(runId);
    const name = `not-ours-${process.pid}`;
    await docker.createVolume({ Name: `zaris-${runId}`, Labels: { [labelNames.run]: runId } });
    await docker.createVolume({ Name: name });
    const report = await sweep(docker);
    expect(report.spared.find((run) => run.runId === runId)?.why).toBe('its labels are not complete');
    await docker.getVolume(name).remove();
    await cleanRun(docker, runId);
    expect(await things(runId)).toEqual([0, 0, 0]);
  });
});
