/** The cluster view that a node shows to clients and people: committed state as this node has applied it. */
import type { ControlState } from '../control/state.ts';
import type { NodeId } from '../model/ids.ts';
import type { RaftConfig } from '../model/raft-wire.ts';
import type { ClusterView } from '../model/view.ts';

export function clusterView(state: ControlState, config: RaftConfig, controlLeader: NodeId | null): ClusterView {
  const { settings } = state;
  return {
    revision: state.revision,
    clusterId: settings?.clusterId ?? '',
    mapVersion: state.mapVersion,
    replicationFactor: settings?.replicationFactor ?? 0,
    minInSync: settings?.minInSync ?? 0,
    partitionCount: settings?.partitionCount ?? 0,
    controlLeader,
    nodes: state.nodes.map((node) => ({
      nodeId: node.nodeId,
      incarnation: node.incarnation,
      clientAddress: node.clientAddress,
      alive: node.alive,
      voter: config.voters.some((voter) => voter.nodeId === node.nodeId && voter.diskId === node.diskId),
      leaving: node.leaving || node.draining,
    })),
    voters: config.voters,
    partitions: state.runtimes.map((runtime) => {
      const placement = state.placement(runtime.partition);
      return {
        partition: runtime.partition,
        preferredPrimary: placement.preferredPrimary,
        replicas: placement.replicas,
        epoch: runtime.epoch,
        term: runtime.term,
        primary: runtime.primary,
        inSync: runtime.inSync,
        eligible: runtime.eligible,
        health: runtime.health,
        serving: runtime.serving,
        dataLossNumber: runtime.dataLossNumber,
      };
    }),
  };
}
