import { describe, expect, it } from 'vitest';
import type { AdminCommand } from '../../zaris/model/client-wire.ts';
import type { ClusterView } from '../../zaris/model/view.ts';
import { calmWaitMs, ZarisMoves } from './zaris-moves.ts';

/** A cluster of n1 to n3 and its operator, on a clock that only sleeping moves. */
class Scene {
  nowMs = 0;
  readonly asked: { atMs: number; leaving: readonly string[] }[] = [];
  readonly alive = new Map([
    ['n1', true],
    ['n2', true],
    ['n3', true],
  ]);
  replicas = ['n1', 'n2', 'n3'];
  /** Run at each sleep. */
  onSleep: () => void = () => undefined;
  /** What the cluster does when asked. */
  onAsked: (leaving: readonly string[]) => void = () => undefined;
  readonly moves = new ZarisMoves({
    view: async () => this.view(),
    admin: async (command) => this.admin(command),
    nowMs: () => this.nowMs,
    sleep: async (ms) => {
      this.nowMs += ms;
      this.onSleep();
      if (this.nowMs > 10 * calmWaitMs) this.moves.close();
    },
  });

  private view(): ClusterView {
    const nodes = [...this.alive].map(([nodeId, alive]) => ({ nodeId, alive }));
    return { nodes, partitions: [{ replicas: this.replicas }] } as unknown as ClusterView;
  }

  private admin(command: AdminCommand): void {
    expect(command.kind).toBe('rebalance');
    const leaving = command.kind === 'rebalance' ? command.leaving : [];
    this.asked.push({ atMs: this.nowMs, leaving });
    this.onAsked(leaving);
  }

  async settled(): Promise<void> {
    for (let turn = 0; turn < 20_000; turn++) await Promise.resolve();
  }
}

describe('copies after scaling', () => {
  it('are moved to an added node once it has joined, and asked for until it has some', async () => {
    const scene = new Scene();
    scene.onSleep = () => {
      if (scene.nowMs >= 3_000) scene.alive.set('n4', true);
    };
    scene.onAsked = () => {
      if (scene.asked.length === 2) scene.replicas = ['n1', 'n2', 'n4'];
    };
    scene.moves.added('n4');
    await scene.settled();
    expect(scene.asked.map(({ leaving }) => leaving)).toEqual([[], []]);
    expect(scene.asked[0]?.atMs).toBe(3_000);
  });

  it('leave a removed node, until the cluster has forgotten it', async () => {
    const scene = new Scene();
    scene.alive.set('n3', false);
    scene.onAsked = (leaving) => {
      for (const id of leaving) scene.alive.delete(id);
    };
    scene.moves.removed('n3');
    await scene.settled();
    expect(scene.asked).toEqual([{ atMs: 0, leaving: ['n3'] }]);
  });

  it('are not drawn anew while another member is down, but not put off for ever either', async () => {
    const scene = new Scene();
    scene.alive.set('n4', true);
    scene.alive.set('n2', false);
    scene.onAsked = () => {
      scene.replicas = ['n1', 'n4', 'n3'];
    };
    scene.moves.added('n4');
    await scene.settled();
    expect(scene.asked).toHaveLength(1);
    expect(scene.asked[0]?.atMs).toBeGreaterThanOrEqual(calmWaitMs);
  });

  it('are not asked for when a node goes before it has any', async () => {
    const scene = new Scene();
    scene.moves.added('n4');
    scene.moves.removed('n4');
    await scene.settled();
    expect(scene.asked).toEqual([]);
  });
});
