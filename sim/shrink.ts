/**
 * Makes a failing run small: fewer fault events, shorter ones, fewer clients and operations, a calmer network, as long as it fails
 * in the same way. Each try is a whole run; the simulator is quick enough for hundreds.
 *
 * Everything after a change runs differently, so a smaller run may need another seed to fail: a few are tried.
 */
import type { Schedule, ScheduleEvent } from '../chaos/schedule.ts';
import type { SimOptions } from './options.ts';

export interface Candidate {
  readonly seed: number;
  readonly options: SimOptions;
  readonly schedule: Schedule;
}

export interface ShrinkOptions {
  /** Does it still fail in the way that matters? Returns the virtual time (ms) by which it had, or null. */
  readonly fails: (candidate: Candidate) => Promise<number | null>;
  readonly maxRuns: number;
  /** Wall time, ms. */
  readonly boundMs: number;
  readonly onSmaller?: (candidate: Candidate, what: string) => void;
}

export interface Shrunk {
  readonly candidate: Candidate;
  readonly runs: number;
}

/** Seeds tried for each reduction: its own, and these many after it. */
const otherSeeds = 2;
/** Time kept after the failure, ms. */
const afterMs = 3_000;
/** Earliest time that events are moved to, ms. */
const firstEventMs = 500;
/** Shortest hold of a fault that is tried, ms. */
const shortestHoldMs = 50;

class Shrinker {
  best: Candidate;
  runs = 0;
  private readonly options: ShrinkOptions;
  private readonly endMs: number;

  constructor(first: Candidate, options: ShrinkOptions) {
    this.best = first;
    this.options = options;
    this.endMs = performance.now() + options.boundMs;
  }

  get isOver(): boolean {
    return this.runs >= this.options.maxRuns || performance.now() > this.endMs;
  }

  /** Keeps the change when it still fails. */
  async accepts(change: Partial<Candidate>, what: string): Promise<boolean> {
    for (let more = 0; more <= otherSeeds && !this.isOver; more++) {
      const candidate = { ...this.best, ...change, seed: this.best.seed + more };
      this.runs += 1;
      const failedAtMs = await this.options.fails(candidate);
      if (failedAtMs === null) continue;
      this.best = shortened(candidate, failedAtMs);
      // Ending it sooner may itself change the end.
      if (this.best !== candidate && (await this.options.fails(this.best)) === null) this.best = candidate;
      this.runs += 1;
      this.options.onSmaller?.(this.best, what);
      return true;
    }
    return false;
  }

  withEvents(events: readonly ScheduleEvent[]): { schedule: Schedule } {
    return { schedule: { ...this.best.schedule, events } };
  }
}

/** The run, ended soon after it had failed; itself where that gains nothing. */
function shortened(candidate: Candidate, failedAtMs: number): Candidate {
  const durationMs = Math.ceil(failedAtMs + afterMs);
  if (durationMs >= candidate.options.durationMs) return candidate;
  const events = candidate.schedule.events.filter(({ moment }) => moment.kind !== 'at' || moment.atMs < durationMs);
  const ids = new Set(events.map((event) => event.id));
  return {
    seed: candidate.seed,
    options: { ...candidate.options, durationMs },
    schedule: {
      ...candidate.schedule,
      durationMs,
      healFromMs: durationMs,
      events: events.filter(({ moment }) => moment.kind !== 'after-fault' || ids.has(moment.faultId)),
    },
  };
}

/** Reduces until nothing more can be taken away, or a bound is reached. `first` must fail. */
export async function shrink(first: Candidate, options: ShrinkOptions): Promise<Shrunk> {
  const shrinker = new Shrinker(first, options);
  const failedAtMs = await options.fails(first);
  shrinker.runs += 1;
  if (failedAtMs === null) throw new Error('what is to be shrunk does not fail');
  await shrinker.accepts(shortened(first, failedAtMs), 'ended after the failure');
  for (let size = ''; size !== sizeOf(shrinker.best) && !shrinker.isOver;) {
    size = sizeOf(shrinker.best);
    await fewerEvents(shrinker);
    await simplerOptions(shrinker);
    await shorterEvents(shrinker);
    await earlierEvents(shrinker);
  }
  return { candidate: shrinker.best, runs: shrinker.runs };
}

const sizeOf = ({ options, schedule }: Candidate): string =>
  [
    schedule.events.length,
    schedule.events.reduce((sum, event) => sum + event.durationMs, 0),
    JSON.stringify(options),
  ].join();

/** Delta debugging over the events: halves first, then ever smaller parts (Zeller & Hildebrandt 2002). */
async function fewerEvents(shrinker: Shrinker): Promise<void> {
  for (let parts = 2; shrinker.best.schedule.events.length > 0 && !shrinker.isOver;) {
    const { events } = shrinker.best.schedule;
    const size = Math.ceil(events.length / parts);
    let isSmaller = false;
    for (let from = 0; from < events.length && !isSmaller; from += size) {
      const rest = [...events.slice(0, from), ...events.slice(from + size)];
      const ids = new Set(rest.map((event) => event.id));
      const kept = rest.filter(({ moment }) => moment.kind !== 'after-fault' || ids.has(moment.faultId));
      isSmaller = await shrinker.accepts(shrinker.withEvents(kept), `${kept.length} events`);
    }
    if (!isSmaller && size <= 1) return;
    parts = isSmaller ? Math.max(2, parts - 1) : Math.min(events.length, parts * 2);
  }
}

async function shorterEvents(shrinker: Shrinker): Promise<void> {
  for (let index = 0; index < shrinker.best.schedule.events.length; index++) {
    for (;;) {
      const event = shrinker.best.schedule.events[index];
      if (event === undefined || event.durationMs <= shortestHoldMs || shrinker.isOver) break;
      const durationMs = Math.max(shortestHoldMs, Math.floor(event.durationMs / 2));
      const events = shrinker.best.schedule.events.map((other) => (other === event ? { ...event, durationMs } : other));
      if (!(await shrinker.accepts(shrinker.withEvents(events), `${event.id} holds ${durationMs} ms`))) break;
    }
  }
}

/** Moves everything towards the start, as far as the first event allows. */
async function earlierEvents(shrinker: Shrinker): Promise<void> {
  for (let share = 1; share >= 1 / 8 && !shrinker.isOver; share /= 2) {
    const times = shrinker.best.schedule.events.flatMap(({ moment }) => (moment.kind === 'at' ? [moment.atMs] : []));
    const byMs = Math.floor((Math.min(...times) - firstEventMs) * share);
    if (!(byMs > 0 && Number.isFinite(byMs))) return;
    const events = shrinker.best.schedule.events.map((event) =>
      event.moment.kind === 'at' ? { ...event, moment: { ...event.moment, atMs: event.moment.atMs - byMs } } : event,
    );
    await shrinker.accepts(shrinker.withEvents(events), `${byMs} ms earlier`);
  }
}

/** Values that a simpler run would have; each is tried alone. */
function simpler(options: SimOptions): Partial<SimOptions>[] {
  const changes: Partial<SimOptions>[] = [
    { breaksPerMinute: 0 },
    { lossChance: 0 },
    { duplicateChance: 0 },
    { reorderChance: 0 },
    { lateRequestMs: 0 },
    { slowNodeMs: 0 },
    { valueBytes: 0 },
    { partitions: 1 },
    { partitions: Math.max(1, options.partitions / 2) },
    { activeKeys: Math.max(1, Math.floor(options.activeKeys / 2)) },
    { ratePerSecond: Math.max(1, Math.floor(options.ratePerSecond / 2)) },
  ];
  const sessions = Math.max(1, Math.floor(options.sessions / 2));
  changes.push({ sessions, clients: Math.min(options.clients, sessions) }, { clients: 1 });
  if (options.nodes > Math.max(3, options.rf)) changes.push({ nodes: options.nodes - 1 });
  const workloads = options.mix.split(',');
  if (workloads.length > 1) for (const mix of workloads) changes.push({ mix });
  return changes.filter((change) =>
    Object.entries(change).some(([name, value]) => options[name as keyof SimOptions] !== value),
  );
}

async function simplerOptions(shrinker: Shrinker): Promise<void> {
  const refused = new Set<string>();
  for (;;) {
    const change = simpler(shrinker.best.options).find((one) => !refused.has(JSON.stringify(one)));
    if (change === undefined || shrinker.isOver) return;
    const what = JSON.stringify(change);
    if (!(await shrinker.accepts({ options: { ...shrinker.best.options, ...change } }, what))) refused.add(what);
  }
}
