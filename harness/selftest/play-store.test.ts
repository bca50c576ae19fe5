/** Playing a broken store until it is caught, on the run loop with a store in memory: what a run comes to is read from its files. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tailCut } from '../../sim/broken/wrong-rules.ts';
import type { Operation } from '../../workloads/port.ts';
import { certify } from '../run/run.ts';
import type { RunSettings } from '../settings.ts';
import { runRig, type RunRig, shortSchedule } from '../testing/run-rig.ts';
import { type PlayOptions, playStore } from './play-store.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-selftest-'));
  writeFileSync(join(folder, 'schedule.json'), JSON.stringify(shortSchedule));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Loses one acknowledged write for good. */
function loseOne(rig: RunRig): void {
  const execute = rig.cluster.store.execute.bind(rig.cluster.store);
  let isLost = false;
  rig.cluster.store.execute = (operation: Operation, nowMs) => {
    const completion = execute(operation, nowMs);
    if (!isLost && operation.f === 'write' && operation.key.startsWith('s') && completion.kind === 'ok') {
      isLost = true;
      rig.cluster.store.forget(operation.key);
    }
    return completion;
  };
}

/** A node ends by itself when the load has begun. */
function crash(rig: RunRig): void {
  const { store } = rig.cluster;
  const execute = store.execute.bind(store);
  let isDead = false;
  store.execute = (operation: Operation, nowMs) => {
    if (!isDead && operation.f === 'write' && operation.key.startsWith('s')) {
      isDead = true;
      void rig.cluster.kill('n5');
    }
    return execute(operation, nowMs);
  };
}

/** Options whose runs last five seconds; each run's store goes wrong as the next of `wrongs` says. */
function options(totalMs: number, ...wrongs: readonly ((rig: RunRig) => void)[]): PlayOptions & { seeds: number[] } {
  const seeds: number[] = [];
  return {
    seeds,
    store: tailCut,
    cluster: 'docker',
    totalMs,
    firstSeed: 5,
    resultsDir: join(folder, 'results'),
    isBroken: true,
    isOver: () => false,
    nowMs: () => performance.now(),
    certify: async (settings: RunSettings) => {
      const rig = runRig();
      wrongs[seeds.length]?.(rig);
      seeds.push(settings.seed);
      return certify(
        {
          ...settings,
          durationMs: 5_000,
          scheduleFile: join(folder, 'schedule.json'),
          sessions: 8,
          ratePerSecond: 400,
        },
        rig.world,
      );
    },
  };
}

describe('a broken store on real nodes', { timeout: 180_000 }, () => {
  it('is played until a run catches it, with a new seed each time; counts are those of all runs', async () => {
    const play = options(150_000, () => undefined, loseOne);
    const row = await playStore(play);
    expect(row).toMatchObject({
      name: 'tail-cut-on-promotion',
      outcome: { kind: 'caught', finding: { kind: 'lost', rule: 'interval' } },
      lastVerdict: 'violated',
      runs: 2,
    });
    expect(play.seeds).toEqual([5, 6]);
    // Three in the first run; the second ended when its loss was seen.
    expect(row.confirmedFaults).toBeGreaterThanOrEqual(3);
    expect(row.operations).toBeGreaterThan(row.acknowledged);
    expect(row.acknowledged).toBeGreaterThan(500);
  });

  it('is missed when its time is over, and says how the last run ended', async () => {
    const row = await playStore(options(30_000));
    expect(row).toMatchObject({ outcome: { kind: 'missed' }, runs: 1 });
    expect(row.outcome).toHaveProperty('why', expect.stringMatching(/^the run ended (certified|inconclusive)/));
  });

  it('is not caught by a run in which a node crashed, though a write was lost', async () => {
    const row = await playStore(
      options(30_000, (rig) => {
        loseOne(rig);
        crash(rig);
      }),
    );
    expect(row).toMatchObject({
      lastVerdict: 'violated',
      outcome: { kind: 'missed', why: expect.stringContaining('n5 crashed') },
    });
  });

  it('is not played again after a signal, nor where the machine is to blame', async () => {
    expect(await playStore({ ...options(30_000), isOver: () => true })).toMatchObject({ runs: 0, runId: null });
    const row = await playStore(
      options(300_000, (rig) => {
        rig.world.openCluster = async () => {
          const { EnvironmentError } = await import('../../docker/errors.ts');
          throw new EnvironmentError('There is no engine.');
        };
      }),
    );
    expect(row).toMatchObject({ runs: 1, lastVerdict: 'environment', operations: 0, outcome: { kind: 'missed' } });
  });
});
