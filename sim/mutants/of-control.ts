/** Mutants of hazards 13, 15 and 18: lost partitions, votes, voters without their disks. */
import type { Mutant } from './mutant.ts';

const state = 'zaris/control/state.ts';
const raft = 'zaris/control/raft.ts';

export const controlMutants: readonly Mutant[] = [
  {
    hazard: 13,
    name: 'a new incarnation inherits the places of the old one',
    rule: 'A new incarnation is the death of the old one; all re-registered empty: Lost, and answers say so, never NotFound.',
    edits: [
      {
        file: state,
        find: '    runtime.inSync = withoutMember(runtime.inSync, dead);\n',
        replace:
          '    runtime.inSync = runtime.inSync.map((member) => (sameMember(member, dead) ? present(this.current(dead.nodeId), "it") : member));\n',
      },
    ],
    test: 'all holders die',
    red: 'health',
  },
  {
    hazard: 13,
    name: 'a lost partition passes for an unavailable one',
    rule: 'All re-registered empty: Lost; answers say so.',
    edits: [{ file: state, find: "if (lost) runtime.health = 'Lost';", replace: '' }],
    test: 'all holders die',
    red: 'health',
  },
  {
    hazard: 13,
    name: 'an eviction keeps the data-loss number',
    rule: 'Eviction: the partition is re-homed empty, its data-loss number raised, an audit event written.',
    edits: [{ file: state, find: '    runtime.dataLossNumber += 1;\n', replace: '' }],
    test: 'all holders die',
    red: 'the data-loss number',
    asserted: 'an eviction raises the data-loss number by one',
  },
  {
    hazard: 15,
    name: 'a restarted voter has forgotten its vote',
    rule: 'raftTerm, vote and log are on disk, fsynced, also in memory mode.',
    edits: [{ file: raft, find: 'this.votedFor = disk.votedFor;', replace: 'this.votedFor = null;' }],
    test: 'a voter is killed',
    red: 'votes given twice',
  },
  {
    hazard: 15,
    name: 'a vote leaves before it is on disk',
    rule: 'Nothing that follows a persist is released before its persisted event.',
    edits: [
      {
        file: 'zaris/node/contract.ts',
        find: "(effect.kind === 'send' && effect.message.kind === 'raft')",
        replace: 'false',
      },
    ],
    test: 'a voter is killed',
    red: 'votes given twice',
  },
  {
    hazard: 18,
    name: 'a node with an empty disk votes under its old name',
    rule: 'A node with an empty control disk never votes and never bootstraps: it joins as a new voter (nodeId, diskId).',
    edits: [
      { file: raft, find: 'if (this.lastIndex === 0) return;', replace: '' },
      {
        file: raft,
        find: 'if (this.lastIndex === 0 || this.leaderIsFresh) return;',
        replace: 'if (this.leaderIsFresh) return;',
      },
      {
        file: 'zaris/control/raft-config.ts',
        find: 'export const voterKey = (voter: Voter): string => `${voter.nodeId}/${voter.diskId}`;',
        replace: 'export const voterKey = (voter: Voter): string => voter.nodeId;',
      },
      {
        file: 'zaris/control/raft-config.ts',
        find: 'a.nodeId === b.nodeId && a.diskId === b.diskId;',
        replace: 'a.nodeId === b.nodeId;',
      },
    ],
    test: 'a majority is wiped that had elected a newer primary',
    red: 'answers after the newer history is gone',
  },
];
