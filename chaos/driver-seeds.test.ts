import { describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { startChaos } from './driver.ts';
import { defaultFaults, expandSchedule } from './expand.ts';
import type { Schedule } from './schedule.ts';
import { storiesOf, summarize } from './summary.ts';
import { play, world } from './testing/world.ts';

describe('seeded runs', () => {
  const planned = (seed: number, level: 'standard' | 'brutal', durationMs = 120_000): Schedule =>
    expandSchedule({ seed, durationMs, level, faults: defaultFaults(level), nodeCount: 5 }, new Prng(seed));

  for (const seed of [1, 2, 3, 4, 5, 6]) {
    it(`two minutes at standard, seed ${seed}: dense enough, nothing lost, everything healed`, async () => {
      const made = world(planned(seed, 'standard'));
      const outcome = await play(made);
      const summary = summarize(storiesOf(made.records));
      expect(made.cluster.lostPartitions()).toEqual([]);
      expect(outcome.overshoots).toEqual([]);
      expect(outcome.isHealed).toBe(true);
      expect(made.cluster.isUnhurt()).toBe(true);
      expect(summary.confirmed).toBeGreaterThanOrEqual(6);
      expect(summary.healVerified).toBe(summary.confirmed);
      expect(summary.neverConfirmed).toEqual([]);
      expect(summary.overlapShare).toBeGreaterThanOrEqual(0.25);
      expect(made.cluster.failovers).toBeGreaterThanOrEqual(3);
      for (const name of ['kill', 'pause', 'isolate']) {
        expect(
          summary.matrix.some((cell) => cell.fault === name && cell.confirmed > 0),
          name,
        ).toBe(true);
      }
    });
  }

  for (const [seed, nodeCount, replicationFactor] of [
    [11, 5, 3],
    [12, 3, 3],
    [13, 5, 2],
    [14, 7, 3],
    [15, 3, 2],
    [16, 5, 1],
  ] as const) {
    it(`brutal, seed ${seed}, ${nodeCount} nodes, rf ${replicationFactor}: nothing lost`, async () => {
      const made = world(planned(seed, 'brutal', 240_000), {
        nodeCount,
        replicationFactor,
        policy: { mayStall: true },
      });
      const outcome = await play(made);
      expect(made.cluster.lostPartitions()).toEqual([]);
      expect(outcome.overshoots).toEqual([]);
      expect(outcome.isHealed).toBe(true);
    });
  }

  it('thirty brutal minutes: every kind confirmed, every heal verified, nothing lost', async () => {
    const made = world(planned(21, 'brutal', 1_800_000), { policy: { mayStall: true } });
    const outcome = await play(made);
    const summary = summarize(storiesOf(made.records));
    expect(summary.neverConfirmed).toEqual([]);
    expect(summary.healVerified).toBe(summary.confirmed);
    expect(summary.confirmed).toBeGreaterThan(250);
    expect(made.cluster.lostPartitions()).toEqual([]);
    expect(outcome.overshoots).toEqual([]);
    expect(outcome.isHealed).toBe(true);
  }, 60_000);

  it('heals everything on stop, at any moment', async () => {
    const prng = new Prng(77);
    for (let round = 0; round < 25; round++) {
      const made = world(planned(round, 'brutal', 60_000));
      const run = startChaos(made.options);
      made.time.at(prng.between(0, 55_000), () => void run.stop('interrupted'));
      const outcome = await made.time.run(run.done);
      expect(outcome.isHealed, `round ${round}`).toBe(true);
      expect(made.cluster.isUnhurt(), `round ${round}`).toBe(true);
      expect(made.cluster.lostPartitions()).toEqual([]);
    }
  });

  it('plans in the order of the schedule, the same on every cluster', async () => {
    const schedule = planned(5, 'standard');
    const plans = [];
    for (const catchUpMs of [200, 4_000]) {
      const made = world(schedule, { catchUpMs });
      await play(made);
      plans.push(made.records.filter((record) => record.step === 'planned').map((record) => record.faultId));
    }
    expect(plans[0]).toEqual(schedule.events.map((event) => event.id));
    expect(plans[1]).toEqual(plans[0]);
  });
});
