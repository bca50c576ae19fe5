/**
 * The schedule as a file: JSON in, {@link Schedule} out, and back.
 *
 * Invariant: what is written is read back equal; what cannot be meant is refused with one sentence that names its place. If a
 * typo were read as something milder, a scenario would pass without having happened.
 *
 * Short forms for people: a fault may be its name, a target may be text (`control-leader`, `primary:7`, `n3`), a time may be
 * text (`1.5s`, `4m`).
 */
import { z } from 'zod';
import { unreachable } from '../lib/assert.ts';
import {
  defaultGraceMs,
  type Fault,
  faultNames,
  faultOfName,
  isPermanent,
  partitionShapes,
  type Target,
  targetKinds,
  targetOfText,
  targetText,
} from './faults.ts';
import {
  chaosLevels,
  expectableVerdicts,
  type Moment,
  type Schedule,
  type ScheduleEvent,
  scheduleVersion,
  triggerStages,
} from './schedule.ts';
import { healingTailMs } from './expand.ts';

/** A schedule that cannot be meant; the message is one sentence with the place in the file. A usage error (exit 64). */
export class ScheduleError extends Error {
  override readonly name = 'ScheduleError';
}

/** What the run knows about its cluster, to check targets against. */
export interface ScheduleContext {
  readonly nodeIds?: readonly string[];
  readonly partitionCount?: number;
}

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** No run is longer, and beyond a few weeks a timer strikes at once. */
const maxTimeMs = 14 * 24 * 3_600_000;

const timeMs = z.any().transform((value, context): number => {
  const match = typeof value === 'string' ? /^(-?\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(value) : null;
  const ms = match === null ? value : Number(match[1]) * (unitsMs[match[2] ?? ''] ?? Number.NaN);
  const refuse = (message: string): never => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  if (value === undefined) return refuse('missing');
  if (typeof ms !== 'number' || !Number.isFinite(ms)) {
    return refuse(`expected milliseconds or a time such as "12s", not ${JSON.stringify(value)}`);
  }
  if (ms > maxTimeMs) return refuse(`a time is at most ${maxTimeMs / 3_600_000}h, not ${JSON.stringify(value)}`);
  return ms < 0 ? refuse(`a time cannot be negative: ${JSON.stringify(value)}`) : ms;
});

const percent = z.number().min(1).max(100);
const graceMs = timeMs.default(defaultGraceMs);
const faultObjects = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(['kill', 'pause', 'oom', 'client-partition', 'reset', 'wipe', 'scale-out']) }),
  z.strictObject({
    kind: z.enum(['stop', 'scale-in', 'rolling-restart']),
    graceMs: z.optional(graceMs).default(defaultGraceMs),
  }),
  z.strictObject({ kind: z.literal('partition'), shape: z.enum(partitionShapes), clients: z.boolean().default(false) }),
  z.strictObject({ kind: z.literal('loss'), percent }),
  z.strictObject({ kind: z.literal('latency'), delayMs: z.number().min(0), jitterMs: z.number().min(0).default(0) }),
  z.strictObject({ kind: z.literal('bandwidth'), bytesPerSecond: z.number().positive() }),
  z.strictObject({ kind: z.literal('clock'), offsetMs: z.number() }),
]);

/** Refuses a name that is none, before the union can say something vaguer; texts become objects. */
const fault = z
  .any()
  .transform((value, context): unknown => {
    if (value === undefined) {
      context.addIssue({ code: 'custom', message: 'missing' });
      return z.NEVER;
    }
    const named = typeof value === 'string' ? value : (value as { kind?: unknown } | null)?.kind;
    const isObject = typeof value === 'object' && value !== null;
    const known = faultNames.find((name) => name === named);
    if (known === undefined && !(isObject && named === 'partition')) {
      context.addIssue({
        code: 'custom',
        message: `unknown fault ${JSON.stringify(named)}; known: ${faultNames.join(', ')}`,
      });
      return z.NEVER;
    }
    if (known === undefined) return value;
    const usual = faultOfName(known);
    // An object may name a shape as its kind; what it leaves out is as usual.
    return isObject ? { ...usual, ...(value as object), kind: usual.kind } : usual;
  })
  .pipe(faultObjects) as unknown as z.ZodType<Fault>;

const target = z.any().transform((value, context): Target => {
  const refuse = (message: string): never => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  if (value === undefined) return refuse('missing');
  if (typeof value !== 'string') return refuse(`expected text such as "control-leader", not ${JSON.stringify(value)}`);
  const meant = targetOfText(value);
  if (meant !== null) return meant;
  const head = value.split(':')[0] ?? '';
  if (targetKinds.some((kind) => kind === head))
    return refuse(`cannot read target "${value}"; write "${head}" or "${head}:7"`);
  return { kind: 'node', nodeId: value };
});

const after = z.union([
  z.strictObject({ fault: z.string(), stage: z.enum(triggerStages).default('confirmed'), delayMs: timeMs.default(0) }),
  z.strictObject({
    event: z.string().min(1),
    partition: z.number().int().min(0).optional(),
    count: z.number().int().min(1).default(1),
    since: z.string().min(1).optional(),
    delayMs: timeMs.default(0),
  }),
]);

const setting = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));

const eventObject = z.strictObject({
  id: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/, 'an id is made of letters, digits, - and _')
    .optional(),
  at: timeMs.optional(),
  after: z.any().optional(),
  fault,
  target,
  durationMs: timeMs.optional(),
});

const fileObject = z.strictObject({
  version: z.literal(scheduleVersion).default(scheduleVersion),
  name: z.string().nullable().default(null),
  seed: z.number().int().min(0).max(0xffffffff).default(0),
  level: z.enum(chaosLevels).nullable().default(null),
  durationMs: timeMs,
  healFromMs: timeMs.optional(),
  events: z.array(eventObject),
  expect: z.enum(expectableVerdicts).nullable().default(null),
  workload: setting.default({}),
  cluster: setting.default({}),
});

/** Hold time of a hand-written fault that names none. */
const defaultDurationMs = 5_000;

/** Reads a schedule's text. Throws {@link ScheduleError}. */
export function parseSchedule(text: string, context: ScheduleContext = {}): Schedule {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new ScheduleError(`schedule: not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const file = checked(fileObject, json, []);
  const healFromMs = file.healFromMs ?? file.durationMs - healingTailMs(file.durationMs);
  if (healFromMs > file.durationMs) throw new ScheduleError('healFromMs: must not lie behind durationMs');
  const events = file.events.map((event, index): ScheduleEvent => ({
    id: event.id ?? `e${index + 1}`,
    moment: momentOf(event, index),
    fault: event.fault,
    target: event.target,
    durationMs:
      isPermanent(event.fault) || event.fault.kind === 'rolling-restart' ? 0 : (event.durationMs ?? defaultDurationMs),
  }));
  const schedule: Schedule = { ...file, healFromMs, events };
  checkIds(events);
  checkTimes(schedule);
  checkCycles(events);
  checkTargets(events, context);
  return schedule;
}

function momentOf(event: z.infer<typeof eventObject>, index: number): Moment {
  const place = `events[${index}]`;
  if (event.after === undefined) {
    if (event.at === undefined) throw new ScheduleError(`${place}: needs "at" or "after"`);
    return { kind: 'at', atMs: event.at };
  }
  if (event.at !== undefined) throw new ScheduleError(`${place}: has both "at" and "after"; one of them must go`);
  const raw: unknown = event.after;
  if (typeof raw !== 'object' || raw === null || (!('fault' in raw) && !('event' in raw))) {
    throw new ScheduleError(
      `${place}.after: needs "event" (something the cluster says) or "fault" (the id of another event)`,
    );
  }
  const parsed = checked('fault' in raw ? after.options[0] : after.options[1], raw, ['events', index, 'after']);
  if ('fault' in parsed)
    return { kind: 'after-fault', faultId: parsed.fault, stage: parsed.stage, delayMs: parsed.delayMs };
  return {
    kind: 'after-event',
    event: parsed.event,
    partition: parsed.partition ?? null,
    count: parsed.count,
    since: parsed.since ?? null,
    delayMs: parsed.delayMs,
  };
}

function checked<T extends z.ZodType>(schema: T, value: unknown, at: readonly PropertyKey[]): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  if (issue === undefined) throw new ScheduleError('schedule: cannot be read');
  const place = placeText([...at, ...issue.path]);
  throw new ScheduleError(`${place === '' ? 'schedule' : place}: ${sentence(issue)}`);
}

function sentence(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return `unknown field ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}`;
    case 'invalid_value':
      return `expected ${issue.values.map((one) => JSON.stringify(one)).join(' or ')}`;
    case 'invalid_type':
      return `expected ${issue.expected}`;
    default:
      return issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
  }
}

function placeText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? String(step) : `.${String(step)}`;
  }
  return text;
}

function checkIds(events: readonly ScheduleEvent[]): void {
  const seen = new Map<string, number>();
  events.forEach((event, index) => {
    const other = seen.get(event.id);
    if (other !== undefined) throw new ScheduleError(`events[${index}].id: "${event.id}" is taken by events[${other}]`);
    seen.set(event.id, index);
  });
  events.forEach(({ moment }, index) => {
    if (moment.kind === 'after-fault' && !seen.has(moment.faultId)) {
      throw new ScheduleError(`events[${index}].after.fault: there is no event "${moment.faultId}" in this schedule`);
    }
  });
}

function checkTimes(schedule: Schedule): void {
  schedule.events.forEach(({ moment }, index) => {
    if (moment.kind === 'at' && moment.atMs >= schedule.healFromMs) {
      throw new ScheduleError(
        `events[${index}].at: ${moment.atMs} ms is not before ${schedule.healFromMs} ms, where healing begins (healFromMs)`,
      );
    }
  });
}

function checkCycles(events: readonly ScheduleEvent[]): void {
  const byId = new Map(events.map((event) => [event.id, event]));
  events.forEach((event, index) => {
    const path = [event.id];
    let { moment } = event;
    while (moment.kind === 'after-fault') {
      path.push(moment.faultId);
      if (moment.faultId === event.id) {
        throw new ScheduleError(
          `events[${index}].after: a cycle of triggers, none of which can come first: ${path.join(' after ')}`,
        );
      }
      if (path.length > events.length + 1) break;
      const next = byId.get(moment.faultId);
      if (next === undefined) break;
      moment = next.moment;
    }
  });
}

function checkTargets(events: readonly ScheduleEvent[], context: ScheduleContext): void {
  events.forEach(({ target: aim, moment }, index) => {
    const { nodeIds, partitionCount } = context;
    if (aim.kind === 'node' && nodeIds !== undefined && !nodeIds.includes(aim.nodeId)) {
      throw new ScheduleError(
        `events[${index}].target: there is no node "${aim.nodeId}"; known: ${nodeIds.join(', ')}, or a role: ${targetKinds.filter((kind) => kind !== 'node').join(', ')}`,
      );
    }
    if (aim.kind === 'random' && nodeIds !== undefined && aim.count > nodeIds.length) {
      throw new ScheduleError(`events[${index}].target: ${aim.count} of ${nodeIds.length} nodes cannot be drawn`);
    }
    const numbered: [string, number | 'random' | null][] = [
      ['target', 'partition' in aim ? aim.partition : null],
      ['after.partition', moment.kind === 'after-event' ? moment.partition : null],
    ];
    for (const [place, partition] of numbered) {
      if (typeof partition === 'number' && partitionCount !== undefined && partition >= partitionCount) {
        throw new ScheduleError(
          `events[${index}].${place}: there is no partition ${partition}; this cluster has 0 to ${partitionCount - 1}`,
        );
      }
    }
  });
}

/** The file's text; {@link parseSchedule} gives the same schedule back. */
export function formatSchedule(schedule: Schedule): string {
  const events = schedule.events.map((event) => ({
    id: event.id,
    ...momentJson(event.moment),
    fault: event.fault,
    target: targetText(event.target),
    durationMs: event.durationMs,
  }));
  return `${JSON.stringify({ ...schedule, events }, null, 2)}\n`;
}

function momentJson(moment: Moment): object {
  switch (moment.kind) {
    case 'at':
      return { at: moment.atMs };
    case 'after-fault':
      return { after: { fault: moment.faultId, stage: moment.stage, delayMs: moment.delayMs } };
    case 'after-event':
      return {
        after: {
          event: moment.event,
          ...(moment.partition === null ? {} : { partition: moment.partition }),
          count: moment.count,
          ...(moment.since === null ? {} : { since: moment.since }),
          delayMs: moment.delayMs,
        },
      };
    default:
      return unreachable(moment, 'moment');
  }
}
