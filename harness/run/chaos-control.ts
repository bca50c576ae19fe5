/** Puts the chaos driver to work for a run, and turns what it says of itself into reasons. */
import { startChaos } from '../../chaos/driver.ts';
import type { Sleeper } from '../../chaos/ports.ts';
import { formatSchedule } from '../../chaos/schedule-file.ts';
import { Prng } from '../../lib/prng.ts';
import { writeWhole } from '../results.ts';
import { scheduleOf } from '../schedule.ts';
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

/** Draws or reads the schedule, saves it, and plays it. */
export async function playChaos(options: ChaosOptions): Promise<ChaosControl> {
  const { settings, cluster, status, journal, events, clock, folder, against } = options;
  const unsupported = await cluster.unsupported();
  const schedule = options.schedule ?? scheduleOf(settings, unsupported);
  if (options.schedule === null) writeWhole(folder.schedule, `${formatSchedule(schedule)}\n`);
  options.onSchedule(schedule, unsupported);
  const run = startChaos({
    schedule,
    cluster,
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
  return { done, healNow: (why) => void run.stop(why).catch(() => undefined) };
}
