/** Mutants of hazards 3, 6, 7, 9, 21 and 22: the wrong member leads, or a tail is treated wrongly. */
import type { Edit, Mutant } from './mutant.ts';

const state = 'zaris/control/state.ts';
const controller = 'zaris/control/controller.ts';
const rules = 'zaris/partition/rules.ts';

/** Whoever holds a copy by the map may lead, in a set or not. */
const anybodyLeads: readonly Edit[] = [
  {
    file: controller,
    find: 'for (const set of [runtime.inSync, runtime.eligible]) {',
    replace:
      'for (const set of [runtime.inSync, this.state.placement(runtime.partition).replicas.flatMap((id) => this.state.current(id) ?? [])]) {',
  },
  {
    file: state,
    find: "if (!inSync && !hasMember(runtime.eligible, candidate)) return refused('the candidate is in no set');",
    replace: '',
  },
];

export const promotionMutants: readonly Mutant[] = [
  {
    hazard: 3,
    name: 'a promoted member cuts its tail',
    rule: 'A new primary keeps its whole log: tails are kept on a term change until the new primary sends something else there.',
    edits: [
      { file: rules, find: '  tailOnPromotion() {', replace: '  tailOnPromotion(log, commitSeq) {' },
      {
        file: rules,
        find: "    // Kept whole: an entry above this member's commit index may have been acknowledged by the old primary.",
        replace: '    if (log.last.seq > commitSeq) log.truncateFrom((commitSeq + 1) as Seq);',
      },
    ],
    test: 'a follower that acknowledged leads next and keeps its tail',
    red: 'the acknowledged write, with one follower',
  },
  {
    hazard: 6,
    name: 'with nobody in sync any copy of the map leads',
    rule: 'The leader promotes from the in-sync set, else the ELR; the possession proof asks that the own incarnation is in one of them.',
    edits: anybodyLeads,
    test: 'a replica that missed 1,000 deletes',
    red: 'who leads while the stale one is alone',
  },
  {
    hazard: 7,
    name: 'a member silent for 200 ms is not waited for',
    rule: 'A member leaves the in-sync set only by a committed entry; a timer is never a success.',
    edits: [
      {
        file: rules,
        find: 'for (const match of inSync) if (match.seq < held) held = match.seq;',
        replace: 'for (const match of inSync) if (match.silentMs < 200 && match.seq < held) held = match.seq;',
      },
    ],
    test: 'one-way loss from the primary to a replica',
    red: 'who leads',
    asserted: 'in sync n2#1 holds',
  },
  {
    hazard: 9,
    name: 'whoever was ever dropped stays eligible',
    rule: 'The entry that brings the set back to minInSync or more empties the ELR; only what is dropped below it joins.',
    edits: [
      {
        file: state,
        find: 'if (runtime.inSync.length >= this.minInSync) runtime.eligible = [];\n    else runtime',
        replace: 'runtime',
      },
    ],
    test: 'two members cut one after the other',
    red: 'who leads while the second is away',
    asserted: 'nobody is eligible beside a set that may commit',
  },
  {
    hazard: 9,
    name: 'nobody becomes eligible',
    rule: 'When an entry takes |in-sync| below minInSync, every member it drops joins the ELR.',
    edits: [
      {
        file: state,
        find: '[...runtime.eligible, ...dropped.filter((member) => this.isCurrent(member))]',
        replace: '[...runtime.eligible]',
      },
    ],
    test: 'two members cut one after the other',
    red: 'who leads when the second is back',
  },
  {
    hazard: 21,
    name: 'a full set leaves the eligible set as it was',
    rule: 'The entry that brings the set back to minInSync or more empties the ELR.',
    edits: [
      {
        file: state,
        find: 'if (runtime.inSync.length >= this.minInSync) runtime.eligible = [];',
        replace: 'if (runtime.inSync.length >= this.minInSync) void dropped;',
      },
    ],
    test: 'the eligible set is emptied when the set is full again',
    red: 'who leads',
    asserted: 'nobody is eligible beside a set that may commit',
  },
  {
    hazard: 22,
    name: 'a rejoining primary keeps its tail',
    rule: 'A different entry at a seq cuts everything after it.',
    edits: [
      {
        file: 'zaris/partition/replica.ts',
        find: '      if (own === entry.term) continue;',
        replace: '      if (own !== null) continue;',
      },
    ],
    test: 'an old primary with an uncommitted tail rejoins',
    red: 'copies agree',
    asserted: 'digest differs',
  },
  {
    hazard: 22,
    name: 'repeats are judged against committed records alone',
    rule: 'Conditions and repeats are judged against committed plus pending entries.',
    edits: [
      {
        file: 'zaris/partition/overlay.ts',
        find: 'return this.clients.get(clientId)?.sequences.get(sequence);',
        replace: 'return void clientId, void sequence;',
      },
    ],
    test: 'a tail that the next primary inherits, and the repeat of its sequence',
    red: 'the sum that the repeat was given',
    asserted: 'a sequence took effect twice',
  },
];
