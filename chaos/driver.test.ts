import { describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { type ChaosOptions, type ChaosOutcome, startChaos } from './driver.ts';
import { defaultFaults, expandSchedule } from './expand.ts';
import type { FaultRecord } from './journal.ts';
import type { ClusterEvent, EventSource } from './ports.ts';
import { parseSchedule } from './schedule-file.ts';
import type { Schedule } from './schedule.ts';
import { storiesOf, summarize } from './summary.ts';
import { MemoryCluster, type MemoryClusterOptions } from './testing/memory-cluster.ts';
import { VirtualTime } from './testing/virtual-time.ts';

const silentEvents: EventSource = { subscribe: () => () => undefined };

interface World {
  readonly time: VirtualTime;
  readonly cluster: MemoryCluster;
  readonly records: FaultRecord[];
  readonly options: ChaosOptions;
}

function world(
  schedule: Schedule,
  settings: Partial<MemoryClusterOptions> & Partial<Pick<ChaosOptions, 'events' | 'policy'>> = {},
  makeCluster: (options: MemoryClusterOptions) => MemoryCluster = (options) => new MemoryCluster(options),
): World {
  const time = new VirtualTime();
  const { events, policy, ...rest } = settings;
  const cluster = makeCluster({
    nodeCount: 5,
    partitionCount: 16,
    replicationFactor: 3,
    catchUpMs: 1_500,
    clock: time,
    sleeper: time,
    ...rest,
  });
  time.every(100, () => cluster.tick());
  const records: FaultRecord[] = [];
  const options: ChaosOptions = {
    schedule,
    cluster,
    status: cluster,
    journal: {
      append: async (record) => {
        await time.sleep(2);
        records.push(record);
      },
    },
    events: events ?? silentEvents,
    clock: time,
    sleeper: time,
    prng: new Prng(schedule.seed).fork('driver'),
    ...(policy === undefined ? {} : { policy }),
  };
  return { time, cluster, records, options };
}

async function play(made: World): Promise<ChaosOutcome> {
  return made.time.run(startChaos(made.options).done);
}

const scenario = (events: unknown[], durationMs = 60_000): Schedule =>
  parseSchedule(JSON.stringify({ seed: 1, durationMs, healFromMs: durationMs - 10_000, events }));

const stepsOf = (records: readonly FaultRecord[], faultId: string): string[] =>
  records.filter((record) => record.faultId === faultId).map((record) => record.step);

const wholeLife = ['planned', 'injecting', 'injected', 'confirmed', 'healing', 'healed', 'heal-verified'];

describe('one fault', () => {
  for (const fault of ['kill', 'stop', 'pause', 'oom', 'wipe', 'isolate', 'halves', 'one-way-in', 'one-way-out', 'client-partition', 'reset', 'loss', 'latency', 'bandwidth', 'clock']) {
    it(`${fault}: goes through its whole life, and bites`, async () => {
      const made = world(scenario([{ at: 1_000, fault, target: 'n2', durationMs: 2_000 }]));
      const outcome = await play(made);
      expect(stepsOf(made.records, 'e1')).toEqual(wholeLife);
      expect(outcome.isHealed).toBe(true);
      expect(outcome.environmentErrors).toEqual([]);
      expect(made.cluster.isUnhurt()).toBe(true);
      const injected = made.records.find((record) => record.step === 'injected')!;
      const healing = made.records.find((record) => record.step === 'healing')!;
      expect(healing.atMs - injected.atMs).toBeGreaterThanOrEqual(1_990);
    });
  }

  for (const fault of ['majorities-ring', 'bridge']) {
    it(`${fault}: lives on a whole cluster`, async () => {
      const made = world(scenario([{ at: 1_000, fault, target: 'all', durationMs: 2_000 }]));
      await play(made);
      expect(stepsOf(made.records, 'e1')).toEqual(wholeLife);
      expect(made.cluster.isUnhurt()).toBe(true);
    });
  }

  it('scale-out and scale-in are not undone', async () => {
    const made = world(scenario([{ at: 1_000, fault: 'scale-out', target: 'all' }, { at: 5_000, fault: 'scale-in', target: 'n6' }]));
    const outcome = await play(made);
    expect(stepsOf(made.records, 'e1')).toEqual(wholeLife);
    expect(stepsOf(made.records, 'e2')).toEqual(wholeLife);
    expect(outcome.isHealed).toBe(true);
    expect(made.cluster.nodeIds()).toHaveLength(5);
  });

  it('rolling-restart: every node gets a new incarnation, nothing is lost', async () => {
    const made = world(scenario([{ at: 1_000, fault: 'rolling-restart', target: 'all' }]));
    const outcome = await play(made);
    expect(outcome.isHealed).toBe(true);
    expect(stepsOf(made.records, 'e1')).toContain('confirmed');
    expect([...made.cluster.nodes.values()].map((node) => node.incarnation)).toEqual([2, 2, 2, 2, 2]);
    expect(made.cluster.lostPartitions()).toEqual([]);
  });

  it('announces in the journal before it acts', async () => {
    const made = world(scenario([{ at: 1_000, fault: 'kill', target: 'n2', durationMs: 1_000 }]));
    const seen: string[] = [];
    const { journal } = made.options;
    await play({
      ...made,
      options: {
        ...made.options,
        journal: {
          append: async (record) => {
            seen.push(`${record.step} while ${made.cluster.nodes.get('n2')!.state.kind}`);
            await journal.append(record);
          },
        },
      },
    });
    expect(seen).toEqual([
      'planned while running',
      'injecting while running',
      'injected while exited',
      'confirmed while exited',
      'healing while exited',
      'healed while running',
      'heal-verified while running',
    ]);
  });
});

describe('twins: a fault that does not take hold is never confirmed', () => {
  class DeafCluster extends MemoryCluster {
    override async kill(): Promise<void> {}
    override async stop(): Promise<void> {}
    override async oom(nodeId: string): Promise<void> {
      // Dead, but not by the kernel's hand.
      this.end(nodeId, 1, false);
    }
    override async pause(nodeId: string): Promise<void> {
      // The engine says paused; the process goes on.
      this.said.add(nodeId);
    }
    override async setLinkRules(): Promise<void> {}
    override async setClockOffset(): Promise<void> {}
    readonly said = new Set<string>();
  }
  for (const fault of ['kill', 'stop', 'pause', 'oom', 'isolate', 'halves', 'one-way-in', 'one-way-out', 'client-partition', 'reset', 'loss', 'latency', 'bandwidth', 'clock']) {
    it(fault, async () => {
      const made = world(scenario([{ at: 1_000, fault, target: 'n2', durationMs: 2_000 }]), {}, (options) => new DeafCluster(options));
      const outcome = await play(made);
      expect(stepsOf(made.records, 'e1')).toContain('unconfirmed');
      expect(stepsOf(made.records, 'e1')).not.toContain('confirmed');
      expect(stepsOf(made.records, 'e1')).toContain('healed');
      expect(outcome.isHealed).toBe(true);
      expect(summarize(storiesOf(made.records)).confirmed).toBe(0);
    });
  }

  it('a one-way cut that cuts both ways is not confirmed as one-way', async () => {
    class BothWays extends MemoryCluster {
      override setLinkRules(rules: Parameters<MemoryCluster['setLinkRules']>[0]): Promise<void> {
        return super.setLinkRules(rules.flatMap((rule) => [rule, { ...rule, from: rule.to, to: rule.from }]));
      }
    }
    const made = world(scenario([{ at: 1_000, fault: 'one-way-in', target: 'n2', durationMs: 2_000 }]), {}, (options) => new BothWays(options));
    await play(made);
    expect(stepsOf(made.records, 'e1')).not.toContain('confirmed');
  });

  it('a heal that does not take hold is not verified', async () => {
    class Sticky extends MemoryCluster {
      override async setLinkRules(rules: Parameters<MemoryCluster['setLinkRules']>[0]): Promise<void> {
        if (rules.length > 0) await super.setLinkRules(rules);
      }
    }
    const made = world(scenario([{ at: 1_000, fault: 'isolate', target: 'n2', durationMs: 2_000 }]), {}, (options) => new Sticky(options));
    const outcome = await play(made);
    expect(stepsOf(made.records, 'e1').at(-1)).toBe('heal-unverified');
    expect(outcome.isHealed).toBe(false);
  });

  it('a node that was down before is not counted as killed', async () => {
    const made = world(scenario([{ at: 1_000, fault: 'isolate', target: 'n2', durationMs: 30_000 }], 50_000));
    // The node dies by itself, before the fault.
    made.time.at(500, () => {
      const node = made.cluster.nodes.get('n2')!;
      node.state = { kind: 'exited', instance: 'n2#1', exitCode: 1, oomKilled: false };
    });
    await play(made);
    const story = storiesOf(made.records)[0]!;
    expect(story.nodeIds).not.toContain('n2');
  });
});

describe('overlap', () => {
  it('a node restarted inside a cut stays cut, and each heal is its own', async () => {
    const made = world(
      scenario([
        { id: 'cut', at: 1_000, fault: 'isolate', target: 'n2', durationMs: 12_000 },
        { id: 'kill', at: 3_000, fault: 'kill', target: 'n2', durationMs: 2_000 },
      ]),
    );
    const during: boolean[] = [];
    made.time.at(8_000, () => during.push(made.cluster.rules.some((rule) => rule.from === 'n2' && rule.to === 'n1')));
    const outcome = await play(made);
    expect(during).toEqual([true]);
    expect(stepsOf(made.records, 'kill')).toEqual(wholeLife);
    expect(stepsOf(made.records, 'cut')).toEqual(wholeLife);
    expect(outcome.isHealed).toBe(true);
    expect(summarize(storiesOf(made.records)).overlapShare).toBe(1);
  });

  it('a kill on a frozen node: the restarted process is frozen until the pause ends', async () => {
    const made = world(
      scenario([
        { id: 'pause', at: 1_000, fault: 'pause', target: 'n2', durationMs: 12_000 },
        { id: 'kill', at: 3_000, fault: 'kill', target: 'n2', durationMs: 2_000 },
      ]),
    );
    const during: string[] = [];
    made.time.at(9_000, () => during.push(made.cluster.nodes.get('n2')!.state.kind));
    const outcome = await play(made);
    expect(during).toEqual(['paused']);
    expect(outcome.isHealed).toBe(true);
    expect(made.cluster.isUnhurt()).toBe(true);
  });

  it('what the budget denies is changed to the nearest, and says so', async () => {
    const made = world(
      scenario([
        { at: 1_000, fault: 'kill', target: 'n1', durationMs: 4_000 },
        { at: 1_600, fault: 'kill', target: 'n2', durationMs: 4_000 },
        { at: 2_200, fault: 'kill', target: 'n3', durationMs: 4_000 },
      ]),
    );
    await play(made);
    expect(stepsOf(made.records, 'e1')).toEqual(wholeLife);
    const third = storiesOf(made.records)[2]!;
    // With n1 and n2 down n3 holds the last copy of partition 0, and two of five voters are gone already.
    expect(third.change !== null || third.life.kind === 'skipped' || third.nodeIds[0] === 'n3').toBe(true);
    expect(made.cluster.lostPartitions()).toEqual([]);
  });
});

describe('triggers', () => {
  it('a fault waits for a stage of another', async () => {
    const made = world(
      scenario([
        { id: 'first', at: 1_000, fault: 'kill', target: 'n1', durationMs: 1_000 },
        { id: 'second', after: { fault: 'first', stage: 'heal-verified', delayMs: 100 }, fault: 'kill', target: 'joiner', durationMs: 1_000 },
      ]),
    );
    await play(made);
    const second = storiesOf(made.records)[1]!;
    expect(second.nodeIds).toEqual(['n1']);
    expect(second.life.kind).toBe('heal-verified');
  });

  it('a fault waits for a moment of the cluster, and takes its partition', async () => {
    const listeners = new Set<(event: ClusterEvent) => void>();
    const events: EventSource = {
      subscribe: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    const made = world(
      scenario([{ after: { event: 'ack', count: 3, since: 'epoch', partition: 7 }, fault: 'kill', target: 'primary', durationMs: 1_000 }]),
      { events },
    );
    const emit = (name: string, partition: number): void => {
      for (const listener of listeners) listener({ name, fields: { partition }, nodeId: 'n1', atMs: made.time.nowMs() });
    };
    for (const delay of [1_000, 1_100, 1_200, 1_300]) made.time.at(delay, () => emit('ack', 7));
    made.time.at(2_000, () => emit('epoch', 7));
    for (const delay of [2_100, 2_200]) made.time.at(delay, () => emit('ack', 7));
    for (const delay of [2_300, 2_400, 2_500]) made.time.at(delay, () => emit('ack', 8));
    made.time.at(20_000, () => emit('ack', 7));
    await play(made);
    const story = storiesOf(made.records)[0]!;
    expect(story.partition).toBe(7);
    expect(made.records.find((record) => record.step === 'injecting')!.atMs).toBeGreaterThan(20_000);
    expect(listeners.size).toBe(0);
  });

  it('one whose moment never comes is skipped, with its reason', async () => {
    const made = world(scenario([{ after: { event: 'handoff' }, fault: 'kill', target: 'random' }]));
    await play(made);
    expect(storiesOf(made.records)[0]!.life.kind).toBe('skipped');
  });
});

describe('trouble', () => {
  it('no status: nothing is injected', async () => {
    const made = world(scenario([{ at: 1_000, fault: 'kill', target: 'n1' }]));
    await play({ ...made, options: { ...made.options, status: { status: async () => null } } });
    expect(stepsOf(made.records, 'e1')).toEqual(['planned', 'skipped']);
    expect(made.cluster.nodes.get('n1')!.incarnation).toBe(1);
  });

  it('a cluster that cannot: environment error, healed all the same', async () => {
    class Broken extends MemoryCluster {
      override async kill(): Promise<void> {
        throw new Error('the engine does not answer');
      }
    }
    const made = world(scenario([{ at: 1_000, fault: 'kill', target: 'n1' }]), {}, (options) => new Broken(options));
    const outcome = await play(made);
    expect(outcome.environmentErrors.join()).toContain('the engine does not answer');
    expect(stepsOf(made.records, 'e1')).toEqual(['planned', 'injecting', 'failed', 'healing', 'healed', 'heal-verified']);
    expect(outcome.isHealed).toBe(true);
  });

  it('a call that never returns ends at its bound', async () => {
    class Hanging extends MemoryCluster {
      override pause(): Promise<void> {
        return new Promise(() => undefined);
      }
    }
    const made = world(scenario([{ at: 1_000, fault: 'pause', target: 'n1' }]), {}, (options) => new Hanging(options));
    const outcome = await play({ ...made, options: { ...made.options, fieldBounds: { callTimeoutMs: 2_000 } } });
    expect(outcome.environmentErrors.join()).toContain('no answer within 2000 ms');
    expect(outcome.isHealed).toBe(true);
  });

  it('what the host cannot do is skipped with its reason', async () => {
    class Poor extends MemoryCluster {
      override unsupported(): Promise<ReadonlyMap<string, string>> {
        return Promise.resolve(new Map([['latency', 'this kernel has no netem']]));
      }
    }
    const made = world(scenario([{ at: 1_000, fault: 'latency', target: 'n1' }]), {}, (options) => new Poor(options));
    await play(made);
    expect(storiesOf(made.records)[0]!.life).toEqual({ kind: 'skipped', reason: 'this kernel has no netem' });
  });

  it('a journal that cannot be written stops everything, healed', async () => {
    const made = world(scenario([{ at: 1_000, fault: 'pause', target: 'n1', durationMs: 5_000 }, { at: 2_000, fault: 'isolate', target: 'n2', durationMs: 20_000 }]));
    let count = 0;
    const journal = {
      append: (): Promise<void> => (++count > 8 ? Promise.reject(new Error('disk full')) : Promise.resolve()),
    };
    await expect(play({ ...made, options: { ...made.options, journal } })).rejects.toThrow('disk full');
    expect(made.cluster.isUnhurt()).toBe(true);
  });
});

describe('seeded runs', () => {
  const planned = (seed: number, level: 'standard' | 'brutal', durationMs = 120_000): Schedule =>
    expandSchedule({ seed, durationMs, level, faults: defaultFaults(level), nodeCount: 5 }, new Prng(seed));

  for (const seed of [1, 2, 3, 4, 5, 6]) {
    it(`two minutes at standard, seed ${seed}: dense enough, nothing lost, everything healed`, async () => {
      const made = world(planned(seed, 'standard'));
      const outcome = await play(made);
      const summary = summarize(storiesOf(made.records));
      expect(made.cluster.lostPartitions()).toEqual([]);
      expect(outcome.overshoots).toEqual([]);
      expect(outcome.isHealed).toBe(true);
      expect(made.cluster.isUnhurt()).toBe(true);
      expect(summary.confirmed).toBeGreaterThanOrEqual(6);
      expect(summary.healVerified).toBe(summary.confirmed);
      expect(summary.overlapShare).toBeGreaterThanOrEqual(0.25);
      expect(made.cluster.failovers).toBeGreaterThanOrEqual(3);
      for (const name of ['kill', 'pause', 'isolate']) {
        expect(summary.matrix.some((cell) => cell.fault === name && cell.confirmed > 0), name).toBe(true);
      }
    });
  }

  for (const [seed, nodeCount, replicationFactor] of [[11, 5, 3], [12, 3, 3], [13, 5, 2], [14, 7, 3], [15, 3, 2], [16, 5, 1]] as const) {
    it(`brutal, seed ${seed}, ${nodeCount} nodes, rf ${replicationFactor}: nothing lost`, async () => {
      const made = world(planned(seed, 'brutal', 240_000), { nodeCount, replicationFactor, policy: { mayStall: true } });
      const outcome = await play(made);
      expect(made.cluster.lostPartitions()).toEqual([]);
      expect(outcome.overshoots).toEqual([]);
      expect(outcome.isHealed).toBe(true);
    });
  }

  it('heals everything on stop, at any moment', async () => {
    const prng = new Prng(77);
    for (let round = 0; round < 25; round++) {
      const made = world(planned(round, 'brutal', 60_000));
      const run = startChaos(made.options);
      made.time.at(prng.between(0, 55_000), () => void run.stop('interrupted'));
      const outcome = await made.time.run(run.done);
      expect(outcome.isHealed, `round ${round}`).toBe(true);
      expect(made.cluster.isUnhurt(), `round ${round}`).toBe(true);
      expect(made.cluster.lostPartitions()).toEqual([]);
    }
  });

  it('plans in the order of the schedule, the same on every cluster', async () => {
    const schedule = planned(5, 'standard');
    const plans = [];
    for (const catchUpMs of [200, 4_000]) {
      const made = world(schedule, { catchUpMs });
      await play(made);
      plans.push(made.records.filter((record) => record.step === 'planned').map((record) => record.faultId));
    }
    expect(plans[0]).toEqual(schedule.events.map((event) => event.id));
    expect(plans[1]).toEqual(plans[0]);
  });
});
