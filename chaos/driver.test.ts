import { describe, expect, it } from 'vitest';
import { storiesOf, summarize } from './summary.ts';
import { MemoryCluster } from './testing/memory-cluster.ts';
import { play, scenario, stepsOf, wholeLife, world } from './testing/world.ts';

describe('one fault', () => {
  for (const fault of [
    'kill',
    'stop',
    'pause',
    'oom',
    'wipe',
    'isolate',
    'halves',
    'one-way-in',
    'one-way-out',
    'client-partition',
    'reset',
    'loss',
    'latency',
    'bandwidth',
    'clock',
  ]) {
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
    const made = world(
      scenario([
        { at: 1_000, fault: 'scale-out', target: 'all' },
        { at: 5_000, fault: 'scale-in', target: 'n6' },
      ]),
    );
    const outcome = await play(made);
    expect(stepsOf(made.records, 'e1')).toEqual(wholeLife);
    expect(stepsOf(made.records, 'e2')).toEqual(wholeLife);
    expect(outcome.isHealed).toBe(true);
    expect(made.cluster.nodeIds()).toHaveLength(5);
  });

  // A brutal soak: rules that still named a removed node made every later fault of links fail.
  it('a node that is removed for good falls out of the rules that stand and of those to come', async () => {
    const made = world(
      scenario([
        { at: 1_000, fault: 'isolate', target: 'n1', durationMs: 12_000 },
        { at: 3_000, fault: 'scale-in', target: 'n5' },
        { at: 6_000, fault: 'client-partition', target: 'n1', durationMs: 2_000 },
      ]),
      { nodeCount: 9 },
    );
    const outcome = await play(made);
    expect(outcome.environmentErrors).toEqual([]);
    expect(stepsOf(made.records, 'e3')).toContain('confirmed');
    expect(outcome.isHealed).toBe(true);
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
  for (const fault of [
    'kill',
    'stop',
    'pause',
    'oom',
    'isolate',
    'halves',
    'one-way-in',
    'one-way-out',
    'client-partition',
    'reset',
    'loss',
    'latency',
    'bandwidth',
    'clock',
  ]) {
    it(fault, async () => {
      const made = world(
        scenario([{ at: 1_000, fault, target: 'n2', durationMs: 2_000 }]),
        {},
        (options) => new DeafCluster(options),
      );
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
    const made = world(
      scenario([{ at: 1_000, fault: 'one-way-in', target: 'n2', durationMs: 2_000 }]),
      {},
      (options) => new BothWays(options),
    );
    await play(made);
    expect(stepsOf(made.records, 'e1')).not.toContain('confirmed');
  });

  it('a heal that does not take hold is not verified', async () => {
    class Sticky extends MemoryCluster {
      override async setLinkRules(rules: Parameters<MemoryCluster['setLinkRules']>[0]): Promise<void> {
        if (rules.length > 0) await super.setLinkRules(rules);
      }
    }
    const made = world(
      scenario([{ at: 1_000, fault: 'isolate', target: 'n2', durationMs: 2_000 }]),
      {},
      (options) => new Sticky(options),
    );
    const outcome = await play(made);
    expect(stepsOf(made.records, 'e1').at(-1)).toBe('heal-unverified');
    expect(outcome.isHealed).toBe(false);
  });

  it('silence that was there before proves nothing', async () => {
    class Mute extends DeafCluster {
      override probeNode(nodeId: string): ReturnType<MemoryCluster['probeNode']> {
        if (nodeId !== 'n2') return super.probeNode(nodeId);
        return Promise.resolve({ outcome: 'unreachable', atMs: 0, evidence: 'mute from the start' });
      }
      override probeLink(from: string, to: string): ReturnType<MemoryCluster['probeLink']> {
        if (from !== 'n2' && to !== 'n2') return super.probeLink(from, to);
        return Promise.resolve({ outcome: 'unreachable', atMs: 0, evidence: 'mute from the start' });
      }
    }
    for (const fault of ['pause', 'isolate']) {
      const made = world(
        scenario([{ at: 1_000, fault, target: 'n2', durationMs: 2_000 }]),
        {},
        (options) => new Mute(options),
      );
      await play(made);
      expect(summarize(storiesOf(made.records)).confirmed, fault).toBe(0);
    }
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
