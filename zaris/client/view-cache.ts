/**
 * The client's copy of the cluster view. Invariant: revision and, per partition, epoch never go back, whatever order answers come
 * in. If they did, two nodes with different news would send requests in circles.
 */
import type { Answer } from '../model/client-wire.ts';
import type { Member, NodeId, PartitionId } from '../model/ids.ts';
import { partitionOf } from '../model/segments.ts';
import type { ClusterView, NodeView, PartitionView } from '../model/view.ts';

export type ViewNews = 'first' | 'newer' | 'none' | 'other-cluster';

/** Newest known view and the epochs that refusals have proved beyond it. */
export class ViewCache {
  private view: ClusterView | null = null;
  private partitions: PartitionView[] = [];
  private nodes = new Map<NodeId, NodeView>();
  private readonly provenEpochs = new Map<PartitionId, number>();

  get revision(): number {
    return this.view?.revision ?? -1;
  }

  /** Null until a view with a map has come. */
  get current(): ClusterView | null {
    return this.view === null || this.partitions.length === 0 ? null : { ...this.view, partitions: this.partitions };
  }

  get isUsable(): boolean {
    return this.partitions.length > 0;
  }

  get controlLeader(): NodeId | null {
    return this.view?.controlLeader ?? null;
  }

  get nodeViews(): Iterable<NodeView> {
    return this.nodes.values();
  }

  node(nodeId: NodeId): NodeView | undefined {
    return this.nodes.get(nodeId);
  }

  partition(partition: PartitionId): PartitionView | undefined {
    return this.partitions[partition];
  }

  partitionOfKey(key: string): PartitionId {
    return partitionOf(key, this.partitions.length);
  }

  /** Takes a view in. An older one changes nothing; neither does an older epoch inside a newer one. */
  apply(view: ClusterView): ViewNews {
    if (this.view !== null && this.isUsable && view.clusterId !== this.view.clusterId) return 'other-cluster';
    if (view.revision <= this.revision) return 'none';
    const wasUsable = this.isUsable;
    if (this.partitions.length > 0 && view.partitions.length !== this.partitions.length) return 'other-cluster';
    this.partitions = view.partitions.map((incoming, index) => {
      const held = this.partitions[index];
      return held !== undefined && held.epoch > incoming.epoch ? held : incoming;
    });
    this.view = view;
    this.nodes = new Map(view.nodes.map((node) => [node.nodeId, node]));
    for (const [partition, epoch] of this.provenEpochs) {
      if ((this.partitions[partition]?.epoch ?? 0) >= epoch) this.provenEpochs.delete(partition);
    }
    return !wasUsable && this.isUsable ? 'first' : 'newer';
  }

  /** Remembers the epoch that a refusal names; true when it proves this view older. */
  learnEpoch(answer: Answer): boolean {
    const { partition, epoch } = answer;
    if (partition === undefined || epoch === undefined) return false;
    if (epoch <= Math.max(this.partitions[partition]?.epoch ?? -1, this.provenEpochs.get(partition) ?? -1))
      return false;
    this.provenEpochs.set(partition, epoch);
    return true;
  }
}

/**
 * Whom to ask for a partition: its primary; of a lost one any node that should hold it (so that a node says so); else null.
 */
export function routeOf(partition: PartitionView): { readonly nodeId: NodeId; readonly member: Member | null } | null {
  if (partition.primary !== null) return { nodeId: partition.primary.nodeId, member: partition.primary };
  return partition.health === 'Lost' ? { nodeId: partition.preferredPrimary, member: null } : null;
}
