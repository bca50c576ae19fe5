/** Mutants of hazards 1, 2, 4, 5 and 20: restarts that are taken for something else, additions that come late. */
import type { Edit, Mutant } from './mutant.ts';

const state = 'zaris/control/state.ts';

/** A restarted process keeps its predecessor's incarnation, and with it its places in the sets. */
const takenForItsPredecessor: readonly Edit[] = [
  { file: state, find: '    known.incarnation = asIncarnation(known.incarnation + 1);\n', replace: '' },
  {
    file: state,
    find: 'for (const runtime of this.data.runtimes) this.bury(runtime, dead);',
    replace: 'void dead;',
  },
];

export const restartMutants: readonly Mutant[] = [
  {
    hazard: 1,
    name: 'a restarted process is taken for its predecessor',
    rule: 'Registering a new incarnation is the death of the old one: the same entry takes it out of every in-sync set and ELR.',
    edits: takenForItsPredecessor,
    test: 'the last in-sync member restarts empty',
    red: 'the acknowledged write',
    asserted: 'without having proved possession',
  },
  {
    hazard: 2,
    name: 'a joiner of an old incarnation is added',
    rule: 'A process that restarts faster than it is detected is empty and must never be taken for its predecessor.',
    edits: [
      { file: state, find: "if (!this.isCurrent(member)) return refused('the joiner was restarted');", replace: '' },
    ],
    test: 'a joiner that restarts between catch-up and its addition is refused',
    red: 'additions of a dead incarnation',
    asserted: 'an in-sync member is a current incarnation',
  },
  {
    hazard: 2,
    name: 'a registration leaves the dead incarnation in the in-sync set',
    rule: 'Registering a new incarnation is the death of the old one: the same entry takes it out of every in-sync set and ELR.',
    edits: [{ file: state, find: '    runtime.inSync = withoutMember(runtime.inSync, dead);\n', replace: '' }],
    test: 'a joiner that restarts right after its addition leaves the set',
    red: 'dead incarnations in the set',
    asserted: 'an in-sync member is a current incarnation',
  },
  {
    hazard: 4,
    name: 'a different entry at a seq is taken for the same',
    rule: 'A replica accepts an entry only after (seq, entry term) of its predecessor matches; a different entry at a seq cuts everything after it.',
    edits: [
      {
        file: 'zaris/partition/replica.ts',
        find: '      if (own === entry.term) continue;',
        replace: '      if (own !== null) continue;',
      },
    ],
    test: 'a primary killed and restarted faster than detection',
    red: 'copies agree',
    asserted: 'digest differs',
  },
  {
    hazard: 4,
    name: 'a restarted primary goes on in its term',
    rule: 'Every assignment of a primary, even to the same node, raises epoch and term.',
    edits: takenForItsPredecessor,
    test: 'a primary killed and restarted faster than detection',
    red: 'copies agree',
    asserted: 'without having proved possession',
  },
  {
    hazard: 5,
    name: 'a handoff asks neither for the set nor for the log of its target',
    rule: 'Preferred primaries get ownership back only in sync and after a hold-down.',
    edits: [
      {
        file: state,
        find: "if (!this.isCurrent(to) || !hasMember(runtime.inSync, to)) return refused('the target is not in sync');",
        replace: '',
      },
      {
        file: 'zaris/partition/handoff.ts',
        find: 'const others = runtime.inSync.filter(',
        replace: 'const others = placement.replicas.flatMap((id) => host.current(id) ?? []).filter(',
      },
      {
        file: 'zaris/partition/handoff.ts',
        find: 'if (!assigned || nowMs - healthySinceMs < host.timings.holdDownMs) return null;',
        replace: 'void assigned;',
      },
      {
        file: 'zaris/partition/handoff.ts',
        find: 'if (!hasMember(runtime.inSync, this.to) || nowMs - this.sinceMs >= host.timings.drainMs) {',
        replace: 'if (nowMs - this.sinceMs >= host.timings.drainMs) {',
      },
      {
        file: 'zaris/partition/primary.ts',
        find: 'this.replicator?.get(handoff.to)?.matchSeq ===',
        replace: 'replica.log.last.seq ===',
      },
    ],
    test: 'the preferred primary restarts empty',
    red: 'keys held by the preferred primary',
  },
  {
    hazard: 20,
    name: 'commands are applied whatever epoch they compare',
    rule: 'Every change of a partition is a committed entry that compares the expected epoch.',
    edits: [
      {
        file: state,
        find: "if (runtime.epoch !== command.expectEpoch) return refused('the epoch moved meanwhile');",
        replace: '',
      },
    ],
    test: 'a delayed addition commits after the primary stopped waiting',
    red: 'late additions that were applied',
  },
  {
    hazard: 20,
    name: 'a silent joiner is no longer waited for once its withdrawal is proposed',
    rule: 'A proposed joiner stays required until the primary has applied an entry that settles it; withdrawing is itself committed.',
    edits: [
      {
        file: 'zaris/partition/in-sync.ts',
        find: "host.propose({ kind: 'withdraw', partition, expectEpoch: runtime.epoch, by: host.self });",
        replace:
          "host.propose({ kind: 'withdraw', partition, expectEpoch: runtime.epoch, by: host.self }); this.proposed = null;",
      },
    ],
    test: 'the addition commits first',
    red: 'acknowledged while the addition was open',
  },
];
