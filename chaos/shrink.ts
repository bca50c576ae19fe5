/**
 * The smallest schedule that still fails, by delta debugging: first fewer events, then shorter ones, then a shorter run.
 *
 * Invariant: what is returned has failed by the oracle itself; a candidate that was only thought to fail is never kept. If it
 * were, somebody would search for a cause in faults that do not show it. Source: Zeller and Hildebrandt, "Simplifying and
 * Isolating Failure-Inducing Input" (2002), section 3, with removal closed over triggers.
 */
import { formatSchedule } from './schedule-file.ts';
import { plannedWindows, type Schedule, type ScheduleEvent } from './schedule.ts';

export interface ShrinkOptions {
  /** Does it fail, on real runs? A flaky failure is the oracle's affair: it may play several times. */
  fails(schedule: Schedule): Promise<boolean>;
  /** Most schedules that are tried; what was smallest by then is returned. */
  readonly maxTrials: number;
  /** Shortest fault that is tried, ms. */
  readonly minFaultMs?: number;
  /** Shortest schedule that is tried, ms. */
  readonly minDurationMs?: number;
  readonly signal?: AbortSignal;
  onTrial?(trial: Trial): void;
}

export interface Trial {
  readonly schedule: Schedule;
  readonly failed: boolean;
  /** Of all schedules tried so far. */
  readonly count: number;
}

export interface Shrunk {
  /** Null: not even the whole schedule failed, so there is nothing to shrink. */
  readonly schedule: Schedule | null;
  readonly trials: number;
  /** False: the bound or the signal came first, and something smaller may fail too. */
  readonly isMinimal: boolean;
}

const defaultMinFaultMs = 500;
const defaultMinDurationMs = 10_000;
/** Kept between the end of the last fault and the healing part, ms. */
const afterLastFaultMs = 2_000;

/** Shrinks. Rejects only when the oracle does. */
export async function shrinkSchedule(schedule: Schedule, options: ShrinkOptions): Promise<Shrunk> {
  const trials = new Trials(options);
  if (!(await trials.fails(schedule))) return { schedule: null, trials: trials.count, isMinimal: trials.isOpen };
  let smallest = schedule;
  // Shorter faults can make events superfluous that were needed before.
  for (let before = ''; before !== formatSchedule(smallest) && trials.isOpen;) {
    before = formatSchedule(smallest);
    smallest = await fewerEvents(smallest, trials);
    smallest = await shorterFaults(smallest, trials, options.minFaultMs ?? defaultMinFaultMs);
    smallest = await shorterRun(smallest, trials, options.minDurationMs ?? defaultMinDurationMs);
  }
  return { schedule: smallest, trials: trials.count, isMinimal: trials.isOpen };
}

/** Asks the oracle, each schedule once, within the bounds; past them nothing fails. */
class Trials {
  count = 0;
  private readonly options: ShrinkOptions;
  private readonly known = new Map<string, boolean>();
  private isBounded = false;

  constructor(options: ShrinkOptions) {
    this.options = options;
  }

  /** True while no trial was refused for want of time. */
  get isOpen(): boolean {
    return !this.isBounded;
  }

  async fails(schedule: Schedule): Promise<boolean> {
    const text = formatSchedule(schedule);
    const known = this.known.get(text);
    if (known !== undefined) return known;
    if (this.count >= this.options.maxTrials || this.isStopped()) {
      this.isBounded = true;
      return false;
    }
    this.count++;
    const failed = await this.options.fails(schedule);
    // A run that the signal cut short has shown nothing; what has failed, has.
    if (!failed && this.isStopped()) this.isBounded = true;
    else this.known.set(text, failed);
    this.options.onTrial?.({ schedule, failed, count: this.count });
    return failed;
  }

  private isStopped(): boolean {
    return this.options.signal?.aborted === true;
  }
}

/** The schedule with these events only, without those whose trigger is not among them. */
export function withEvents(schedule: Schedule, events: readonly ScheduleEvent[]): Schedule {
  let kept = events;
  for (;;) {
    const ids = new Set(kept.map((event) => event.id));
    const next = kept.filter(({ moment }) => moment.kind !== 'after-fault' || ids.has(moment.faultId));
    if (next.length === kept.length) return { ...schedule, events: next };
    kept = next;
  }
}

/** ddmin: parts alone, then all but a part, in ever smaller parts, until no single event can go. */
async function fewerEvents(schedule: Schedule, trials: Trials): Promise<Schedule> {
  let smallest = schedule;
  let parts = 2;
  while (smallest.events.length > 0 && trials.isOpen) {
    const { events } = smallest;
    const size = Math.max(1, Math.ceil(events.length / parts));
    const starts = Array.from({ length: Math.ceil(events.length / size) }, (_, index) => index * size);
    const alone = starts.map((from) => events.slice(from, from + size));
    const without = starts.map((from) => [...events.slice(0, from), ...events.slice(from + size)]);
    const smaller = await firstFailing([...alone, ...without], smallest, trials);
    if (smaller !== null) {
      parts = smaller.events.length < events.length / 2 ? 2 : Math.max(2, parts - 1);
      smallest = smaller;
    } else if (size === 1) break;
    else parts = Math.min(events.length, parts * 2);
  }
  return smallest;
}

async function firstFailing(
  candidates: readonly (readonly ScheduleEvent[])[],
  smallest: Schedule,
  trials: Trials,
): Promise<Schedule | null> {
  for (const events of candidates) {
    const candidate = withEvents(smallest, events);
    if (candidate.events.length < smallest.events.length && (await trials.fails(candidate))) return candidate;
  }
  return null;
}

/** Halves the faults' durations, one after the other, as long as that still fails. */
async function shorterFaults(schedule: Schedule, trials: Trials, minFaultMs: number): Promise<Schedule> {
  let smallest = schedule;
  for (const { id } of schedule.events) {
    for (;;) {
      const event = smallest.events.find((one) => one.id === id);
      if (event === undefined || event.durationMs <= minFaultMs || !trials.isOpen) break;
      const durationMs = Math.max(minFaultMs, Math.round(event.durationMs / 2));
      const candidate = {
        ...smallest,
        events: smallest.events.map((one) => (one.id === id ? { ...one, durationMs } : one)),
      };
      if (!(await trials.fails(candidate))) break;
      smallest = candidate;
    }
  }
  return smallest;
}

/** Ends the run soon after its last fault; where an event waits for the cluster nobody knows when that is. */
async function shorterRun(schedule: Schedule, trials: Trials, minDurationMs: number): Promise<Schedule> {
  const windows = [...plannedWindows(schedule).values()];
  if (windows.includes(null)) return schedule;
  const lastMs = Math.max(0, ...windows.map((window) => window?.toMs ?? 0));
  const tailMs = schedule.durationMs - schedule.healFromMs;
  const durationMs = Math.max(minDurationMs, lastMs + afterLastFaultMs + tailMs);
  if (durationMs >= schedule.durationMs) return schedule;
  const candidate = { ...schedule, durationMs, healFromMs: durationMs - tailMs };
  return (await trials.fails(candidate)) ? candidate : schedule;
}
