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

/** On every message. One whose `receiver` is not exactly the node that reads it (nodeId and diskId) is dropped. */
export interface RaftEnvelope {
  readonly sender: Voter;
  readonly receiver: Voter;
  /** The sender's raftTerm; on `preVote` and a granted `preVoteAnswer` the one that would be campaigned in. */
  readonly raftTerm: number;
}

/** Asks for a vote (or, before that, whether one would be given) for a log that ends at (lastRaftTerm, lastIndex). */
export interface RaftVoteRequest extends RaftEnvelope {
  readonly kind: 'preVote' | 'vote';
  readonly lastIndex: number;
  readonly lastRaftTerm: number;
}

export interface RaftVoteAnswer extends RaftEnvelope {
  readonly kind: 'preVoteAnswer' | 'voteAnswer';
  readonly granted: boolean;
  /** Granted or not: everything up to this entry is committed, as far as the sender knows. */
  readonly commitIndex: number;
  readonly commitRaftTerm: number;
}

/** Entries right after (prevIndex, prevRaftTerm); with none it is a heartbeat. */
export interface RaftAppend extends RaftEnvelope {
  readonly kind: 'append';
  readonly prevIndex: number;
  readonly prevRaftTerm: number;
  readonly entries: readonly RaftEntry[];
  readonly commitIndex: number;
  /** The leader's latest read round; the answer returns it. Grows within a raftTerm. */
  readonly round: number;
}

/** The whole snapshot in one message. */
export interface RaftInstall extends RaftEnvelope {
  readonly kind: 'install';
  readonly snapshot: RaftSnapshot;
  readonly round: number;
}

/** The sender's durable log equals the leader's up to `matchIndex`. */
export interface RaftAccepted extends RaftEnvelope {
  readonly kind: 'accepted';
  readonly matchIndex: number;
  readonly round: number;
}

/** The sender's log does not hold (prevIndex, prevRaftTerm); the rest says where to look instead. */
export interface RaftRejected extends RaftEnvelope {
  readonly kind: 'rejected';
  readonly prevIndex: number;
  /** First index of the term found at `prevIndex`, or the end of a shorter log. */
  readonly conflictIndex: number;
  /** The term found at `prevIndex`; null when the log is shorter. */
  readonly conflictRaftTerm: number | null;
  readonly round: number;
}

/** Answer to an append or install of an older raftTerm: its leader is deposed. */
export interface RaftStale extends RaftEnvelope {
  readonly kind: 'stale';
}

export type RaftMessage =
  | RaftVoteRequest
  | RaftVoteAnswer
  | RaftAppend
  | RaftInstall
  | RaftAccepted
  | RaftRejected
  | RaftStale;
