/**
 * Voters, quorums and changes of the voter set.
 *
 * A change is **one** log entry, also `replace`, which swaps a voter for another: two majorities that need not overlap
 * (of A B C and A B D, the sets {A, C} and {B, D}). So while the latest config entry is not known to be committed, elections
 * and commitment need a majority of it **and** of the config before it. Why one entry is enough, with k the entry, Old
 * and New its configs:
 * - A node without k decides by Old alone. Before k commits, every node with k needs Old too, so all decisions meet in Old.
 * - k commits only on majorities of Old and New. From then on a candidate without k loses in Old (a majority of it has
 *   the longer log or the later raftTerm), and a deposed leader without k commits nothing more there, for the same reason. So
 *   whoever still decides anything has k and needs New, alone or with Old: all decisions meet in New.
 * - k is proposed only when the config entry before it is committed and an entry of the proposer's own raftTerm is too. So a log
 *   that holds k proves that Old is committed, and two configs are always enough to look at.
 * A restart forgets what was known to be committed and asks for Old again: safe, but Old may have lost its majority by then. So
 * the leader follows a committed change with a second entry of the same config (it "settles" it): a log that holds it proves
 * that k is committed, and Old is never asked for again. Answers to vote requests carry what is known to be committed, so that a
 * member of Old that is needed no longer says so, where its longer log keeps it from voting (a leader that swapped itself
 * out and crashed before anybody else had the settling entry).
 *
 * Worst outcome if wrong: two leaders in one raftTerm, and with them two histories of the cluster.
 * Source: Ongaro, "Consensus: bridging theory and practice" (2014), §4.3 and the author's correction of July 2015.
 */
import { unreachable } from '../../lib/assert.ts';
import type { RaftConfig, Voter } from '../model/raft-wire.ts';

/** No voters at all: what an empty log means. It never elects anybody. */
export const emptyConfig: RaftConfig = { voters: [], learners: [] };

/** A step of the voter set; made into a whole config by {@link changedConfig}. */
export type ConfigChange =
  | { readonly kind: 'addLearner'; readonly voter: Voter }
  /** Makes a learner a voter. */
  | { readonly kind: 'promote'; readonly voter: Voter }
  /** Swaps a voter whose disk is gone for a new one (a learner by then, if it is to be of use at once). */
  | { readonly kind: 'replace'; readonly old: Voter; readonly new: Voter }
  | { readonly kind: 'remove'; readonly voter: Voter };

/** Identity as a map key. */
export const voterKey = (voter: Voter): string => `${voter.nodeId}/${voter.diskId}`;

export const sameVoter = (a: Voter, b: Voter): boolean => a.nodeId === b.nodeId && a.diskId === b.diskId;

export const hasVoter = (voters: readonly Voter[], voter: Voter): boolean =>
  voters.some((other) => sameVoter(other, voter));

/** Whether both hold the same voters, in any order. */
export const sameVoters = (a: readonly Voter[], b: readonly Voter[]): boolean =>
  a.length === b.length && a.every((voter) => hasVoter(b, voter));

const without = (voters: readonly Voter[], gone: Voter): Voter[] => voters.filter((voter) => !sameVoter(voter, gone));
const withoutNode = (voters: readonly Voter[], gone: Voter): Voter[] =>
  voters.filter((voter) => voter.nodeId !== gone.nodeId);

/** True when every group has a majority of voters that satisfy `holds`; false without any group. */
export function everyMajority(groups: readonly (readonly Voter[])[], holds: (voter: Voter) => boolean): boolean {
  if (groups.length === 0) return false;
  return groups.every((group) => 2 * group.filter(holds).length > group.length);
}

/** The highest index that a majority of every group has reached. */
export function majorityIndex(groups: readonly (readonly Voter[])[], indexOf: (voter: Voter) => number): number {
  const reached = groups.map((group) => {
    const descending = group.map(indexOf).sort((a, b) => b - a);
    return descending[Math.floor(group.length / 2)] ?? 0;
  });
  return reached.length === 0 ? 0 : Math.min(...reached);
}

/** The config after `change`, or null where it makes no sense or changes nothing. A node is never two voters at a time. */
export function changedConfig(config: RaftConfig, change: ConfigChange): RaftConfig | null {
  const { voters, learners } = config;
  switch (change.kind) {
    case 'addLearner':
      if (hasVoter(voters, change.voter) || hasVoter(learners, change.voter)) return null;
      return { voters, learners: [...withoutNode(learners, change.voter), change.voter] };
    case 'promote':
      if (!hasVoter(learners, change.voter)) return null;
      if (voters.some((voter) => voter.nodeId === change.voter.nodeId)) return null;
      return { voters: [...voters, change.voter], learners: without(learners, change.voter) };
    case 'replace': {
      const rest = without(voters, change.old);
      if (rest.length === voters.length || rest.some((voter) => voter.nodeId === change.new.nodeId)) return null;
      if (sameVoter(change.old, change.new)) return null;
      return { voters: [...rest, change.new], learners: withoutNode(learners, change.new) };
    }
    case 'remove': {
      const next = { voters: without(voters, change.voter), learners: without(learners, change.voter) };
      const unchanged = next.voters.length === voters.length && next.learners.length === learners.length;
      return unchanged || next.voters.length === 0 ? null : next;
    }
    default:
      return unreachable(change);
  }
}
