/**
 * One round of asking for votes, or for pre-votes.
 *
 * Invariant: grants are counted by disk, within one round and one raftTerm, and only from those whose votes are needed.
 * Worst outcome if wrong: a leader without a majority.
 */
import type { RaftVoteAnswer, Voter } from '../model/raft-wire.ts';
import { everyMajority, hasVoter, voterKey } from './raft-config.ts';

export class Ballot {
  readonly kind: 'preVote' | 'vote';
  /** The raftTerm asked for. */
  readonly raftTerm: number;
  private readonly grants: Set<string>;
  private readonly refusals = new Set<string>();

  /** Opens with the candidate's own grant. */
  constructor(kind: 'preVote' | 'vote', raftTerm: number, self: Voter) {
    this.kind = kind;
    this.raftTerm = raftTerm;
    this.grants = new Set([voterKey(self)]);
  }

  /** Counts an answer; false where it answers another round. */
  count({ kind, sender, raftTerm, granted }: RaftVoteAnswer): boolean {
    if (kind !== `${this.kind}Answer` || raftTerm !== this.raftTerm) return false;
    (granted ? this.grants : this.refusals).add(voterKey(sender));
    return true;
  }

  isWon(groups: readonly (readonly Voter[])[]): boolean {
    return everyMajority(groups, (voter) => this.grants.has(voterKey(voter)));
  }

  /** Half of the others or more refused: with one voter dead, this is what a split looks like. */
  isContested(groups: readonly (readonly Voter[])[]): boolean {
    return groups.some(
      (voters) => 2 * voters.filter((v) => this.refusals.has(voterKey(v))).length >= voters.length - 1,
    );
  }
}

/** Whether the vote of `voter` is needed by any of the groups. */
export const isAsked = (groups: readonly (readonly Voter[])[], voter: Voter): boolean =>
  groups.some((voters) => hasVoter(voters, voter));
