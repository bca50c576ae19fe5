/**
 * The standing connections between nodes, as their ends experience them: silent for a while they are given up, open again they
 * are dialled anew. Only what the failure detector hears; messages go by the network alone. Same times as zaris/server/peer-link.ts.
 */
import type { World } from './world.ts';
import type { SimNode } from './world-node.ts';

/** An end gives a connection up after this much silence, ms. */
const silenceMs = 3_000;
/** How often ends look, which is also how long redialling takes at most, ms. */
const lookEveryMs = 500;

interface Pair {
  /** Starts of the two processes: a restarted one makes another pair. */
  readonly starts: number;
  readonly otherStarts: number;
  isUp: boolean;
  blockedSinceMs: number;
}

export class PeerConnections {
  private readonly world: World;
  /** By the places of both nodes, the lower one first. */
  private readonly pairs: (Pair | undefined)[][] = [];

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
        if (a.running === null || b.running === null) continue;
        const pair = this.pairOf(a, b);
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

  private pairOf(a: SimNode, b: SimNode): Pair {
    const row = (this.pairs[a.index] ??= []);
    const known = row[b.index];
    if (known !== undefined && known.starts === a.starts && known.otherStarts === b.starts) return known;
    const pair = { starts: a.starts, otherStarts: b.starts, isUp: true, blockedSinceMs: Infinity };
    row[b.index] = pair;
    return pair;
  }

  private tell(pair: Pair, isUp: boolean, a: Parameters<World['link']>[0], b: Parameters<World['link']>[0]): void {
    pair.isUp = isUp;
    this.world.link(a, b, isUp);
    this.world.link(b, a, isUp);
  }
}
