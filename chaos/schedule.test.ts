import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { defaultFaults, expandSchedule, healingTailMs } from './expand.ts';
import { faultName, faultNames, faultNamesOfWord, faultOfName, targetOfText, targetText } from './faults.ts';
import { formatSchedule, parseSchedule, ScheduleError } from './schedule-file.ts';
import { chaosLevels, type ChaosLevel, plannedOverlapShare, plannedWindows, type Schedule } from './schedule.ts';

const expand = (seed: number, level: ChaosLevel, durationMs: number, nodeCount = 5): Schedule =>
  expandSchedule({ seed, durationMs, level, faults: defaultFaults(level), nodeCount }, new Prng(seed));

const anyExpansion = fc.tuple(
  fc.integer({ min: 0, max: 0xffffffff }),
  fc.constantFrom(...chaosLevels),
  fc.constantFrom(60_000, 120_000, 1_200_000),
);

describe('expansion', () => {
  it('same seed, same schedule; another seed, another', () => {
    fc.assert(
      fc.property(anyExpansion, ([seed, level, durationMs]) => {
        expect(expand(seed, level, durationMs)).toEqual(expand(seed, level, durationMs));
        expect(expand(seed, level, durationMs).events).not.toEqual(expand((seed + 1) >>> 0, level, durationMs).events);
      }),
      { seed: 1, numRuns: 60 },
    );
  });

  it('ids are unique, references point to events, nothing planned is open in the healing part', () => {
    fc.assert(
      fc.property(anyExpansion, ([seed, level, durationMs]) => {
        const schedule = expand(seed, level, durationMs);
        const ids = schedule.events.map((event) => event.id);
        expect(new Set(ids).size).toBe(ids.length);
        expect(schedule.healFromMs).toBeLessThanOrEqual(durationMs - Math.min(10_000, durationMs / 2));
        for (const { moment, durationMs: holdMs } of schedule.events) {
          if (moment.kind === 'after-fault') expect(ids).toContain(moment.faultId);
          if (moment.kind === 'at') expect(moment.atMs + holdMs).toBeLessThanOrEqual(schedule.healFromMs);
        }
      }),
      { seed: 2, numRuns: 100 },
    );
  });

  it('standard and brutal: at least a quarter overlaps, by plan', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1e9 }),
        fc.constantFrom('standard' as const, 'brutal' as const),
        (seed, level) => {
          expect(plannedOverlapShare(expand(seed, level, 120_000))).toBeGreaterThanOrEqual(0.25);
          expect(plannedOverlapShare(expand(seed, level, 1_200_000))).toBeGreaterThanOrEqual(0.25);
        },
      ),
      { seed: 3, numRuns: 300 },
    );
  });

  it('two minutes at standard: enough of kill, pause and isolate, a long silence, several roles', () => {
    for (let seed = 0; seed < 300; seed++) {
      const { events } = expand(seed, 'standard', 120_000);
      const count = (name: string): number => events.filter((event) => faultName(event.fault) === name).length;
      expect(events.length, `seed ${seed}`).toBeGreaterThanOrEqual(9);
      expect(count('kill'), `seed ${seed}`).toBeGreaterThanOrEqual(2);
      expect(count('pause'), `seed ${seed}`).toBeGreaterThanOrEqual(1);
      expect(count('isolate'), `seed ${seed}`).toBeGreaterThanOrEqual(1);
      for (const event of events) {
        if (event.fault.kind !== 'kill') continue;
        expect(event.durationMs).toBeGreaterThanOrEqual(1_000);
        expect(event.durationMs).toBeLessThanOrEqual(4_000);
      }
    }
  });

  it('twenty minutes: every role of a kill, long and short pauses', () => {
    const { events } = expand(4, 'standard', 1_200_000);
    const roles = new Set(events.filter((event) => event.fault.kind === 'kill').map((event) => event.target.kind));
    for (const role of [
      'control-leader',
      'primary',
      'replica',
      'preferred-primary',
      'random',
      'minority',
      'joiner',
    ] as const) {
      expect(roles).toContain(role);
    }
    const pauses = events.filter((event) => event.fault.kind === 'pause').map((event) => event.durationMs);
    expect(pauses.some((ms) => ms > 11_000)).toBe(true);
    expect(pauses.some((ms) => ms < 6_000)).toBe(true);
  });

  it('four hours scale, and thirty brutal minutes hold every kind', () => {
    expect(expand(1, 'standard', 4 * 3_600_000).events.length).toBeGreaterThan(1_200);
    const names = new Set(expand(1, 'brutal', 1_800_000).events.map((event) => faultName(event.fault)));
    for (const name of faultNames) expect(names).toContain(name);
  });

  it('only the kinds asked for; a shape too big for the cluster is left out', () => {
    const options = { seed: 9, durationMs: 600_000, level: 'standard' as const, nodeCount: 3 };
    const schedule = expandSchedule({ ...options, faults: ['pause', 'majorities-ring'] }, new Prng(9));
    expect(new Set(schedule.events.map((event) => faultName(event.fault)))).toEqual(new Set(['pause']));
  });

  it('a short run keeps at least half of itself for faults', () => {
    expect(healingTailMs(10_000)).toBe(5_000);
    expect(healingTailMs(120_000)).toBe(18_000);
    expect(healingTailMs(14_400_000)).toBe(120_000);
  });
});

describe('the file', () => {
  it('is read back as it was written', () => {
    fc.assert(
      fc.property(anyExpansion, ([seed, level, durationMs]) => {
        const schedule = expand(seed, level, durationMs);
        expect(parseSchedule(formatSchedule(schedule))).toEqual(schedule);
      }),
      { seed: 5, numRuns: 40 },
    );
  });

  it('is read back with moments of the cluster too', () => {
    const moments = ['promoted', 'handoff-started'];
    const schedule = expandSchedule(
      { seed: 3, durationMs: 1_200_000, level: 'brutal', faults: faultNames, nodeCount: 5, moments },
      new Prng(3),
    );
    expect(schedule.events.some((event) => event.moment.kind === 'after-event')).toBe(true);
    expect(parseSchedule(formatSchedule(schedule))).toEqual(schedule);
  });

  it('a scenario by hand: short forms, workload, cluster, expectation', () => {
    const schedule = parseSchedule(`{
      "name": "primary dies while cut off", "durationMs": "1m", "expect": "certified",
      "workload": {"name": "registers", "sessions": 16}, "cluster": {"nodes": 5, "rf": 3, "ZARIS_SUSPECT_ESCALATION_MS": 10000},
      "events": [
        {"id": "cut", "at": "5s", "fault": "isolate", "target": "primary:7", "durationMs": "12s"},
        {"after": {"fault": "cut"}, "fault": {"kind": "kill"}, "target": "n3"},
        {"after": {"event": "ack", "count": 200, "since": "epoch", "partition": 7}, "fault": {"kind": "loss", "percent": 50}, "target": "control-leader"},
        {"at": 20000, "fault": {"kind": "partition", "shape": "halves", "clients": true}, "target": "minority"}
      ]}`);
    expect(schedule).toMatchObject({
      expect: 'certified',
      workload: { sessions: 16 },
      cluster: { rf: 3 },
      healFromMs: 50_000,
    });
    expect(schedule.events[0]).toEqual({
      id: 'cut',
      moment: { kind: 'at', atMs: 5_000 },
      fault: { kind: 'partition', shape: 'isolate', clients: false },
      target: { kind: 'primary', partition: 7 },
      durationMs: 12_000,
    });
    expect(schedule.events[1]).toMatchObject({
      id: 'e2',
      moment: { kind: 'after-fault', faultId: 'cut', stage: 'confirmed' },
      target: { kind: 'node', nodeId: 'n3' },
    });
    expect(schedule.events[2]!.moment).toEqual({
      kind: 'after-event',
      event: 'ack',
      partition: 7,
      count: 200,
      since: 'epoch',
      delayMs: 0,
    });
    expect(parseSchedule(formatSchedule(schedule))).toEqual(schedule);
    expect(plannedWindows(schedule).get('e2')).toEqual({ fromMs: 5_000, toMs: 10_000 });
  });

  const context = { nodeIds: ['n1', 'n2', 'n3'], partitionCount: 64 };
  const refused = (events: unknown[], rest: object = {}): string => {
    try {
      parseSchedule(JSON.stringify({ durationMs: 60_000, events, ...rest }), context);
    } catch (error) {
      expect(error).toBeInstanceOf(ScheduleError);
      return (error as Error).message;
    }
    return 'not refused';
  };
  const good = { at: 1_000, fault: 'kill', target: 'n1' };

  it('what cannot be meant is refused in one sentence with its place', () => {
    expect(refused([good])).toBe('not refused');
    expect(refused([good, good, good, { ...good, fault: 'kil' }])).toBe(
      `events[3].fault: unknown fault "kil"; known: ${faultNames.join(', ')}`,
    );
    expect(refused([{ ...good, fault: { kind: 'kil' } }])).toContain('events[0].fault: unknown fault "kil"');
    expect(refused([{ at: 1, target: 'n1' }])).toBe('events[0].fault: missing');
    expect(refused([{ ...good, fault: { kind: 'loss', percent: 'many' } }])).toBe(
      'events[0].fault.percent: expected number',
    );
    expect(refused([{ ...good, at: -5 }])).toBe('events[0].at: a time cannot be negative: -5');
    expect(refused([{ ...good, durationMs: '-2s' }])).toBe('events[0].durationMs: a time cannot be negative: "-2s"');
    expect(refused([{ ...good, durationMs: 1e300 }])).toBe('events[0].durationMs: a time is at most 336h, not 1e+300');
    expect(refused([{ ...good, at: 'soon' }])).toContain('events[0].at: expected milliseconds or a time such as "12s"');
    expect(refused([{ ...good, target: 'n9' }])).toContain(
      'events[0].target: there is no node "n9"; known: n1, n2, n3',
    );
    expect(refused([{ ...good, target: 'primary:64' }])).toBe(
      'events[0].target: there is no partition 64; this cluster has 0 to 63',
    );
    expect(refused([{ ...good, target: 'primary:x' }])).toContain('events[0].target: cannot read target "primary:x"');
    expect(refused([{ ...good, target: 'random:4' }])).toBe('events[0].target: 4 of 3 nodes cannot be drawn');
    expect(refused([{ ...good, tagret: 'n1' }])).toBe('events[0]: unknown field "tagret"');
    expect(refused([{ fault: 'kill', target: 'n1' }])).toBe('events[0]: needs "at" or "after"');
    expect(refused([{ ...good, after: { event: 'ack' } }])).toContain('events[0]: has both "at" and "after"');
    expect(refused([{ fault: 'kill', target: 'n1', after: {} }])).toContain('events[0].after: needs "event"');
    expect(refused([{ fault: 'kill', target: 'n1', after: { event: 'ack', count: 0 } }])).toContain(
      'events[0].after.count:',
    );
    expect(refused([{ fault: 'kill', target: 'n1', after: { fault: 'e9' } }])).toBe(
      'events[0].after.fault: there is no event "e9" in this schedule',
    );
    expect(
      refused([
        { ...good, id: 'a' },
        { ...good, id: 'a' },
      ]),
    ).toBe('events[1].id: "a" is taken by events[0]');
    expect(refused([{ ...good, at: 59_000 }])).toContain('events[0].at: 59000 ms is not before 50000 ms');
    expect(refused([good], { version: 2 })).toBe('version: expected 1');
    expect(refused([good], { expect: 'green' })).toContain('expect: expected "certified" or');
    expect(refused([good], { durationMs: undefined })).toBe('durationMs: missing');
    expect(() => parseSchedule('{')).toThrow(/^schedule: not JSON/);
    expect(() => parseSchedule('[]')).toThrow('schedule: expected object');
  });

  it('cycles of triggers', () => {
    const after = (id: string, fault: string): object => ({ id, after: { fault }, fault: 'kill', target: 'n1' });
    expect(refused([good, after('a', 'b'), after('b', 'c'), after('c', 'a')])).toBe(
      'events[1].after: a cycle of triggers, none of which can come first: a after b after c after a',
    );
    expect(refused([after('a', 'a')])).toContain('a after a');
    // One that leads into a cycle is not itself in it.
    expect(refused([after('x', 'a'), after('a', 'b'), after('b', 'a')])).toContain('events[1].after');
    expect(refused([{ ...good, id: 'a' }, after('b', 'a'), after('c', 'b')])).toBe('not refused');
  });
});

describe('words', () => {
  it('every fault has one name, every target one text', () => {
    for (const name of faultNames) expect(faultName(faultOfName(name))).toBe(name);
    for (const text of [
      'random',
      'random:2',
      'minority',
      'all',
      'control-leader',
      'primary',
      'primary:7',
      'joiner:0',
      'node:n3',
    ]) {
      expect(targetText(targetOfText(text)!)).toBe(text);
    }
    for (const text of ['random:0', 'primary:x', 'all:1', 'node:', 'n3', '']) expect(targetOfText(text)).toBeNull();
    expect(faultNamesOfWord('partition')).toHaveLength(6);
    expect(faultNamesOfWord('restart')).toEqual(['stop']);
    expect(faultNamesOfWord('kil')).toBeNull();
    expect(faultNamesOfWord('toString')).toBeNull();
  });
});
