/**
 * What clients and nodes say to each other on port 7861. One frame carries one or more of these (see codec).
 *
 * Requests carry an id chosen by the client, unique on the connection; answers may come in any order.
 */
import type { Epoch, Member, NodeId, PartitionId, Version } from './ids.ts';
import type { Outcome, Status } from './status.ts';
import type { ClusterView } from './view.ts';

/**
 * Makes a repeat of a mutation recognisable. `sequence` counts per (clientId, partition) from 1; every sequence below
 * `lowWatermark` is settled at the client and will never be sent again, so its record may go.
 */
export interface Once {
  readonly clientId: string;
  readonly sequence: number;
  readonly lowWatermark: number;
}

/** Acknowledgement mode: `in-sync` after every in-sync copy holds it (the default), `async` after the primary's own append. */
export type AckMode = 'in-sync' | 'async';

/** Conditions are exclusive of each other. Versions compare with the key's current version. */
export type Mutation =
  | {
      readonly kind: 'put';
      readonly key: string;
      readonly value: string;
      /** Only when the key is absent. */
      readonly ifAbsent?: boolean;
      /** Only when the key's current version is this one. */
      readonly ifVersion?: Version;
      /** Time to live from the moment the primary logs it, ms. */
      readonly ttlMs?: number;
    }
  | { readonly kind: 'delete'; readonly key: string; readonly ifVersion?: Version }
  /** Counter: an absent key counts as 0. `Conflict` when the sum would leave [min, max]; `InvalidInput` when the value is no number. */
  | {
      readonly kind: 'add';
      readonly key: string;
      readonly delta: number;
      readonly min?: number;
      readonly max?: number;
    };

export type ClientRequest =
  /** First request of every connection. `token` only where the cluster asks for one. */
  | { readonly op: 'hello'; readonly id: number; readonly clientId: string; readonly token?: string }
  /** The cluster view; with `newerThan` (a view's `revision`) it waits up to `waitMs` for a newer one (long poll). */
  | { readonly op: 'view'; readonly id: number; readonly newerThan?: number; readonly waitMs?: number }
  | { readonly op: 'ping'; readonly id: number }
  | { readonly op: 'get'; readonly id: number; readonly partition: PartitionId; readonly key: string }
  | {
      readonly op: 'mutate';
      readonly id: number;
      readonly partition: PartitionId;
      readonly once: Once;
      readonly mutation: Mutation;
      /** 1 for the first send of this sequence; above 1 an earlier attempt may still be in flight. */
      readonly attempt: number;
      readonly mode?: AckMode;
    }
  /** Keys of one partition that start with `prefix`, in order, after `after`; at most `limit`. Committed state. */
  | {
      readonly op: 'scan';
      readonly id: number;
      readonly partition: PartitionId;
      readonly prefix: string;
      readonly after?: string;
      readonly limit: number;
    }
  /** Asks this very node for its own applied copy of keys, whatever its role: for autopsies, never for applications. */
  | { readonly op: 'peek'; readonly id: number; readonly partition: PartitionId; readonly keys: readonly string[] }
  /** Administrative: drain this node (hand every primary over), or leave for good. */
  | { readonly op: 'admin'; readonly id: number; readonly command: AdminCommand };

/** What a new cluster is told once, by an explicit act; kept in the control log from then on. */
export interface ClusterSettings {
  readonly clusterId: string;
  readonly replicationFactor: number;
  readonly minInSync: number;
  readonly partitionCount: number;
  /** The first map is drawn once this many nodes have registered. */
  readonly initialNodes: number;
}

export type AdminCommand =
  /** The node asked becomes the only voter of a new cluster; others join it. Refused where a control disk is not empty. */
  | { readonly kind: 'bootstrap'; readonly settings: ClusterSettings }
  | { readonly kind: 'drain'; readonly nodeId: NodeId }
  /** Plan a new map over the nodes that are alive and not leaving; `leaving` nodes give up their copies last. */
  | { readonly kind: 'rebalance'; readonly leaving: readonly NodeId[] };

/** Every answer says which partition, epoch and member judged it; refusals also say what is known of the operation. */
export interface Answer {
  readonly id: number;
  readonly status: Status;
  /** get: the value. add: the new sum, as text. */
  readonly value?: string;
  /** The version that the answer was judged against (the written one for a mutation that took effect). */
  readonly version?: Version;
  /** Only on transient statuses; absent elsewhere. */
  readonly outcome?: Outcome;
  readonly partition?: PartitionId;
  readonly epoch?: Epoch;
  /** Who owns the partition, as far as the answering node knows. */
  readonly owner?: NodeId;
  /** Who answered. */
  readonly member?: Member;
  /** One sentence for people, on refusals and errors. */
  readonly reason?: string;
  /** view */
  readonly view?: ClusterView;
  /** scan */
  readonly items?: readonly ScanItem[];
  readonly more?: boolean;
  /** peek */
  readonly copy?: CopyReport;
}

export interface ScanItem {
  readonly key: string;
  readonly value: string;
  readonly version: Version;
}

/** One node's own copy of a partition, for the autopsy and the convergence check. */
export interface CopyReport {
  readonly role: 'primary' | 'replica' | 'joiner' | 'none';
  /** Last applied entry and the commit index that this copy knows of. */
  readonly applied: Version;
  readonly commitSeq: number;
  /** Digest of all applied keys, values and versions; equal at equal `applied` on every sound copy. */
  readonly digest: string;
  readonly keyCount: number;
  /** One per asked key, same order. Absent keys have no value. */
  readonly values: readonly { readonly key: string; readonly value?: string; readonly version?: Version }[];
}
