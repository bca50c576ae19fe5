/** What a run does when something beside the store goes wrong in the middle of it, and when a loss is seen. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Operation } from '../../workloads/port.ts';
import type { RunRig } from '../testing/run-rig.ts';
import { reportOf, runAndReport, runRig, shortSchedule, shortSettings } from '../testing/run-rig.ts';
import type { ActiveRun } from './open-run.ts';
import { NodeWatch } from './node-watch.ts';
import { certify } from './run.ts';
import type { RunState } from './run-state.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-watch-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Loses one acknowledged write of the set soon after it was made, and lets the load read it. */
function losing(rig: RunRig): void {
  const execute = rig.cluster.store.execute.bind(rig.cluster.store);
  let victim: string | null = null;
  rig.cluster.store.execute = (operation: Operation, nowMs) => {
    const completion = execute(operation, nowMs);
    if (operation.f === 'write' && operation.key.startsWith('s') && completion.kind === 'ok' && victim === null) {
      victim = operation.key;
      rig.cluster.store.forget(victim);
    }
    return completion;
  };
}

const lossy = ['--workload', 'set', '--read-ratio', '0.8'];

describe('--on-loss', { timeout: 180_000 }, () => {
  it('continue goes on to the end', async () => {
    const rig = runRig();
    losing(rig);
    const { judged, report } = await runAndReport(await shortSettings(folder, ...lossy), rig.world);
    expect(judged.exitCode).toBe(1);
    expect(rig.printed.join('')).toContain('LOSS SEEN');
    const load = report.phases.find((phase) => phase.name === 'load');
    expect((load?.toMs ?? 0) - (load?.fromMs ?? 0)).toBeGreaterThan(4_500);
    expect(rig.cluster.disposed).toBe(1);
  });

  it('stop ends the load at once, heals, reads back, judges', async () => {
    const rig = runRig();
    losing(rig);
    const { judged, report } = await runAndReport(
      await shortSettings(folder, ...lossy, '--on-loss', 'stop', '--duration', '10m'),
      rig.world,
    );
    expect(judged.exitCode).toBe(1);
    const load = report.phases.find((phase) => phase.name === 'load');
    expect((load?.toMs ?? 0) - (load?.fromMs ?? 0)).toBeLessThan(120_000);
    expect(report.counts.readBack.done).toBe(report.counts.readBack.expected);
    expect(report.verdict.missing.join('\n')).toContain('stopped early');
    expect(rig.cluster.disposed).toBe(1);
  });

  it('freeze pauses every node and keeps the cluster as it was', async () => {
    const rig = runRig();
    losing(rig);
    const { folder: run } = await certify(
      await shortSettings(folder, ...lossy, '--on-loss', 'freeze', '--duration', '60s'),
      rig.world,
    );
    // Long enough for every fault of the schedule to have begun and ended.
    await new Promise((resolve) => setTimeout(resolve, shortSchedule.durationMs));
    const states = await Promise.all(rig.cluster.nodeIds().map((nodeId) => rig.cluster.state(nodeId)));
    expect(states.filter((state) => state.kind === 'running')).toEqual([]);
    expect(states.filter((state) => state.kind === 'paused').length).toBeGreaterThanOrEqual(4);
    expect(rig.cluster.disposed).toBe(0);
    expect(rig.printed.join('')).toContain('The cluster is kept; remove it with');
    expect(reportOf(run.path).verdict.kind).toBe('violated');
  });
});

describe('an engine that stops answering', () => {
  it('is the environment, and ends the run early', { timeout: 30_000 }, async () => {
    const at = { nowMs: 0 };
    let answers = true;
    const against = vi.fn();
    const state = {
      clock: { nowMs: () => at.nowMs },
      journal: { explains: () => [] },
      world: { logger: { warn: () => undefined, error: () => undefined } },
      against,
      print: vi.fn(),
    } as unknown as RunState;
    const active = {
      cluster: {
        logTail: async () => 'line one\nFATAL: out of luck\n',
        cluster: {
          nodeIds: () => ['n1', 'n2'],
          state: async () => {
            if (!answers) throw new Error('connect ENOENT');
            return { kind: 'running', since: 0, instance: 'a' };
          },
        },
      },
    } as unknown as ActiveRun;
    const watch = new NodeWatch(state, active);
    await watch.look();
    answers = false;
    at.nowMs = 30_000;
    await watch.look();
    at.nowMs = 50_000;
    await expect(watch.look()).rejects.toMatchObject({ name: 'EnvironmentError' });
    answers = true;
    await watch.look();
    expect(against).not.toHaveBeenCalled();
  });
});

describe('an engine that was restarted', () => {
  it('took the nodes with it: that is the environment, not the store', async () => {
    const against = vi.fn();
    let fallen: string | null = null;
    let dead = false;
    const meta = vi.fn(async () => undefined);
    const state = {
      ledger: { meta },
      clock: { nowMs: () => 0 },
      journal: { explains: () => [] },
      world: { logger: { warn: () => undefined, error: () => undefined } },
      against,
      print: vi.fn(),
    } as unknown as RunState;
    const cluster = {
      nodeIds: () => ['n1'],
      state: async () =>
        dead ? { kind: 'exited', instance: 'a', exitCode: 255, oomKilled: false } : { kind: 'running' },
      foundation: async () => fallen,
    };
    const active = { cluster: { logTail: async () => '', cluster } } as unknown as ActiveRun;
    const watch = new NodeWatch(state, active);
    await watch.look();
    dead = true;
    fallen = 'The containers that hold the network of n1 have ended.';
    await expect(watch.look()).rejects.toMatchObject({ name: 'EnvironmentError', message: fallen });
    expect(against).not.toHaveBeenCalled();
    // Its twin: the node alone died, and that is a finding.
    fallen = null;
    await watch.look();
    expect(against).toHaveBeenCalledOnce();
    expect(meta).toHaveBeenCalledExactlyOnceWith('crashed', ['n1']);
  });
});

describe('the machine held up in the middle of a run', { timeout: 120_000 }, () => {
  it('is named, is a gap, and the store is not blamed', async () => {
    const rig = runRig();
    const heldUpMs = 6_500;
    const running = runAndReport(await shortSettings(folder, '--duration', '12s'), rig.world);
    await expect.poll(() => rig.printed.join(''), { timeout: 60_000 }).toContain('Faults: 3 planned');
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    // Nothing in this process runs meanwhile, as when the machine is paused.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, heldUpMs);
    const { judged, report } = await running;
    expect(judged.verdict).toBe('inconclusive');
    expect(report.findings.total).toBe(0);
    expect(report.ledger.gaps).toHaveLength(1);
    const [, heldUpS] = /This machine did not run the harness for (\d+\.\d) s/.exec(report.limits.join('\n')) ?? [];
    // A busy machine may add to what we took; the gap is told in whole looks.
    expect(Number(heldUpS)).toBeGreaterThan(heldUpMs / 1_000 - 0.5);
  });
});
