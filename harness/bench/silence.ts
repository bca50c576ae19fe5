/**
 * How long a partition has no acknowledged write when its primary falls silent without dying: frozen, or cut off from everybody. No connection
 * closes, so the suspicion timer decides; measured at 1.5 s and at its default.
 */
import { type BenchContext, pause } from './bench-context.ts';
import { describeOutages, victimOf } from './failover.ts';
import { type FailoverScene, type KillResult, silenceOnce, whenWhole } from './failover-cycle.ts';
import { startWriters } from './partition-writers.ts';
import { figure, quantile } from './statistics.ts';
import { openZaris, type ZarisCluster } from './zaris-cluster.ts';

const nodeCount = 5;
const replicationFactor = 3;
const partitionCount = 64;
/** Spread of the moment against everything periodic, ms. */
const jitterMs = 700;
const shortSuspicionMs = 1_500;

interface Silence {
  readonly name: string;
  readonly silence: (cluster: ZarisCluster, nodeId: string) => Promise<void>;
  readonly heal: (cluster: ZarisCluster, nodeId: string) => Promise<void>;
}

const frozen: Silence = {
  name: 'frozen',
  silence: (cluster, nodeId) => cluster.nodes.pause(nodeId),
  heal: (cluster, nodeId) => cluster.nodes.resume(nodeId),
};

const isolated: Silence = {
  name: 'isolated',
  async silence(cluster, nodeId) {
    const others = [...cluster.nodes.nodeIds().filter((id) => id !== nodeId), 'client'];
    await cluster.nodes.setCuts?.(
      others.flatMap((other) => [
        { from: nodeId, to: other },
        { from: other, to: nodeId },
      ]),
    );
  },
  async heal(cluster) {
    await cluster.nodes.setCuts?.([]);
  },
};

async function measure(scene: FailoverScene, kind: Silence, count: number): Promise<void> {
  const { context, cluster } = scene;
  const results: KillResult[] = [];
  for (let turn = 0; turn < count; turn++) {
    await whenWhole(scene);
    await pause(Math.random() * jitterMs, context.signal);
    const status = await whenWhole(scene);
    const victim = victimOf(status, turn, false);
    const result = await silenceOnce(scene, victim, status, {
      silence: () => kind.silence(cluster, victim),
      heal: () => kind.heal(cluster, victim),
    });
    results.push(result);
    context.say(
      `${kind.name} ${turn + 1} of ${count}: ${victim} led ${result.outagesMs.length} partitions; median ${figure(quantile(result.outagesMs, 0.5))} ms, longest ${figure(Math.max(...result.outagesMs))} ms`,
    );
  }
  context.print(`  ${kind.name}:`.padEnd(14) + describeOutages(results));
}

/** Runs it on a cluster for each suspicion time. Cuts are measured in containers only. */
export async function benchSilence(context: BenchContext): Promise<void> {
  const kinds = context.isDocker ? [frozen, isolated] : [frozen];
  for (const suspectMs of [shortSuspicionMs, null]) {
    await using stack = new AsyncDisposableStack();
    const cluster = stack.use(
      await openZaris(context, {
        name: `silence-${suspectMs ?? 'default'}`,
        nodeCount,
        replicationFactor,
        partitionCount,
        isDocker: context.isDocker,
        ...(suspectMs === null ? {} : { environment: { ZARIS_SUSPECT_ESCALATION_MS: String(suspectMs) } }),
      }),
    );
    const writers = stack.use(await startWriters(cluster.url, partitionCount));
    const scene: FailoverScene = { context, cluster, writers, deaths: new Map() };
    context.print(
      `${context.isDocker ? 'Containers' : 'Local processes'}: ${nodeCount} nodes, rf ${replicationFactor}, ${partitionCount} partitions with one writer each; ZARIS_SUSPECT_ESCALATION_MS ${suspectMs ?? 'default (10,000)'}; a primary that is not the control leader, from the asking to the first acknowledged write per partition that it led:`,
    );
    const long = suspectMs === null ? 4 : 10;
    for (const kind of kinds) await measure(scene, kind, context.isQuick ? 1 : long);
  }
}
