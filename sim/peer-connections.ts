/**
 * The standing connections between nodes, as their ends experience them: silent for a while they are given up, open again they
 * are dialled anew. Only what the failure detector hears; messages go by the network alone. Same times as zaris/server/peer-link.ts.
 */
import type { World } from './world.ts';

/** An end gives a connection up after this much silence, ms. */
const silenceMs = 3_000;
/** How often ends look, which is also how long redialling takes at most, ms. */
const lookEveryMs = 500;

interface Pair {
  isUp: boolean;
  blockedSinceMs: number;
}

export class PeerConnections {
  private readonly world: World;
  private readonly pairs = new Map<string, Pair>();

  constructor(world: World) {
    this.world = world;
    this.later();
  }

  private later(): void {
    this.world.at(this.world.nowMs + lookEveryMs, () => {
      this.look();
      this.later();
    });
  }

  private look(): void {
    const nodes = [...this.world.nodes.values()];
    for (const [index, a] of nodes.entries()) {
      for (const b of nodes.slice(index + 1)) {
        const name = `${a.nodeId} ${b.nodeId} ${a.starts} ${b.starts}`;
        if (a.running === null || b.running === null) continue;
        let pair = this.pairs.get(name);
        if (pair === undefined) this.pairs.set(name, (pair = { isUp: true, blockedSinceMs: Infinity }));
        const { network, nowMs } = this.world;
        const isReset = network.isReset(a.nodeId, b.nodeId);
        const isBlocked =
          isReset || a.paused || b.paused || network.isCut(a.nodeId, b.nodeId) || network.isCut(b.nodeId, a.nodeId);
        if (!isBlocked) {
          pair.blockedSinceMs = Infinity;
          if (!pair.isUp) this.tell(pair, true, a.nodeId, b.nodeId);
          continue;
        }
        if (pair.blockedSinceMs === Infinity) pair.blockedSinceMs = nowMs;
        if (pair.isUp && (isReset || nowMs - pair.blockedSinceMs >= silenceMs))
          this.tell(pair, false, a.nodeId, b.nodeId);
      }
    }
  }

  private tell(pair: Pair, isUp: boolean, a: Parameters<World['link']>[0], b: Parameters<World['link']>[0]): void {
    pair.isUp = isUp;
    this.world.link(a, b, isUp);
    this.world.link(b, a, isUp);
  }
}
