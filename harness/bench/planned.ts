/**
 * Planned changes under load: a rolling restart of every node, then 5 → 7 → 5 nodes. Nothing is broken on purpose, so no operation of a
 * client with default options may fail: one that does fails this bench.
 */
import { present } from '../../lib/assert.ts';
import { nodeId } from '../../zaris/model/ids.ts';
import { ZarisClient } from '../../zaris/client/client.ts';
import type { AdminCommand } from '../../zaris/model/client-wire.ts';
import type { SystemStatus } from '../../chaos/ports.ts';
import { type BenchContext, pause } from './bench-context.ts';
import { type FailoverScene, whenWhole } from './failover-cycle.ts';
import { startWriters } from './partition-writers.ts';
import { figure, quantile } from './statistics.ts';
import { openZaris } from './zaris-cluster.ts';

const nodeCount = 5;
const replicationFactor = 3;
const partitionCount = 64;
const graceMs = 60_000;
const quietMs = 3_000;
const moveTimeoutMs = 180_000;
const pollMs = 250;
const maxAsks = 100;

/** Waits of the writes that were acknowledged during one step. */
class StepWatch {
  readonly waitsMs: number[] = [];
  again = 0;

  constructor(scene: FailoverScene) {
    scene.writers.onAcknowledged = ({ startedAtMs, atMs, attempts }) => {
      this.waitsMs.push(atMs - startedAtMs);
      if (attempts > 1) this.again++;
    };
  }
}

/** Runs one step and prints what writers saw of it. */
async function step(scene: FailoverScene, name: string, run: () => Promise<string>): Promise<void> {
  const { context, writers } = scene;
  const failedBefore = failedOf(writers.failures);
  const watch = new StepWatch(scene);
  const startedAtMs = performance.now();
  const what = await run();
  await pause(quietMs, context.signal);
  const { waitsMs, again } = watch;
  context.print(
    `  ${name}: ${what} in ${figure((performance.now() - startedAtMs) / 1000)} s; ${waitsMs.length.toLocaleString('en-US')} writes acknowledged, ${failedOf(writers.failures) - failedBefore} failed, ${again} took more than one attempt; wait median ${figure(quantile(waitsMs, 0.5))} ms, p99 ${figure(quantile(waitsMs, 0.99))} ms, maximum ${figure(quantile(waitsMs, 1))} ms`,
  );
}

const failedOf = (failures: Readonly<Record<string, number>>): number =>
  Object.values(failures).reduce((sum, count) => sum + count, 0);

async function rebalance(scene: FailoverScene, client: ZarisClient, leaving: readonly string[]): Promise<void> {
  const command: AdminCommand = { kind: 'rebalance', leaving: leaving.map((id) => nodeId(id)) };
  const target = present(scene.cluster.seeds[0], 'an address');
  for (let asks = 1; ; asks++) {
    const result = await client.admin(command, target);
    if (result.isSuccess) return;
    if (result.status !== 'Migrating' || asks >= maxAsks)
      throw new Error(`the rebalance was answered ${result.status}`);
    await pause(pollMs, scene.context.signal);
  }
}

/** Waits until the map is as wanted and every partition healthy at its preferred primary. */
async function whenMoved(scene: FailoverScene, isMoved: (status: SystemStatus) => boolean): Promise<SystemStatus> {
  const untilMs = performance.now() + moveTimeoutMs;
  for (;;) {
    const status = await whenWhole(scene);
    if (isMoved(status)) return status;
    if (performance.now() > untilMs)
      throw new Error(
        `the copies had not moved after ${moveTimeoutMs / 1000} s: ${JSON.stringify(status.partitions[0])}`,
      );
    await pause(pollMs, scene.context.signal);
  }
}

const holdersOf = (status: SystemStatus): ReadonlySet<string> =>
  new Set(status.partitions.flatMap(({ replicas, inSync }) => [...replicas, ...inSync]));

/** Runs it; rejects when an operation failed. */
export async function benchPlanned(context: BenchContext): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(
    await openZaris(context, {
      name: 'planned',
      nodeCount,
      replicationFactor,
      partitionCount,
      isDocker: context.isDocker,
    }),
  );
  const writers = stack.use(await startWriters(cluster.url, partitionCount));
  const operator = stack.use(await ZarisClient.connect(cluster.url));
  const scene: FailoverScene = { context, cluster, writers, deaths: new Map() };
  context.print(
    `${context.isDocker ? 'Containers' : 'Local processes'}: ${nodeCount} nodes, rf ${replicationFactor}, defaults, ${partitionCount} partitions with one writer each (default client options).`,
  );
  await whenWhole(scene);
  await step(scene, 'rolling restart', async () => {
    const restarted = context.isQuick ? cluster.nodes.nodeIds().slice(0, 2) : cluster.nodes.nodeIds();
    for (const id of restarted) {
      await cluster.nodes.stop(id, graceMs);
      await cluster.nodes.startNode(id);
      await whenWhole(scene);
    }
    return `${restarted.length} nodes restarted`;
  });
  const added: string[] = [];
  await step(scene, 'scale-out', async () => {
    added.push(await cluster.nodes.addNode(), await cluster.nodes.addNode());
    await whenMoved(scene, (status) => status.nodes.length === nodeCount + added.length);
    await rebalance(scene, operator, []);
    const status = await whenMoved(scene, (now) => added.every((id) => holdersOf(now).has(id)));
    const led = status.partitions.filter(({ primary }) => primary !== null && added.includes(primary)).length;
    return `${added.join(' and ')} lead ${led} of ${partitionCount} partitions`;
  });
  await step(scene, 'scale-in', async () => {
    await rebalance(scene, operator, added);
    await whenMoved(scene, (now) => !added.some((id) => holdersOf(now).has(id)));
    for (const id of added) {
      await cluster.nodes.stop(id, graceMs);
      await cluster.nodes.removeNode(id);
    }
    const status = await whenMoved(scene, (now) => now.nodes.length === nodeCount);
    return `${status.nodes.length} nodes are left`;
  });
  writers.onAcknowledged = () => undefined;
  const failed = failedOf(writers.failures);
  context.print(`  in all: ${writers.acknowledged.toLocaleString('en-US')} writes acknowledged, ${failed} failed`);
  if (failed > 0) throw new Error(`operations failed during planned changes: ${JSON.stringify(writers.failures)}`);
}
