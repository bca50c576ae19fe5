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

  /** Opens with the candidate's own grant. */
  constructor(kind: 'preVote' | 'vote', raftTerm: number, self: Voter) {
    this.kind = kind;
    this.raftTerm = raftTerm;
    this.grants = new Set([voterKey(self)]);
  }

  /** Counts a grant; false where it answers another round. */
  count({ kind, sender, raftTerm }: RaftVoteAnswer): boolean {
    if (kind !== `${this.kind}Answer` || raftTerm !== this.raftTerm) return false;
    this.grants.add(voterKey(sender));
    return true;
  }

  isWon(groups: readonly (readonly Voter[])[]): boolean {
    return everyMajority(groups, (voter) => this.grants.has(voterKey(voter)));
  }
}

/** Whether the vote of `voter` is needed by any of the groups. */
export const isAsked = (groups: readonly (readonly Voter[])[], voter: Voter): boolean =>
  groups.some((voters) => hasVoter(voters, voter));
