/**
 * Who should vote: the next change of the voter set that the registered nodes ask for, one at a time. Pure.
 * A node that came back without its disk replaces its former self; were the old voter kept, a quorum could be made of ghosts.
 */
import type { ConfigChange } from '../control/raft-config.ts';
import type { Raft } from '../control/raft.ts';
import type { ControlState } from '../control/state.ts';
import type { Voter } from '../model/raft-wire.ts';

export function nextConfigChange(state: ControlState, raft: Raft, maxVoters: number): ConfigChange | null {
  const { voters, learners } = raft.config;
  const same = (a: Voter, b: Voter): boolean => a.nodeId === b.nodeId && a.diskId === b.diskId;
  const caughtUp = (voter: Voter): boolean => {
    const progress = raft.progress.find((peer) => same(peer.voter, voter));
    return progress !== undefined && progress.matchIndex >= raft.commitIndex - 64;
  };
  for (const node of state.nodes) {
    const voter: Voter = { nodeId: node.nodeId, diskId: node.diskId };
    if (voters.some((other) => same(other, voter))) continue;
    const ghost = voters.find((other) => other.nodeId === node.nodeId);
    const learner = learners.some((other) => same(other, voter));
    if (!learner) return { kind: 'addLearner', voter };
    if (!caughtUp(voter)) continue;
    if (ghost !== undefined) return { kind: 'replace', old: ghost, new: voter };
    if (voters.length < maxVoters && !node.leaving && node.alive) return { kind: 'promote', voter };
  }
  for (const voter of [...learners, ...voters]) {
    const node = state.node(voter.nodeId);
    const isCurrent = node !== undefined && node.diskId === voter.diskId;
    const ghostOfNode = node !== undefined && !isCurrent && learners.some((other) => same(other, voter));
    if (ghostOfNode) return { kind: 'remove', voter };
    if (node === undefined && state.nodes.length > 0 && voter.nodeId !== raft.self.nodeId)
      return { kind: 'remove', voter };
  }
  return null;
}
