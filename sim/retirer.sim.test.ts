import { describe, expect, it } from 'vitest';
import { sourceCode } from '../ledger/verify/history.ts';
import type { SimHistory } from './history.ts';
import { drawOptions, type Pins } from './options.ts';
import { runSim } from './run-seed.ts';
import { controlLeader } from './sim-cluster.ts';
import type { World } from './world.ts';

/** Many new keys; the sessions alone remember 4,096 of them. */
const pins: Pins = {
  nodes: '5',
  rf: '3',
  sessions: '16',
  ratePerSecond: '300',
  mix: 'set:1',
  readRatio: '0.1',
  distribution: 'uniform',
  maxLiveKeys: '9000',
  minLatencyMs: '0.2',
  meanLatencyMs: '0.3',
  lossChance: '0',
  duplicateChance: '0',
  reorderChance: '0',
  slowNodeMs: '0',
};

interface Seen {
  readonly retired: number;
  readonly live: number;
  /** For a retirement. */
  readonly reads: number;
  /** Replicas' answers of the retired key with fewest. */
  readonly fewestReplicas: number;
}

function seenIn(history: SimHistory): Seen {
  let [retired, live, reads, fewestReplicas] = [0, 0, 0, Infinity];
  for (const key of history.histories()) {
    const sources = Array.from({ length: key.size }, (_, row) => key.source[row]);
    reads += sources.filter((source) => source === sourceCode.retire).length;
    if (!key.retired) live += 1;
    else {
      retired += 1;
      fewestReplicas = Math.min(fewestReplicas, sources.filter((source) => source === sourceCode.replica).length);
    }
  }
  return { retired, live, reads, fewestReplicas };
}

describe('retiring keys', () => {
  it('reads a key once, keeps up with the load, and asks every replica of what it retires', async () => {
    const options = drawOptions(3, {
      ...pins,
      durationMs: '120000',
      partitions: '8',
      beatMs: '250',
      faults: 'kill,pause',
      chaos: 'gentle',
    });
    const { history, judgement } = await runSim({ seed: 3, options });
    const { retired, live, reads, fewestReplicas } = seenIn(history);
    expect(judgement.verdict).toBe('certified');
    expect(retired).toBeGreaterThan(10_000);
    // A key is read again only where a fault came between. When copies were asked at once, which hardly ever are level between two
    // beats, it was nine reads for each, and the cap stopped the load.
    expect(reads / retired).toBeLessThan(1.5);
    expect(fewestReplicas).toBeGreaterThanOrEqual(3);
    expect(live).toBeLessThan(options.maxLiveKeys);
  });

  it('goes easy while there is no control leader to say what is committed', async () => {
    const options = drawOptions(4, { ...pins, durationMs: '40000', partitions: '1', beatMs: '80', chaos: 'none' });
    let pausedMs = 0;
    const onWorld = (world: World): void => {
      const look = (): void => {
        const leader = controlLeader(world);
        const isIdle = leader?.planes.control.state.runtimes.every(
          ({ inSync }) => !inSync.some(({ nodeId }) => nodeId === leader.identity().nodeId),
        );
        if (leader === null || world.nowMs > 30_000) return;
        const { nodeId } = leader.identity();
        if (isIdle !== true) {
          // Another one leads then; at last one without a copy, so that no read waits for it.
          world.kill(nodeId);
          world.at(world.nowMs + 300, () => world.start(nodeId));
          world.at(world.nowMs + 2_500, look);
          return;
        }
        world.at(25_000, () => {
          if (controlLeader(world)?.identity().nodeId !== nodeId) return;
          pausedMs = world.nowMs;
          world.pause(nodeId);
          world.at(world.nowMs + 10_000, () => world.resume(nodeId));
        });
      };
      world.at(3_000, look);
    };
    const { history } = await runSim({ seed: 4, options, onWorld });
    expect(pausedMs).toBe(25_000);
    // Ten times as many, all of the same keys, when the next batch was read as soon as nothing could be said of the last.
    expect(seenIn(history).reads).toBeLessThan(15_000);
  });
});
