/** Mutants of hazards 12, 14, 19 and 24: handoffs, migration, new copies, snapshots. */
import type { Mutant } from './mutant.ts';

const state = 'zaris/control/state.ts';
const inSync = 'zaris/partition/in-sync.ts';
const rules = 'zaris/partition/rules.ts';

export const moveMutants: readonly Mutant[] = [
  {
    hazard: 12,
    name: 'reads go on after the release was proposed',
    rule: 'Handoff: hold new writes, drain with a bound, stop reads, release, commit the new term, serve.',
    edits: [
      {
        file: 'zaris/partition/primary.ts',
        find: '(this.handoff === null || !this.handoff.readsStopped) && this.isServing(nowMs)',
        replace: 'this.isServing(nowMs)',
      },
    ],
    test: 'a release is held back',
    red: 'answers while the release is open',
  },
  {
    hazard: 12,
    name: 'the old primary resumes by a timer',
    rule: 'Before release the old primary resumes only on a committed abort; after it only on a new committed assignment.',
    edits: [
      {
        file: 'zaris/partition/handoff.ts',
        find: "host.propose({ kind: 'withdraw', partition, expectEpoch, by: host.self });",
        replace:
          "host.propose({ kind: 'withdraw', partition, expectEpoch, by: host.self }); return this.resume('time', nowMs);",
      },
    ],
    test: 'a release is held back',
    red: 'answers while the release is open',
  },
  {
    hazard: 12,
    name: 'a late release is applied',
    rule: 'Every change of a partition is a committed entry that compares the expected epoch.',
    edits: [
      {
        file: state,
        find: "if (runtime.epoch !== command.expectEpoch) return refused('the epoch moved meanwhile');",
        replace: '',
      },
    ],
    test: 'a release is held back',
    red: 'who leads after the late release',
  },
  {
    hazard: 12,
    name: 'an assignment keeps the term',
    rule: 'Every assignment of a primary, even to the same node, raises epoch and term.',
    edits: [{ file: state, find: '    runtime.term = asTerm(runtime.epoch + 1);\n', replace: '' }],
    test: 'handoffs aborted again and again under load',
    red: 'terms with two primaries',
    asserted: 'an assignment raises the term',
  },
  {
    hazard: 14,
    name: 'a learner joins before it has caught up',
    rule: 'A joiner acknowledges only when its snapshot is complete and its log contiguous.',
    edits: [
      { file: rules, find: 'return learnerMatch >= commitSeq;', replace: 'return learnerMatch >= 0 || commitSeq > 0;' },
      {
        file: inSync,
        find: 'if (progress === undefined || progress.probing || progress.snapshot !== null) continue;',
        replace: 'if (progress === undefined) continue;',
      },
    ],
    test: 'every copy but the new one dies when it',
    red: 'acknowledged and missing',
  },
  {
    hazard: 14,
    name: 'a proposed joiner is not waited for',
    rule: 'The primary sends an entry to the in-sync set and every proposed joiner, and commits when all of them hold it.',
    edits: [
      {
        file: rules,
        find: '    for (const match of joiners) if (match.seq < held) held = match.seq;\n',
        replace: '    void joiners;\n',
      },
    ],
    test: 'every copy but the new one dies when it',
    red: 'acknowledged and missing',
    asserted: 'joiner n4#1 holds',
  },
  {
    hazard: 14,
    name: 'the surplus copy goes first',
    rule: 'Scale-out: regenerate the map, add learners, bring them in sync, hand over, remove the surplus member last.',
    edits: [
      {
        file: inSync,
        find: 'if (!allIn || !this.mayPropose(runtime.epoch, nowMs)) return;',
        replace: 'if (!this.mayPropose(runtime.epoch, nowMs)) return;',
      },
      {
        file: inSync,
        find: 'else if (!this.proposeJoiner(runtime, nowMs)) this.dropSurplus(runtime, nowMs);',
        replace: 'else { this.dropSurplus(runtime, nowMs); this.proposeJoiner(runtime, nowMs); }',
      },
    ],
    test: 'every copy but the new one dies when it',
    red: 'health',
  },
  {
    hazard: 19,
    name: 'a single copy is enough to acknowledge',
    rule: 'Below minInSync the commit index does not advance; a sole in-sync survivor serves reads at once, writes after its first joiner.',
    edits: [
      { file: rules, find: 'if (inSync.length < minInSync) return commitSeq;', replace: 'void minInSync;' },
      {
        file: 'zaris/partition/request-desk.ts',
        find: 'if (runtime.inSync.length < host.minInSync) {',
        replace: 'if (runtime.inSync.length < 1) {',
      },
    ],
    test: 'two of three holders gone for good',
    red: 'writes acknowledged with a single copy',
    asserted: 'with 1 in sync',
  },
  {
    hazard: 19,
    name: 'reads without a lease are never confirmed',
    rule: 'Failing the lease, a quorum-confirmed control read, begun after the read, that the term is current.',
    edits: [
      {
        file: 'zaris/node/data-plane.ts',
        find: 'if (!primary.desk.gate.waitsSince(before) || !primary.mayRead(nowMs)) continue;',
        replace: 'if (nowMs >= before) continue;',
      },
    ],
    test: 'two of three holders gone for good',
    red: 'time of the first read',
  },
  {
    hazard: 19,
    name: 'an eligible member that is gone joins again and again',
    rule: 'A silent replica leaves the in-sync set; one that is gone is added again when it is back.',
    edits: [{ file: inSync, find: 'if (!host.isAlive(member) || nowMs', replace: 'if (nowMs' }],
    test: 'two of three holders gone for good',
    red: 'each of the two left once',
  },
  {
    hazard: 24,
    name: 'a snapshot is laid over the old copy',
    rule: 'A half snapshot is dropped, a complete one replaces the state; nothing deleted meanwhile comes back.',
    edits: [
      {
        file: 'zaris/partition/replica.ts',
        find: '    this.store = staging.store;\n',
        replace:
          '    const old = this.store.snapshot(0).items.filter(({ key }) => staging.store.get(key) === undefined);\n    this.store = staging.store;\n    this.store.restoreItems(old, [], 0);\n',
      },
    ],
    test: 'a snapshot whose source dies',
    red: 'deleted and back',
    asserted: 'digest differs',
  },
  {
    hazard: 24,
    name: 'the snapshot of a successor is laid over the half one of its predecessor',
    rule: 'After the source dies it resumes only if the new source reaches back to the contiguous seq; otherwise from empty.',
    edits: [
      {
        file: 'zaris/partition/replica.ts',
        find: '      this.staging = null;\n      this.termPrimary = null;\n',
        replace: '      this.termPrimary = null;\n',
      },
      {
        file: 'zaris/partition/replica.ts',
        find: 'store: PartitionStore.startingAt({ term: message.seqTerm, seq: message.seq }),',
        replace:
          'store: Object.assign(known?.store ?? new PartitionStore(), { appliedVersion: { term: message.seqTerm, seq: message.seq } }),',
      },
    ],
    test: 'a snapshot whose source dies',
    red: 'deleted and back',
    asserted: 'digest differs',
  },
];
