/** A Zaris cluster view in the words of chaos. */
import type { PartitionStatus, SystemStatus } from '../../chaos/ports.ts';
import type { Member } from '../../zaris/model/ids.ts';
import type { ClusterView } from '../../zaris/model/view.ts';

/** The status that a view tells; members of an older incarnation than the node's current one are left out. */
export function statusOfView(view: ClusterView, atMs: number): SystemStatus {
  const incarnations = new Map<string, number>(view.nodes.map((node) => [node.nodeId, node.incarnation]));
  const current = (members: readonly Member[]): string[] =>
    members.filter((member) => incarnations.get(member.nodeId) === member.incarnation).map((member) => member.nodeId);
  return {
    atMs,
    leader: view.controlLeader,
    // A voter whose disk was wiped still counts for every majority until it is replaced.
    voters: view.voters.map(({ nodeId }) => nodeId),
    voterDisks: Object.fromEntries(view.voters.map(({ nodeId, diskId }) => [nodeId, diskId])),
    nodes: view.nodes.map(({ nodeId, incarnation, alive }) => ({ nodeId, incarnation, alive })),
    minInSync: view.minInSync,
    partitions: view.partitions.map((partition): PartitionStatus => {
      const inSync = current(partition.inSync);
      return {
        partition: partition.partition,
        epoch: partition.epoch,
        term: partition.term,
        primary: partition.primary?.nodeId ?? null,
        preferredPrimary: partition.preferredPrimary,
        replicas: partition.replicas,
        inSync,
        eligible: current(partition.eligible),
        joining: partition.replicas.filter(
          (nodeId) => !inSync.includes(nodeId) && view.nodes.some((node) => node.nodeId === nodeId && node.alive),
        ),
        health: partition.health,
        serving: partition.serving,
      };
    }),
  };
}
