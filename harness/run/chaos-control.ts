/** Puts the chaos driver to work for a run, and turns what it says of itself into reasons. */
import { startChaos } from '../../chaos/driver.ts';
import type { Cluster, Sleeper } from '../../chaos/ports.ts';
import { formatSchedule } from '../../chaos/schedule-file.ts';
import { Prng } from '../../lib/prng.ts';
import { writeWhole } from '../results.ts';
import { absentRolesOf, scheduleOf } from '../schedule.ts';
import type { ChaosControl, ChaosOptions } from './world.ts';

/** Sleeps on real timers. */
export const timerSleeper: Sleeper = {
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const timer = setTimeout(done, ms);
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      }
      signal?.addEventListener('abort', done);
    }),
};

/** The cluster, until `isGone()`: then it answers to nothing any more. */
function until(isGone: () => boolean, cluster: Cluster): Cluster {
  return new Proxy(cluster, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return (...words: unknown[]) =>
        isGone() && name !== 'nodeIds' ? new Promise(() => undefined) : (value.apply(target, words) as unknown);
    },
  });
}

/** Draws or reads the schedule, saves it, and plays it. */
export async function playChaos(options: ChaosOptions): Promise<ChaosControl> {
  const { settings, cluster, status, journal, events, clock, folder, against } = options;
  const unsupported = await cluster.unsupported();
  const schedule = options.schedule ?? scheduleOf(settings, unsupported, absentRolesOf(await status.status()));
  if (options.schedule === null) writeWhole(folder.schedule, `${formatSchedule(schedule)}\n`);
  options.onSchedule(schedule, unsupported);
  let isGone = false;
  const run = startChaos({
    schedule,
    cluster: until(() => isGone, cluster),
    status,
    journal,
    events,
    clock,
    sleeper: timerSleeper,
    prng: new Prng(settings.seed).fork('targets'),
    onScaled: options.onScaled,
    policy: { mayStall: settings.beyondBudget, mayExceed: settings.beyondBudget },
  });
  const done = run.done.then((outcome) => {
    // Overshoots and heals that were not verified the verifier finds in the journal.
    for (const reason of outcome.environmentErrors) against({ verdict: 'environment', reason });
  });
  done.catch(() => undefined);
  return {
    done,
    healNow: (why) => void run.stop(why).catch(() => undefined),
    letGo: () => {
      isGone = true;
    },
  };
}
