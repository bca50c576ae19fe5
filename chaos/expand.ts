/**
 * Seed → schedule.
 *
 * Invariant: the same arguments give the same schedule, on every machine; nothing but they decides. Nothing is open after
 * `healFromMs`. At `standard` and above at least `overlapQuota` of the events overlap another. If the density were too low
 * a run would certify a cluster that hardly anything happened to.
 */
import { assert, unreachable } from '../lib/assert.ts';
import type { Prng } from '../lib/prng.ts';
import { type Fault, type FaultName, faultName, faultNames, faultOfName, isPermanent, type Target } from './faults.ts';
import { fewestNodes } from './partitions.ts';
import { type ChaosLevel, type Moment, type Schedule, type ScheduleEvent, scheduleVersion } from './schedule.ts';

export interface ExpandOptions {
  readonly seed: number;
  readonly durationMs: number;
  readonly level: ChaosLevel;
  readonly faults: readonly FaultName[];
  readonly nodeCount: number;
  /** Names of cluster events worth striking at; none: faults come by time and after other faults only. */
  readonly moments?: readonly string[];
  /** Roles that nobody ever has in this system: faults on them would be planned in vain. */
  readonly absentRoles?: readonly Target['kind'][];
}

/** How a level deals out its faults. Times in milliseconds, [least, most]. */
interface Pace {
  readonly gapMs: readonly [number, number];
  /** A longer gap, every so many bouts, in which the cluster may become Healthy. */
  readonly quietMs: readonly [number, number];
  readonly boutsPerQuiet: number;
  /** Faults in a bout: drawn from these. */
  readonly boutSizes: readonly number[];
  /** Chance of a pause or cut that lasts longer than a failure detector waits. */
  readonly longShare: number;
  /** Least share of events that overlap another. */
  readonly overlapQuota: number;
  /** Chance that a bout goes on with a strike at a joiner, or at a moment of the cluster. */
  readonly momentShare: number;
}

/** Least planned overlap share at `standard` and `brutal`; above the 25 % of the contract, since budgets take some away. */
export const overlapQuota = 0.4;

const paces: Readonly<Record<ChaosLevel, Pace>> = {
  gentle: {
    gapMs: [6_000, 12_000],
    quietMs: [20_000, 30_000],
    boutsPerQuiet: 6,
    boutSizes: [1],
    longShare: 0.3,
    overlapQuota: 0,
    momentShare: 0,
  },
  standard: {
    gapMs: [2_500, 6_000],
    quietMs: [10_000, 16_000],
    boutsPerQuiet: 7,
    boutSizes: [1, 2, 2, 3],
    longShare: 0.45,
    overlapQuota,
    momentShare: 0.15,
  },
  brutal: {
    gapMs: [1_500, 4_000],
    quietMs: [8_000, 12_000],
    boutsPerQuiet: 9,
    boutSizes: [2, 3, 3, 4],
    longShare: 0.45,
    overlapQuota,
    momentShare: 0.3,
  },
};

/** Kinds that make up most of every run where they are allowed. */
const coreFaults: readonly FaultName[] = ['kill', 'kill', 'pause', 'isolate'];
/** Others per round of the core. */
const othersPerRound = 2;

/** Kinds that take several nodes at once: they come first in a bout, or the budget would never have room for them. */
const heavyFaults: readonly FaultName[] = ['halves', 'majorities-ring', 'bridge', 'rolling-restart', 'scale-in'];
/** Time before such a bout, in which nodes may come back into their sets. */
const clearingMs = [3_000, 6_000] as const;

/** The kinds a level uses when none were asked for. */
export function defaultFaults(level: ChaosLevel): readonly FaultName[] {
  switch (level) {
    case 'gentle':
      return ['kill', 'pause', 'isolate'];
    case 'standard':
      return ['kill', 'pause', 'isolate', 'stop', 'halves', 'one-way-in', 'one-way-out', 'client-partition'];
    case 'brutal':
      return faultNames;
    default:
      return unreachable(level, 'chaos level');
  }
}

/** The last part of a run, kept for healing: 15 % of it, at least 10 s, at most 2 minutes, never more than half. */
export function healingTailMs(durationMs: number): number {
  return Math.round(Math.min(Math.max(0.15 * durationMs, 10_000), 120_000, durationMs / 2));
}

/** How long a failure detector may take to act on silence; long faults last longer. */
const detectorMs = 10_000;

/** Expands a seed into a schedule. Throws on an empty list of faults. */
export function expandSchedule(options: ExpandOptions, prng: Prng): Schedule {
  assert(options.faults.length > 0, 'a schedule needs at least one kind of fault');
  const pace = paces[options.level];
  const healFromMs = options.durationMs - healingTailMs(options.durationMs);
  assert(options.nodeCount > 0, 'a cluster has nodes');
  const deal = new Dealer(options, pace, prng.fork('deal'));
  const timing = prng.fork('timing');
  const events: ScheduleEvent[] = [];
  let overlapping = 0;
  let nowMs = Math.min(3_000, options.durationMs / 20);
  for (let bout = 1; nowMs < healFromMs; bout++) {
    const isBehind = overlapping < pace.overlapQuota * (events.length + 1);
    const drawn = timing.pick(pace.boutSizes);
    const members = deal
      .bout(isBehind ? Math.max(2, drawn) : drawn, nowMs, timing)
      .map((event) => clipped(event, healFromMs))
      .filter((event) => event !== null);
    const timed = members.filter((event) => event.moment.kind === 'at');
    if (timed.length > 1) overlapping += timed.length;
    events.push(...members);
    const endMs = Math.max(
      nowMs,
      ...timed.map((event) => (event.moment.kind === 'at' ? event.moment.atMs : 0) + event.durationMs),
    );
    const [least, most] = bout % pace.boutsPerQuiet === 0 ? pace.quietMs : pace.gapMs;
    nowMs = endMs + timing.between(least, most);
  }
  return {
    version: scheduleVersion,
    name: null,
    seed: options.seed,
    level: options.level,
    durationMs: options.durationMs,
    healFromMs,
    events: renumbered(events),
    expect: null,
    workload: {},
    cluster: {},
  };
}

/** Shortest hold that is worth an injection, ms. */
const leastHoldMs = 1_000;

/** The event, over by `healFromMs`; null when too little of it would be left. */
function clipped(event: ScheduleEvent, healFromMs: number): ScheduleEvent | null {
  if (event.moment.kind !== 'at') return event;
  const roomMs = healFromMs - event.moment.atMs;
  if (roomMs < leastHoldMs) return null;
  return { ...event, durationMs: Math.min(event.durationMs, roomMs) };
}

/** Ids in order of position, references following; strikes after what did not fit are left out. */
function renumbered(all: readonly ScheduleEvent[]): readonly ScheduleEvent[] {
  const present = new Set(all.map((event) => event.id));
  const events = all.filter(({ moment }) => moment.kind !== 'after-fault' || present.has(moment.faultId));
  const ids = new Map(events.map((event, index) => [event.id, `e${index + 1}`]));
  const named = (id: string): string => ids.get(id) ?? id;
  return events.map((event) => ({
    ...event,
    id: named(event.id),
    moment:
      event.moment.kind === 'after-fault' ? { ...event.moment, faultId: named(event.moment.faultId) } : event.moment,
  }));
}

/** Deals kinds and targets from shuffled decks, so that short runs see all of them. */
class Dealer {
  private readonly options: ExpandOptions;
  private readonly pace: Pace;
  private readonly prng: Prng;
  private readonly core: readonly FaultName[];
  private readonly others: readonly FaultName[];
  private kinds: FaultName[] = [];
  private lastId = 0;
  private waiting: FaultName[] = [];
  private readonly targets = new Map<string, Target[]>();
  private readonly isLongNext = new Map<FaultName, boolean>();

  constructor(options: ExpandOptions, pace: Pace, prng: Prng) {
    this.options = options;
    this.pace = pace;
    this.prng = prng;
    this.core = coreFaults.filter((name) => options.faults.includes(name));
    this.others = [...new Set(options.faults)].filter((name) => {
      const fault = faultOfName(name);
      const isTooBig = fault.kind === 'partition' && options.nodeCount < fewestNodes[fault.shape];
      return !isTooBig && !coreFaults.includes(name);
    });
  }

  /** Events of one bout: the first at `startMs`, each other inside the one before it; perhaps a strike that follows. */
  bout(size: number, startMs: number, timing: Prng): ScheduleEvent[] {
    const events: ScheduleEvent[] = [];
    const drawn = Array.from({ length: size }, () => this.fault());
    const heavy = drawn.filter((fault) => heavyFaults.includes(faultName(fault)));
    let from = heavy.length > 0 ? startMs + timing.between(...clearingMs) : startMs;
    for (const fault of [...heavy, ...drawn.filter((one) => !heavy.includes(one))]) {
      const event: ScheduleEvent = {
        id: this.newId(),
        moment: { kind: 'at', atMs: from },
        fault,
        target: this.target(fault),
        durationMs: this.durationMs(fault),
      };
      events.push(event);
      from += event.durationMs === 0 ? timing.between(50, 500) : timing.between(0, Math.floor(event.durationMs * 0.7));
    }
    const last = events.find((event) => event.fault.kind === 'kill');
    if (this.prng.chance(this.pace.momentShare) && this.options.faults.includes('kill')) {
      const moment = this.moment(last?.id ?? null);
      if (moment !== null) {
        const fault = faultOfName('kill');
        events.push({
          id: this.newId(),
          moment,
          fault,
          target:
            moment.kind === 'after-fault'
              ? { kind: 'joiner', partition: 'random' }
              : { kind: 'primary', partition: 'random' },
          durationMs: this.durationMs(fault),
        });
      }
    }
    return events;
  }

  /** After the restart of a killed node (to hit it while it catches up), or at a moment of the cluster. */
  private moment(killId: string | null): Moment | null {
    const moments = this.options.moments ?? [];
    if (moments.length > 0 && this.prng.chance(0.5)) {
      return {
        kind: 'after-event',
        event: this.prng.pick(moments),
        partition: null,
        count: this.prng.between(1, 20),
        since: null,
        delayMs: 0,
      };
    }
    if (killId === null) return null;
    return { kind: 'after-fault', faultId: killId, stage: 'heal-verified', delayMs: this.prng.between(0, 400) };
  }

  private newId(): string {
    return `x${++this.lastId}`;
  }

  private fault(): Fault {
    if (this.kinds.length === 0) {
      const round: FaultName[] = [...this.core];
      const extra = this.core.length === 0 ? this.others.length : Math.min(othersPerRound, this.others.length);
      for (let index = 0; index < extra; index++) {
        if (this.waiting.length === 0) this.waiting = this.prng.shuffle(this.others);
        round.push(this.waiting.pop() as FaultName);
      }
      this.kinds = this.prng.shuffle(round);
    }
    return this.dressed(faultOfName(this.kinds.pop() as FaultName));
  }

  /** Draws the parameters that vary. */
  private dressed(fault: Fault): Fault {
    switch (fault.kind) {
      case 'partition':
        return { ...fault, clients: this.prng.chance(0.25) };
      case 'loss':
        return { ...fault, percent: this.prng.pick([10, 30, 60]) };
      case 'latency':
        return { ...fault, delayMs: this.prng.pick([50, 200, 800]), jitterMs: this.prng.pick([10, 100]) };
      case 'bandwidth':
        return { ...fault, bytesPerSecond: this.prng.pick([16, 64, 256]) * 1024 };
      case 'clock':
        return { ...fault, offsetMs: this.prng.pick([-1, 1]) * this.prng.pick([5_000, 60_000, 3_600_000]) };
      default:
        return fault;
    }
  }

  private target(fault: Fault): Target {
    const name = faultName(fault);
    const left = this.targets.get(name) ?? [];
    const absent = this.options.absentRoles ?? [];
    if (left.length === 0)
      left.push(...this.prng.shuffle(targetDeck(name).filter(({ kind }) => !absent.includes(kind))));
    const target = left.pop();
    assert(target !== undefined, `somebody that ${name} can be dealt to`);
    this.targets.set(name, left);
    return target;
  }

  private durationMs(fault: Fault): number {
    if (isPermanent(fault) || fault.kind === 'rolling-restart') return 0;
    if (fault.kind === 'kill' || fault.kind === 'stop' || fault.kind === 'oom' || fault.kind === 'wipe') {
      return this.prng.between(1_000, 4_000);
    }
    // Alternates after a random start, so that short runs have long ones too.
    const name = faultName(fault);
    const isLong = this.isLongNext.get(name) ?? this.prng.chance(0.5);
    const share = this.pace.longShare;
    this.isLongNext.set(name, isLong ? false : this.prng.chance(Math.min(1, 2 * share)));
    return isLong ? this.prng.between(detectorMs + 1_500, detectorMs + 5_000) : this.prng.between(leastHoldMs, 5_000);
  }
}

/** Roles that a kind is dealt, each as often as it stands here. */
function targetDeck(name: FaultName): readonly Target[] {
  const primary: Target = { kind: 'primary', partition: 'random' };
  const common: readonly Target[] = [
    primary,
    primary,
    { kind: 'control-leader' },
    { kind: 'replica', partition: 'random' },
    { kind: 'preferred-primary', partition: 'random' },
    { kind: 'random', count: 1 },
  ];
  switch (name) {
    case 'kill':
    case 'pause':
      return [...common, { kind: 'minority' }];
    case 'halves':
      return [{ kind: 'minority' }, primary, { kind: 'control-leader' }];
    case 'majorities-ring':
    case 'scale-out':
    case 'rolling-restart':
      return [{ kind: 'all' }];
    case 'scale-in':
      return [{ kind: 'random', count: 1 }];
    default:
      return common;
  }
}
