/**
 * After the last heal: does the cluster do what it is told? A node that stays frozen or dead although it was told to go on is the
 * machine's trouble, or the harness's, and must not be read as a store that does not recover.
 */
import type { Cluster, NodeState } from '../../chaos/ports.ts';
import { messageOf } from '../errors.ts';

/** Time that the engine gets to show that something happened, ms. */
const patienceMs = 3_000;
const pollMs = 100;

/** One sentence per node that does not obey; empty when every node runs, or was started and ended again by itself. */
export async function disobedientNodes(cluster: Cluster, nodeIds: readonly string[]): Promise<string[]> {
  const found = await Promise.all(nodeIds.map((nodeId) => complaintOf(cluster, nodeId)));
  return found.filter((sentence) => sentence !== null);
}

async function complaintOf(cluster: Cluster, nodeId: string): Promise<string | null> {
  try {
    const before = await cluster.state(nodeId);
    switch (before.kind) {
      case 'running':
        return null;
      case 'paused':
        await cluster.resume(nodeId);
        return (await changed(cluster, nodeId, (now) => now.kind !== 'paused'))
          ? null
          : `${nodeId} is still paused although it was told to go on: the faults of this run were not all healed.`;
      case 'exited':
      case 'absent':
        await cluster.startNode(nodeId);
        return (await changed(cluster, nodeId, (now) => isAnother(before, now)))
          ? null
          : `${nodeId} did not start although it was told to: the faults of this run were not all healed.`;
    }
  } catch (error) {
    return `${nodeId} could not be brought back (${messageOf(error)}): the faults of this run were not all healed.`;
  }
}

/** Runs now, or another process ran since: then the store itself ended. */
const isAnother = (before: NodeState, now: NodeState): boolean =>
  now.kind === 'running' || (now.kind === 'exited' && (before.kind !== 'exited' || now.instance !== before.instance));

async function changed(cluster: Cluster, nodeId: string, isDone: (now: NodeState) => boolean): Promise<boolean> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    if (isDone(await cluster.state(nodeId))) return true;
    if (waitedMs >= patienceMs) return false;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
