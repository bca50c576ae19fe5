/**
 * A schedule: which fault comes when, to whom, and for how long. Written by hand (a scenario) or expanded from a seed; the
 * same file plays on every cluster.
 *
 * Invariant: everything that decides a run's faults, but for live status, stands in it. If something did not, a seed or a
 * file would not name the run it came from.
 */
import type { Fault, Target } from './faults.ts';

/** Of the file format; raised when an older reader would misread a newer file. */
export const scheduleVersion = 1;

export const chaosLevels = ['gentle', 'standard', 'brutal'] as const;
export type ChaosLevel = (typeof chaosLevels)[number];

/** Stages of another fault that an event can wait for. */
export const triggerStages = ['injected', 'confirmed', 'healed', 'heal-verified'] as const;
export type TriggerStage = (typeof triggerStages)[number];

export type Moment =
  /** Milliseconds after the start of the schedule. */
  | { readonly kind: 'at'; readonly atMs: number }
  /** A stage of another event of this schedule. */
  | { readonly kind: 'after-fault'; readonly faultId: string; readonly stage: TriggerStage; readonly delayMs: number }
  /** The `count`-th event of this name, of `partition` where given, since the last `since` event (or the start). */
  | {
      readonly kind: 'after-event';
      readonly event: string;
      readonly partition: number | null;
      readonly count: number;
      readonly since: string | null;
      readonly delayMs: number;
    };

export interface ScheduleEvent {
  readonly id: string;
  readonly moment: Moment;
  readonly fault: Fault;
  readonly target: Target;
  /** From the injection to the heal; 0 for faults without one. */
  readonly durationMs: number;
}

/** What a scenario may expect of its run; the words of the certificate. */
export const expectableVerdicts = ['certified', 'violated', 'not-recovered', 'inconclusive'] as const;
export type ExpectedVerdict = (typeof expectableVerdicts)[number];

export interface Schedule {
  readonly version: typeof scheduleVersion;
  readonly name: string | null;
  readonly seed: number;
  /** Null for schedules written by hand. */
  readonly level: ChaosLevel | null;
  readonly durationMs: number;
  /** From here on everything is healed and nothing is injected. */
  readonly healFromMs: number;
  readonly events: readonly ScheduleEvent[];
  readonly expect: ExpectedVerdict | null;
  /** Settings that the run hands to its workload, and to its cluster. Flat. */
  readonly workload: Readonly<Record<string, string | number | boolean>>;
  readonly cluster: Readonly<Record<string, string | number | boolean>>;
}

/** For people and the journal: `at 12.5 s`, `200 × ack on p7 since epoch`. */
export function momentText(moment: Moment): string {
  const delay = (ms: number): string => (ms === 0 ? '' : `${ms} ms after `);
  switch (moment.kind) {
    case 'at':
      return `at ${(moment.atMs / 1000).toFixed(1)} s`;
    case 'after-fault':
      return `${delay(moment.delayMs)}${moment.faultId} ${moment.stage}`;
    case 'after-event': {
      const where = moment.partition === null ? '' : ` on p${moment.partition}`;
      const since = moment.since === null ? '' : ` since ${moment.since}`;
      return `${delay(moment.delayMs)}${moment.count} × ${moment.event}${where}${since}`;
    }
  }
}

/** When each event is open, as far as the plan knows: null for those that wait for an event of the cluster. */
export function plannedWindows(schedule: Schedule): ReadonlyMap<string, { fromMs: number; toMs: number } | null> {
  const windows = new Map<string, { fromMs: number; toMs: number } | null>();
  const byId = new Map(schedule.events.map((event) => [event.id, event]));
  const windowOf = (event: ScheduleEvent, depth: number): { fromMs: number; toMs: number } | null => {
    const known = windows.get(event.id);
    if (known !== undefined) return known;
    const { moment } = event;
    let fromMs: number | null = null;
    if (moment.kind === 'at') fromMs = moment.atMs;
    if (moment.kind === 'after-fault' && depth < schedule.events.length) {
      const base = byId.get(moment.faultId);
      const baseWindow = base === undefined ? null : windowOf(base, depth + 1);
      if (baseWindow !== null) {
        const isEnd = moment.stage === 'healed' || moment.stage === 'heal-verified';
        fromMs = (isEnd ? baseWindow.toMs : baseWindow.fromMs) + moment.delayMs;
      }
    }
    const window = fromMs === null ? null : { fromMs, toMs: fromMs + event.durationMs };
    windows.set(event.id, window);
    return window;
  };
  for (const event of schedule.events) windowOf(event, 0);
  return windows;
}

/** Share of events whose planned window overlaps that of another; 0 for an empty schedule. */
export function plannedOverlapShare(schedule: Schedule): number {
  const windows = [...plannedWindows(schedule).values()];
  const overlapping = windows.filter(
    (one, index) =>
      one !== null &&
      windows.some(
        (other, otherIndex) =>
          other !== null && otherIndex !== index && one.fromMs < other.toMs && other.fromMs < one.toMs,
      ),
  );
  return windows.length === 0 ? 0 : overlapping.length / windows.length;
}
