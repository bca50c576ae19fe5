/**
 * Messages and disk records of the control plane's Raft. Own term: always `raftTerm`, never confused with a partition's
 * `term`. A voter is (nodeId, diskId): who comes back without its disk is another voter, and has no vote until a committed
 * change gives it one; if that broke, a wiped voter could vote twice in a term.
 */
import type { NodeId } from './ids.ts';

export interface Voter {
  readonly nodeId: NodeId;
  /** Drawn at random when a control disk is first made. */
  readonly diskId: string;
}

/** Who votes and who only learns. */
export interface RaftConfig {
  readonly voters: readonly Voter[];
  readonly learners: readonly Voter[];
}

/** `command` is opaque to Raft. */
export type RaftEntry =
  | { readonly kind: 'noop'; readonly index: number; readonly raftTerm: number }
  | { readonly kind: 'config'; readonly index: number; readonly raftTerm: number; readonly config: RaftConfig }
  | { readonly kind: 'command'; readonly index: number; readonly raftTerm: number; readonly command: unknown };

export interface RaftSnapshot {
  readonly index: number;
  readonly raftTerm: number;
  readonly config: RaftConfig;
  /** Opaque to Raft. */
  readonly state: unknown;
}

/** What must survive a crash, in order. */
export type DiskWrite =
  | { readonly kind: 'identity'; readonly diskId: string }
  | { readonly kind: 'vote'; readonly raftTerm: number; readonly votedFor: NodeId | null }
  /** Cuts everything from the first entry's index on, then appends. */
  | { readonly kind: 'entries'; readonly entries: readonly RaftEntry[] }
  /** Replaces everything up to `snapshot.index`; entries above it that agree stay. */
  | { readonly kind: 'snapshot'; readonly snapshot: RaftSnapshot };

/** A control disk as found at start: the fold of all its writes. An empty disk has no diskId. */
export interface DiskState {
  readonly diskId: string | null;
  readonly raftTerm: number;
  readonly votedFor: NodeId | null;
  readonly snapshot: RaftSnapshot | null;
  /** Contiguous, starting right above the snapshot (or at 1). */
  readonly entries: readonly RaftEntry[];
}

export const emptyDisk: DiskState = { diskId: null, raftTerm: 0, votedFor: null, snapshot: null, entries: [] };
