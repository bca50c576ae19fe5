import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { defaultFaults, expandSchedule } from './expand.ts';
import { formatSchedule, parseSchedule } from './schedule-file.ts';
import type { Schedule } from './schedule.ts';
import { shrinkSchedule, type ShrinkOptions, withEvents } from './shrink.ts';
import { scenario } from './testing/world.ts';

const kills = (count: number): Schedule =>
  scenario(
    Array.from({ length: count }, (_, index) => ({
      at: 1_000 * (index + 1),
      fault: 'kill',
      target: 'n1',
      durationMs: 4_000,
    })),
    120_000,
  );
const ids = (schedule: Schedule | null): string[] | undefined => schedule?.events.map((event) => event.id);
const shrink = (schedule: Schedule, fails: (one: Schedule) => boolean, rest: Partial<ShrinkOptions> = {}) =>
  shrinkSchedule(schedule, { maxTrials: 10_000, fails: async (one) => fails(one), ...rest });
const needs =
  (...wanted: string[]) =>
  (schedule: Schedule): boolean =>
    wanted.every((id) => schedule.events.some((event) => event.id === id));

describe('shrinking a schedule', () => {
  it('leaves exactly the events that are needed, whichever they are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 24 }),
        fc.uniqueArray(fc.nat(), { maxLength: 4 }),
        async (count, picks) => {
          const wanted = [...new Set(picks.map((pick) => `e${(pick % count) + 1}`))];
          const { schedule, isMinimal } = await shrink(kills(count), needs(...wanted));
          expect(ids(schedule)?.toSorted()).toEqual(wanted.toSorted());
          expect(isMinimal).toBe(true);
        },
      ),
    );
  });

  it('one of 64 is found in few trials', async () => {
    const { schedule, trials } = await shrink(kills(64), needs('e41'));
    expect(ids(schedule)).toEqual(['e41']);
    expect(trials).toBeLessThan(40);
  });

  it('shortens faults as far as it still fails, and then the run', async () => {
    const long = (schedule: Schedule): boolean =>
      (schedule.events.find((one) => one.id === 'e3')?.durationMs ?? 0) >= 900;
    const { schedule } = await shrink(kills(5), long);
    expect(ids(schedule)).toEqual(['e3']);
    expect(schedule?.events[0]?.durationMs).toBe(1_000);
    expect(schedule).toMatchObject({ durationMs: 16_000, healFromMs: 6_000 });
    expect(parseSchedule(formatSchedule(schedule as Schedule))).toEqual(schedule);
  });

  it('an event goes with its trigger, and is kept with it', async () => {
    const chained = scenario([
      { id: 'a', at: 1_000, fault: 'pause', target: 'n1' },
      { id: 'b', after: { fault: 'a' }, fault: 'kill', target: 'n2' },
      { id: 'c', after: { fault: 'b', stage: 'healed' }, fault: 'kill', target: 'n3' },
      { id: 'd', at: 9_000, fault: 'kill', target: 'n4' },
    ]);
    expect(ids(withEvents(chained, chained.events.slice(1)))).toEqual(['d']);
    const { schedule } = await shrink(chained, (one) => {
      expect(() => parseSchedule(formatSchedule(one))).not.toThrow();
      return needs('c')(one);
    });
    expect(ids(schedule)).toEqual(['a', 'b', 'c']);
  });

  it('what does not fail is not shrunk; what never needed a fault ends empty', async () => {
    expect(await shrink(kills(8), () => false)).toEqual({ schedule: null, trials: 1, isMinimal: true });
    expect(ids((await shrink(kills(8), () => true)).schedule)).toEqual([]);
  });

  it('never returns what has not failed, also when it is cut short or the failure is flaky', async () => {
    const prng = new Prng(5);
    for (const maxTrials of [0, 1, 2, 5, 12, 40]) {
      const failed = new Set<string>();
      const result = await shrink(
        kills(20),
        (one) => {
          const hit = needs('e7', 'e15')(one) && prng.chance(0.7);
          if (hit) failed.add(formatSchedule(one));
          return hit;
        },
        { maxTrials },
      );
      expect(result.trials).toBeLessThanOrEqual(maxTrials);
      if (result.schedule !== null) expect(failed.has(formatSchedule(result.schedule))).toBe(true);
    }
  });

  it('stops at a signal and says that it is not done', async () => {
    const stop = new AbortController();
    let count = 0;
    const result = await shrinkSchedule(kills(16), {
      maxTrials: 1_000,
      signal: stop.signal,
      fails: async (one) => {
        if (++count === 4) stop.abort();
        return needs('e9')(one);
      },
    });
    expect(count).toBe(4);
    expect(result.isMinimal).toBe(false);
    expect(ids(result.schedule)).toContain('e9');
  });

  it('asks for no schedule twice, and works on a drawn one', async () => {
    const drawn = expandSchedule(
      { seed: 3, durationMs: 600_000, level: 'brutal', faults: defaultFaults('brutal'), nodeCount: 5, moments: [] },
      new Prng(3),
    );
    const target = drawn.events[Math.floor(drawn.events.length / 2)]?.id as string;
    const asked: string[] = [];
    const { schedule } = await shrink(drawn, (one) => {
      asked.push(formatSchedule(one));
      return needs(target)(one);
    });
    expect(new Set(asked).size).toBe(asked.length);
    expect(ids(schedule)).toContain(target);
    expect(schedule?.events.length).toBeLessThan(4);
  });
});
