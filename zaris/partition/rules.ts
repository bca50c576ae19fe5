/**
 * The protocol's decisions as pure functions: what may commit, what may be read, who may serve.
 *
 * They stand in one place so that they can be read, tested by truth table, and replaced from outside by deliberately wrong
 * ones when the verifier is tested (the shipped node always gets {@link soundRules}). Each is what stands between an
 * acknowledged write and its loss. Sources: PacificA §2.3–2.4, Kafka KIP-966, Gray & Cheriton 1989 (leases).
 */
import { type Member, type Seq, type Version, compareVersions, hasMember, sameMember } from '../model/ids.ts';
import type { PartitionLog } from './log.ts';
import type { PartitionStore, Remembered } from './store.ts';

export interface Match {
  readonly member: Member;
  /** Last seq that the member confirmed in the current term; the primary's own is its log's end. */
  readonly seq: Seq;
  /** Milliseconds since it last confirmed anything. */
  readonly silentMs: number;
}

export interface CommitInput {
  readonly commitSeq: Seq;
  readonly lastSeq: Seq;
  readonly self: Member;
  /** One per in-sync member, the primary's own included. */
  readonly inSync: readonly Match[];
  /** Joiners whose addition is proposed and not settled. */
  readonly joiners: readonly Match[];
  readonly minInSync: number;
}

export interface LeaseInput {
  readonly nowMs: number;
  readonly leaseMs: number;
  /** Send time of the last beat that each promotable member other than the holder answered in this term. */
  readonly grants: readonly { readonly member: Member; readonly sentAtMs: number }[];
}

export interface PossessionInput {
  readonly self: Member;
  readonly inSync: readonly Member[];
  readonly eligible: readonly Member[];
  readonly own: Version;
  readonly ownKeyCount: number;
  /** Contiguous and with valid checksums. */
  readonly ownLogSound: boolean;
  readonly answers: readonly { readonly member: Member; readonly last: Version; readonly keyCount: number }[];
}

export type Possession =
  | { readonly kind: 'possessed' }
  | { readonly kind: 'synchronise'; readonly source: Member }
  | { readonly kind: 'refused'; readonly why: string };

export interface ProtocolRules {
  /** The new commit index: the highest seq that every required member holds, or the old one. */
  commitIndex(input: CommitInput): Seq;
  /** May the holder answer a read now? */
  leaseHeld(input: LeaseInput): boolean;
  provePossession(input: PossessionInput): Possession;
  /** Which learner may be proposed for the in-sync set: its log reaches the commit index. */
  mayJoin(learnerMatch: Seq, commitSeq: Seq): boolean;
  /** What a newly assigned primary does with entries above its commit index. */
  tailOnPromotion(log: PartitionLog, commitSeq: Seq): void;
  remembered(store: PartitionStore, clientId: string, sequence: number): Remembered;
}

export const soundRules: ProtocolRules = {
  commitIndex({ commitSeq, lastSeq, inSync, joiners, minInSync }) {
    if (inSync.length < minInSync) return commitSeq;
    let held = lastSeq;
    for (const match of inSync) if (match.seq < held) held = match.seq;
    for (const match of joiners) if (match.seq < held) held = match.seq;
    return held > commitSeq ? held : commitSeq;
  },

  leaseHeld({ nowMs, leaseMs, grants }) {
    return grants.every((grant) => nowMs < grant.sentAtMs + leaseMs);
  },

  provePossession({ self, inSync, eligible, own, ownLogSound, answers }) {
    if (!hasMember(inSync, self) && !hasMember(eligible, self)) return { kind: 'refused', why: 'in no set' };
    if (!ownLogSound) return { kind: 'refused', why: 'log has a gap or a bad checksum' };
    let best: { member: Member; last: Version } | null = null;
    for (const answer of answers) {
      if (sameMember(answer.member, self)) continue;
      if (!hasMember(inSync, answer.member) && !hasMember(eligible, answer.member)) continue;
      if (compareVersions(answer.last, own) <= 0) continue;
      if (best === null || compareVersions(answer.last, best.last) > 0) best = answer;
    }
    return best === null ? { kind: 'possessed' } : { kind: 'synchronise', source: best.member };
  },

  mayJoin(learnerMatch, commitSeq) {
    return learnerMatch >= commitSeq;
  },

  tailOnPromotion() {
    // Kept whole: an entry above this member's commit index may have been acknowledged by the old primary.
  },

  remembered(store, clientId, sequence) {
    return store.remembered(clientId, sequence);
  },
};
