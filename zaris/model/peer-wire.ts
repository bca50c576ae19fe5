/**
 * What nodes say to each other on port 7811. Data-plane messages name the incarnations of both ends; one that was meant
 * for, or sent by, another incarnation is dropped: a restarted process must never be taken for its predecessor.
 * Any message may be lost, repeated, delayed or overtaken.
 */
import type { Entry, SnapshotClient, SnapshotItem } from './entry.ts';
import type { Incarnation, PartitionId, Seq, Term } from './ids.ts';
import type { RaftMessage } from './raft-wire.ts';

/** Both ends of a data-plane message. */
export interface Ends {
  readonly from: Incarnation;
  readonly to: Incarnation;
}

/** Asks the control leader for an incarnation; repeated until the registration is seen in the control log. */
export interface RegisterMessage {
  readonly kind: 'register';
  readonly diskId: string;
  /** Drawn once per process start; makes repeats of one start recognisable. */
  readonly nonce: string;
  readonly clientAddress: string;
  readonly clusterAddress: string;
}

/** A member tells the leader that it lives, and how far its logs reach: flat triples partition, last entry's term, last seq. */
export interface BeaconMessage {
  readonly kind: 'beacon';
  readonly from: Incarnation;
  readonly sentAtMs: number;
  readonly positions: readonly number[];
}

/** The leader's answer; renews the member's control session from the beacon's send. */
export interface BeaconAckMessage {
  readonly kind: 'beacon-ack';
  readonly to: Incarnation;
  readonly sentAtMs: number;
}

/** "Are you still there?", after a closed connection. */
export interface LookMessage {
  readonly kind: 'look' | 'look-ack';
  readonly nonce: number;
}

/** Control commands that a member asks the leader to propose; each compares an expected epoch, so repeats are harmless. */
export interface ProposeMessage {
  readonly kind: 'propose';
  readonly from: Incarnation;
  readonly commands: readonly unknown[];
}

/** Asks the leader, by a quorum-confirmed read begun after this was received, which terms are current. */
export interface TermsQueryMessage {
  readonly kind: 'terms-query';
  readonly from: Incarnation;
  readonly queryId: number;
  readonly partitions: readonly PartitionId[];
}

export interface TermsAnswerMessage {
  readonly kind: 'terms-answer';
  readonly to: Incarnation;
  readonly queryId: number;
  /** Same order as asked. */
  readonly terms: readonly Term[];
}

export interface AppendMessage extends Ends {
  readonly kind: 'append';
  readonly partition: PartitionId;
  /** The sender's term; entries keep their own. */
  readonly term: Term;
  readonly dataLossNumber: number;
  readonly previousSeq: Seq;
  readonly previousTerm: Term;
  readonly entries: readonly Entry[];
  readonly commitSeq: Seq;
}

export interface AppendAckMessage extends Ends {
  readonly kind: 'append-ack';
  readonly partition: PartitionId;
  readonly term: Term;
  /** Matched: everything up to `seq` equals the sender's log of this term. Else: `seq` is where to try again from. */
  readonly matched: boolean;
  readonly seq: Seq;
}

/** Numbers for each partition in a beat, and in its answer. */
export const beatWidth = 5;
export const beatAckWidth = 3;

/** One beat for all partitions that the sender leads and the receiver holds: flat pentads partition, term, commit seq, digest seq, digest. */
export interface BeatMessage extends Ends {
  readonly kind: 'beat';
  readonly sentAtMs: number;
  readonly partitions: readonly number[];
}

/** Grants a lease for each listed partition: flat triples partition, term, last seq matched in that term. */
export interface BeatAckMessage extends Ends {
  readonly kind: 'beat-ack';
  readonly sentAtMs: number;
  readonly partitions: readonly number[];
}

/** A new primary asks every in-sync and eligible member how far its log reaches; the asked one adopts the term. */
export interface PossessionQueryMessage extends Ends {
  readonly kind: 'possession-query';
  readonly partition: PartitionId;
  readonly term: Term;
}

export interface PossessionAnswerMessage extends Ends {
  readonly kind: 'possession-answer';
  readonly partition: PartitionId;
  readonly term: Term;
  readonly lastTerm: Term;
  readonly lastSeq: Seq;
  /** For people only: decides nothing. */
  readonly keyCount: number;
}

/** Fetches a more complete member's log above a (seq, term) that both hold. */
export interface TailQueryMessage extends Ends {
  readonly kind: 'tail-query';
  readonly partition: PartitionId;
  readonly term: Term;
  readonly afterSeq: Seq;
  readonly afterTerm: Term;
}

export interface TailAnswerMessage extends Ends {
  readonly kind: 'tail-answer';
  readonly partition: PartitionId;
  readonly term: Term;
  readonly afterSeq: Seq;
  readonly afterTerm: Term;
  readonly entries: readonly Entry[];
  /** True when there is more above the last entry here. */
  readonly more: boolean;
}

export interface SnapshotChunkMessage extends Ends {
  readonly kind: 'snapshot-chunk';
  readonly partition: PartitionId;
  readonly term: Term;
  readonly dataLossNumber: number;
  /** State as of this entry. */
  readonly seq: Seq;
  readonly seqTerm: Term;
  readonly snapshotId: number;
  readonly index: number;
  readonly last: boolean;
  readonly items: readonly SnapshotItem[];
  readonly clients: readonly SnapshotClient[];
}

export interface SnapshotAckMessage extends Ends {
  readonly kind: 'snapshot-ack';
  readonly partition: PartitionId;
  readonly term: Term;
  readonly snapshotId: number;
  /** The next chunk wanted. */
  readonly nextIndex: number;
}

export type DataMessage =
  | AppendMessage
  | AppendAckMessage
  | PossessionQueryMessage
  | PossessionAnswerMessage
  | TailQueryMessage
  | TailAnswerMessage
  | SnapshotChunkMessage
  | SnapshotAckMessage;

export type PeerMessage =
  | { readonly kind: 'raft'; readonly message: RaftMessage }
  | RegisterMessage
  | BeaconMessage
  | BeaconAckMessage
  | LookMessage
  | ProposeMessage
  | TermsQueryMessage
  | TermsAnswerMessage
  | BeatMessage
  | BeatAckMessage
  | DataMessage;
