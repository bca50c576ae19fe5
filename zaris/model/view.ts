/**
 * The cluster as its control plane sees it, for clients and people: members, partition map (changes only by a planned
 * regeneration) and, apart from it, the runtime (the only thing that a failover moves). A view is a cache of committed
 * state; nothing that decides whether a write is kept reads one.
 */
import type { Epoch, Member, NodeId, PartitionId, Term } from './ids.ts';
import type { Voter } from './raft-wire.ts';

/** Number of hash slots; a key's segment is CRC16(key) mod this. */
export const segmentCount = 16_384;

export type Health = 'Healthy' | 'Degraded' | 'Recovering' | 'Unavailable' | 'Lost';

export interface PartitionView {
  readonly partition: PartitionId;
  /** Map: who should hold it. `replicas` includes the preferred primary. */
  readonly preferredPrimary: NodeId;
  readonly replicas: readonly NodeId[];
  /** Runtime. */
  readonly epoch: Epoch;
  readonly term: Term;
  readonly primary: Member | null;
  readonly inSync: readonly Member[];
  readonly eligible: readonly Member[];
  readonly health: Health;
  /** True once the primary has proved possession and serves. */
  readonly serving: boolean;
  /** +1 whenever the partition was re-homed empty; each step has an audit event. */
  readonly dataLossNumber: number;
}

export interface NodeView {
  readonly nodeId: NodeId;
  /** 0 when it never registered. */
  readonly incarnation: number;
  /** host:port for clients, as the node itself announces it. */
  readonly clientAddress: string;
  readonly alive: boolean;
  /** One of the cluster's voters, with the disk that it has now. */
  readonly voter: boolean;
  readonly leaving: boolean;
}

export interface ClusterView {
  /** Index of the last control entry behind this view; grows, and orders views. */
  readonly revision: number;
  readonly clusterId: string;
  readonly mapVersion: number;
  readonly replicationFactor: number;
  readonly minInSync: number;
  readonly partitionCount: number;
  readonly controlLeader: NodeId | null;
  readonly nodes: readonly NodeView[];
  /** The last set of voters that is known to be committed; one whose disk is gone stands here until its replacement is committed. */
  readonly voters: readonly Voter[];
  readonly partitions: readonly PartitionView[];
}
