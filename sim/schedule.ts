/** The schedule of a simulated run: drawn like that of a real one, at protocol moments that only the simulator sees all of. */
import { expandSchedule } from '../chaos/expand.ts';
import { type Schedule, type ScheduleEvent, scheduleVersion } from '../chaos/schedule.ts';
import { Prng } from '../lib/prng.ts';
import { faultList, type SimOptions } from './options.ts';

/** Notices of nodes that faults may strike at: between two steps of a promotion, a handoff, an addition to an in-sync set. */
export const strikeMoments = [
  'edge-promotion',
  'possession-proved',
  'synchronising',
  'edge-serving',
  'handoff-started',
  'edge-handoff',
  'snapshot-started',
  'snapshot-installed',
  'edge-in-sync',
  'edge-withdrawn',
  'edge-unassigned',
  'edge-map',
  'control-leader',
] as const;

/** Nodes added at most. */
const maxAdded = 2;

/** An empty schedule for a run without faults. */
const calm = (seed: number, durationMs: number): Schedule => ({
  version: scheduleVersion,
  name: null,
  seed,
  level: null,
  durationMs,
  healFromMs: durationMs,
  events: [],
  expect: null,
  workload: {},
  cluster: {},
});

export function drawSchedule(seed: number, options: SimOptions): Schedule {
  const { durationMs, chaos, nodes } = options;
  if (chaos === 'none') return calm(seed, durationMs);
  const faults = faultList(options.faults);
  const moments = options.moments ? { moments: strikeMoments } : {};
  const drawn = expandSchedule(
    { seed, durationMs, level: chaos, faults, nodeCount: nodes, ...moments },
    new Prng(seed).fork('schedule'),
  );
  const events = withinSize(drawn.events, options);
  return {
    ...drawn,
    events:
      options.restartMs === 0
        ? events
        : events.map((event) => (event.fault.kind === 'kill' ? { ...event, durationMs: options.restartMs } : event)),
  };
}

/** Leaves out what would shrink the cluster below what it needs, or grow it without end. */
function withinSize(events: readonly ScheduleEvent[], options: SimOptions): ScheduleEvent[] {
  const least = Math.max(options.rf + 1, 4);
  let size = options.nodes;
  let added = 0;
  const kept = events.filter(({ fault }) => {
    if (fault.kind === 'scale-out') {
      if (added >= maxAdded) return false;
      added += 1;
      size += 1;
    }
    if (fault.kind === 'scale-in') {
      if (size <= least) return false;
      size -= 1;
    }
    return true;
  });
  const ids = new Set(kept.map((event) => event.id));
  return kept.filter(({ moment }) => moment.kind !== 'after-fault' || ids.has(moment.faultId));
}
