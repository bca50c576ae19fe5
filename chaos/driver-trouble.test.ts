import { describe, expect, it } from 'vitest';
import type { ChaosOptions } from './driver.ts';
import type { ClusterEvent, EventSource } from './ports.ts';
import { storiesOf, summarize } from './summary.ts';
import { MemoryCluster } from './testing/memory-cluster.ts';
import { play, scenario, stepsOf, wholeLife, world } from './testing/world.ts';

describe('overlap', () => {
  it('a node that was just added belongs to its addition until that was seen', async () => {
    class Slow extends MemoryCluster {
      override async probeNode(nodeId: string): ReturnType<MemoryCluster['probeNode']> {
        const answer = await super.probeNode(nodeId);
        // Its process runs, and it answers only a while later.
        return nodeId === 'n6' && made.time.nowMs() < startMs + 3_000 ? { ...answer, outcome: 'unreachable' } : answer;
      }
    }
    const made = world(
      scenario([
        { id: 'more', at: 1_000, fault: 'scale-out', target: 'all' },
        { id: 'kill', at: 1_300, fault: 'kill', target: 'n6', durationMs: 9_000 },
      ]),
      {},
      (options) => new Slow(options),
    );
    const startMs = made.time.nowMs();
    await play(made);
    expect(stepsOf(made.records, 'more')).toContain('confirmed');
    expect(stepsOf(made.records, 'kill')).toEqual(expect.arrayContaining(wholeLife));
  });

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

  it('a cluster that forgets a cut at a restart is told again', async () => {
    class Forgetful extends MemoryCluster {
      override async startNode(nodeId: string): Promise<void> {
        await super.startNode(nodeId);
        this.rules = this.rules.filter((rule) => rule.from !== nodeId && rule.to !== nodeId);
      }
    }
    const made = world(
      scenario([
        { id: 'cut', at: 1_000, fault: 'isolate', target: 'n2', durationMs: 12_000 },
        { id: 'kill', at: 3_000, fault: 'kill', target: 'n2', durationMs: 2_000 },
      ]),
      {},
      (options) => new Forgetful(options),
    );
    const during: number[] = [];
    made.time.at(8_000, () => during.push(made.cluster.rules.length));
    await play(made);
    expect(during).toEqual([8]);
  });

  it('two faults for one node at one moment: each is looked for on its own', async () => {
    for (const [first, second] of [
      ['isolate', 'pause'],
      ['pause', 'isolate'],
      ['isolate', 'kill'],
    ] as const) {
      const made = world(
        scenario([
          { at: 1_000, fault: first, target: 'n2', durationMs: 5_000 },
          { at: 1_000, fault: second, target: 'n2', durationMs: 5_000 },
        ]),
      );
      await play(made);
      expect(summarize(storiesOf(made.records)), `${first}, ${second}`).toMatchObject({ confirmed: 2, unconfirmed: 0 });
    }
  });

  it('another kind stands in only after half of the wait, other nodes at once', async () => {
    const sole = (made: ReturnType<typeof world>): ChaosOptions['status'] => ({
      status: async () => {
        const now = await made.cluster.status();
        return (
          now && { ...now, partitions: now.partitions.map((one) => ({ ...one, inSync: one.replicas.slice(0, 1) })) }
        );
      },
    });
    const made = world(scenario([{ at: 1_000, fault: 'kill', target: 'n1', durationMs: 2_000 }]), {
      policy: { mayStall: true },
    });
    await play({ ...made, options: { ...made.options, status: sole(made) } });
    const injecting = made.records.find((record) => record.step === 'injecting')!;
    expect(injecting).toMatchObject({ fault: { kind: 'pause' }, nodeIds: ['n1'] });
    expect(injecting.atMs).toBeGreaterThan(2_000 + 7_000);
    expect(storiesOf(made.records)[0]!.change).toContain('would keep no copy');
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
        {
          id: 'second',
          after: { fault: 'first', stage: 'heal-verified', delayMs: 100 },
          fault: 'kill',
          target: 'joiner',
          durationMs: 1_000,
        },
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
      scenario([
        {
          after: { event: 'ack', count: 3, since: 'epoch', partition: 7 },
          fault: 'kill',
          target: 'primary',
          durationMs: 1_000,
        },
      ]),
      { events },
    );
    const emit = (name: string, partition: number): void => {
      for (const listener of listeners)
        listener({ name, fields: { partition }, nodeId: 'n1', atMs: made.time.nowMs() });
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

  it('the budget is judged again right before the injection', async () => {
    const made = world(scenario([{ at: 1_000, fault: 'kill', target: 'n1', durationMs: 2_000 }]));
    let reads = 0;
    const status: ChaosOptions['status'] = {
      status: async () => {
        const now = await made.cluster.status();
        // Only the first look is a rosy one: by the second n1 holds the last copy of partition 0.
        if (now === null || ++reads === 1) return now;
        return {
          ...now,
          partitions: now.partitions.map((one) => (one.partition === 0 ? { ...one, inSync: ['n1'] } : one)),
        };
      },
    };
    await play({ ...made, options: { ...made.options, status } });
    const story = storiesOf(made.records)[0]!;
    expect(story.fault === 'kill' && story.nodeIds.includes('n1')).toBe(false);
    expect(reads).toBeGreaterThan(1);
  });

  it('a status that is too old is none', async () => {
    const made = world(scenario([{ at: 5_000, fault: 'kill', target: 'n1', durationMs: 2_000 }]));
    const first = made.time.run(made.cluster.status());
    const status: ChaosOptions['status'] = { status: () => first };
    await first;
    await play({ ...made, options: { ...made.options, status } });
    expect(stepsOf(made.records, 'e1')).toEqual(['planned', 'skipped']);
  });

  it('an overshoot is recorded', async () => {
    const made = world(scenario([{ at: 1_000, fault: 'kill', target: 'n1', durationMs: 3_000 }]));
    const status: ChaosOptions['status'] = {
      status: async () => {
        const now = await made.cluster.status();
        const isDead = made.cluster.nodes.get('n1')!.state.kind === 'exited';
        if (now === null || !isDead) return now;
        return {
          ...now,
          partitions: now.partitions.map((one) => (one.partition === 0 ? { ...one, inSync: ['n1'] } : one)),
        };
      },
    };
    const outcome = await play({ ...made, options: { ...made.options, status } });
    expect(outcome.overshoots).toEqual(['e1: every holder of partition 0 was taken (n1)']);
    expect(summarize(storiesOf(made.records)).overshoots).toHaveLength(1);
  });

  it('past the budget as asked: everything is killed, and the journal says which partitions that takes', async () => {
    const schedule = scenario([{ at: 1_000, fault: 'kill', target: 'all', durationMs: 3_000 }]);
    const obedient = world(schedule);
    expect((await play(obedient)).overshoots).toEqual([]);
    expect(obedient.records.some((record) => record.step === 'injecting' && record.nodeIds.length > 2)).toBe(false);
    const asked = world(schedule, { policy: { mayStall: false, mayExceed: true } });
    const outcome = await play(asked);
    expect(stepsOf(asked.records, 'e1').slice(0, 4)).toEqual(['planned', 'injecting', 'injected', 'overshoot']);
    expect(asked.records.find((record) => record.step === 'injecting')).toMatchObject({
      nodeIds: obedient.cluster.nodeIds(),
    });
    expect(asked.records.find((record) => record.step === 'overshoot')).toMatchObject({
      why: expect.stringContaining('past the budget, as asked: partition 0 would keep no copy') as unknown,
      partitions: Array.from({ length: 16 }, (_, partition) => partition),
    });
    expect(outcome.overshoots.length).toBeGreaterThan(0);
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
    expect(stepsOf(made.records, 'e1')).toEqual([
      'planned',
      'injecting',
      'failed',
      'healing',
      'healed',
      'heal-verified',
    ]);
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
    const made = world(
      scenario([
        { at: 1_000, fault: 'pause', target: 'n1', durationMs: 5_000 },
        { at: 2_000, fault: 'isolate', target: 'n2', durationMs: 20_000 },
      ]),
    );
    let count = 0;
    const journal = {
      append: (): Promise<void> => (++count > 8 ? Promise.reject(new Error('disk full')) : Promise.resolve()),
    };
    await expect(play({ ...made, options: { ...made.options, journal } })).rejects.toThrow('disk full');
    expect(made.cluster.isUnhurt()).toBe(true);
  });
});
