/** How long a partition has no acknowledged write when its primary is killed, and how long a write waits when its owner is moved on purpose. */
import type { SystemStatus } from '../../chaos/ports.ts';
import { type BenchContext, pause } from './bench-context.ts';
import {
  type FailoverScene,
  handOffOnce,
  type HandoffResult,
  killOnce,
  type KillResult,
  whenWhole,
} from './failover-cycle.ts';
import { startWriters } from './partition-writers.ts';
import { figure, quantile } from './statistics.ts';
import { openZaris } from './zaris-cluster.ts';

const nodeCount = 5;
const replicationFactor = 3;
const partitionCount = 64;
const plans = {
  full: { kills: 30, leaderKills: 10, handoffs: 10 },
  quick: { kills: 3, leaderKills: 1, handoffs: 1 },
} as const;
/** Spread of the moment of a kill against everything periodic, ms. */
const jitterMs = 400;

/** The node to hurt next: never the control leader unless that is what is asked for. */
export function victimOf(status: SystemStatus, turn: number, isLeader: boolean): string {
  if (isLeader) return status.leader as string;
  const leading = new Set(status.partitions.map(({ primary }) => primary));
  const others = status.nodes.map(({ nodeId }) => nodeId).filter((id) => id !== status.leader && leading.has(id));
  return others[turn % others.length] as string;
}

async function kills(scene: FailoverScene, count: number, isLeader: boolean): Promise<KillResult[]> {
  const results: KillResult[] = [];
  for (let turn = 0; turn < count; turn++) {
    await whenWhole(scene);
    await pause(Math.random() * jitterMs, scene.context.signal);
    const status = await whenWhole(scene);
    const result = await killOnce(scene, victimOf(status, turn, isLeader), status);
    results.push(result);
    scene.context.say(
      `kill ${turn + 1} of ${count}: ${result.victim}${result.wasLeader ? ' (control leader)' : ''} led ${result.outagesMs.length} partitions; median ${figure(quantile(result.outagesMs, 0.5))} ms, longest ${figure(Math.max(...result.outagesMs))} ms`,
    );
  }
  return results;
}

async function handoffs(scene: FailoverScene, count: number): Promise<HandoffResult[]> {
  const results: HandoffResult[] = [];
  for (let turn = 0; turn < count; turn++) {
    const status = await whenWhole(scene);
    const result = await handOffOnce(scene, victimOf(status, turn, false), status);
    results.push(result);
    scene.context.say(
      `handoff ${turn + 1} of ${count}: away ${figure(quantile(result.awayMs, 0.99))} ms, back ${figure(quantile(result.backMs, 0.99))} ms (p99 over partitions)`,
    );
  }
  return results;
}

/** Median, p99 and maximum over partitions, and the median of each turn's last one. */
export function describeOutages(results: readonly KillResult[]): string {
  const all = results.flatMap((result) => [...result.outagesMs]);
  const longest = results.map((result) => Math.max(...result.outagesMs));
  return `median ${figure(quantile(all, 0.5))} ms, p99 ${figure(quantile(all, 0.99))} ms, maximum ${figure(quantile(all, 1))} ms over ${all.length} partitions of ${results.length} turns; the last partition of each turn: median ${figure(quantile(longest, 0.5))} ms`;
}

const describeWaits = (waitsMs: readonly number[]): string =>
  `median ${figure(quantile(waitsMs, 0.5))} ms, p99 ${figure(quantile(waitsMs, 0.99))} ms, maximum ${figure(quantile(waitsMs, 1))} ms (${waitsMs.length} partitions)`;

/** Runs kills and handoffs and prints them. */
export async function benchFailover(context: BenchContext): Promise<void> {
  const plan = context.isQuick ? plans.quick : plans.full;
  const deaths = new Map<string, number>();
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(
    await openZaris(context, {
      name: 'failover',
      nodeCount,
      replicationFactor,
      partitionCount,
      isDocker: context.isDocker,
      onDeath: (nodeId, atMs) => deaths.set(nodeId, atMs),
    }),
  );
  const writers = stack.use(await startWriters(cluster.url, partitionCount));
  const scene: FailoverScene = { context, cluster, writers, deaths };
  context.print(
    `${context.isDocker ? 'Containers' : 'Local processes'}: ${nodeCount} nodes, rf ${replicationFactor}, defaults, ${partitionCount} partitions with one writer each (a write, a short pause, the next; default client options).`,
  );
  const plain = await kills(scene, plan.kills, false);
  const leaders = await kills(scene, plan.leaderKills, true);
  const moved = await handoffs(scene, plan.handoffs);
  const failures = Object.entries(writers.failures).map(([status, count]) => `${status} ${count}`);
  context.print('Death of a primary (SIGKILL) to the first acknowledged write, per partition that it led:');
  context.print(`  primaries:                        ${describeOutages(plain)}`);
  context.print(`  primaries that led control too:   ${describeOutages(leaders)}`);
  context.print('Planned handoff, from the old primary holding writes to the new one serving, as the nodes tell it:');
  context.print(`  both ways:                        ${describeWaits(moved.flatMap(({ holdsMs }) => [...holdsMs]))}`);
  context.print('Longest wait of one write when the owner is moved on purpose, per partition:');
  context.print(`  away from a node that stops:      ${describeWaits(moved.flatMap(({ awayMs }) => [...awayMs]))}`);
  context.print(`  back to the preferred primary:    ${describeWaits(moved.flatMap(({ backMs }) => [...backMs]))}`);
  const refused = moved.reduce((sum, each) => sum + each.refused, 0);
  context.print(`  of all these, ${refused} were refused once or more and tried again by the client`);
  context.print(`  with nothing moved, within 1 s:   ${describeWaits(moved.flatMap(({ quietMs }) => [...quietMs]))}`);
  context.print(
    `${writers.acknowledged.toLocaleString('en-US')} writes acknowledged in all, ${failures.length === 0 ? 'none failed' : `failed: ${failures.join(', ')}`}.`,
  );
}
