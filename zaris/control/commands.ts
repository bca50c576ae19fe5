/**
 * Commands of the control log. Every change of a partition compares the epoch it was decided on, so a decision taken on an
 * old state, or delivered twice, does nothing. Were one to skip that comparison, a late addition or promotion could put
 * a member that lacks acknowledged entries in charge.
 */
import type { ClusterSettings } from '../model/client-wire.ts';
import type { Epoch, Member, NodeId, PartitionId } from '../model/ids.ts';

/** Who should hold a partition. `replicas` includes the preferred primary. */
export interface Placement {
  readonly preferredPrimary: NodeId;
  readonly replicas: readonly NodeId[];
}

interface OnPartition {
  readonly partition: PartitionId;
  readonly expectEpoch: Epoch;
}

export type PartitionCommand =
  /** A failover: `candidate` leads without the old primary's release; the old primary leaves the in-sync set in the same entry. */
  | (OnPartition & { readonly kind: 'promote'; readonly candidate: Member })
  /** The primary's release in favour of an in-sync member. */
  | (OnPartition & { readonly kind: 'handoff'; readonly from: Member; readonly to: Member })
  /** No candidate: nobody leads, the in-sync set stays as last known. */
  | (OnPartition & { readonly kind: 'unassign' })
  /** The primary proved that it possesses the log and may serve. */
  | (OnPartition & { readonly kind: 'serve'; readonly member: Member })
  | (OnPartition & { readonly kind: 'shrink'; readonly member: Member; readonly why: string })
  | (OnPartition & { readonly kind: 'expand'; readonly member: Member })
  /** Settles an open proposal (an addition, a release) as withdrawn: only the epoch moves. */
  | (OnPartition & { readonly kind: 'withdraw'; readonly by: Member })
  | (OnPartition & { readonly kind: 'mark-healthy' })
  | (OnPartition & { readonly kind: 'mark-degraded' })
  /** Re-homes a partition empty; its data-loss number rises and an audit event is written. */
  | (OnPartition & { readonly kind: 'evict'; readonly members: readonly Member[] });

export type ControlCommand =
  | { readonly kind: 'bootstrap'; readonly settings: ClusterSettings }
  | {
      readonly kind: 'register';
      readonly nodeId: NodeId;
      readonly diskId: string;
      readonly nonce: string;
      readonly clientAddress: string;
      readonly clusterAddress: string;
    }
  | { readonly kind: 'member-down'; readonly member: Member }
  | { readonly kind: 'member-up'; readonly member: Member }
  | { readonly kind: 'set-leaving'; readonly nodeId: NodeId; readonly leaving: boolean; readonly drain: boolean }
  /** A node that holds nothing any more is forgotten. */
  | { readonly kind: 'forget-node'; readonly nodeId: NodeId }
  /** First map (expectMapVersion 0) or a planned regeneration. */
  | { readonly kind: 'set-map'; readonly expectMapVersion: number; readonly placements: readonly Placement[] }
  | PartitionCommand;

/** One control log entry: its commands apply in order, all of them in one step. */
export interface Batch {
  readonly commands: readonly ControlCommand[];
}

/** What a command did, for notices. */
export type Applied = { readonly kind: 'applied' } | { readonly kind: 'refused'; readonly why: string };
