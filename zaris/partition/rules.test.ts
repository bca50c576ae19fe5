import { describe, expect, it } from 'vitest';
import { type Member, type Version, incarnation, nodeId, seq, term } from '../model/ids.ts';
import { type CommitInput, type Match, type PossessionInput, soundRules } from './rules.ts';

const member = (name: string, start = 1): Member => ({ nodeId: nodeId(name), incarnation: incarnation(start) });
const [self, other, third] = [member('n1'), member('n2'), member('n3')];
const at = (inTerm: number, atSeq: number): Version => ({ term: term(inTerm), seq: seq(atSeq) });

describe('possession proof', () => {
  const base: PossessionInput = {
    self,
    inSync: [self, other],
    eligible: [],
    own: at(3, 10),
    ownKeyCount: 5,
    ownLogSound: true,
    answers: [],
  };
  const table: readonly (readonly [string, Partial<PossessionInput>, string])[] = [
    ['in the in-sync set, nobody answers', {}, 'possessed'],
    [
      'in the in-sync set, an equal answer',
      { answers: [{ member: other, last: at(3, 10), keyCount: 5 }] },
      'possessed',
    ],
    ['eligible, nobody answers', { inSync: [other], eligible: [self] }, 'possessed'],
    ['in no set', { inSync: [other], eligible: [third] }, 'refused'],
    ['in the set, but as another incarnation', { inSync: [member('n1', 2), other] }, 'refused'],
    ['a gap in the log', { ownLogSound: false }, 'refused'],
    ['a longer log of the same term', { answers: [{ member: other, last: at(3, 11), keyCount: 5 }] }, 'synchronise n2'],
    ['a shorter log of a later term', { answers: [{ member: other, last: at(4, 2), keyCount: 5 }] }, 'synchronise n2'],
    ['a longer log of an older term', { answers: [{ member: other, last: at(2, 99), keyCount: 5 }] }, 'possessed'],
    ['more keys, but a shorter log', { answers: [{ member: other, last: at(3, 9), keyCount: 500 }] }, 'possessed'],
    ['a longer log of somebody in no set', { answers: [{ member: third, last: at(9, 99), keyCount: 5 }] }, 'possessed'],
    [
      'a longer log of an eligible member',
      { eligible: [third], answers: [{ member: third, last: at(3, 12), keyCount: 1 }] },
      'synchronise n3',
    ],
    [
      'two longer logs: the longest is the source',
      {
        inSync: [self, other, third],
        answers: [
          { member: other, last: at(3, 12), keyCount: 1 },
          { member: third, last: at(3, 14), keyCount: 1 },
        ],
      },
      'synchronise n3',
    ],
  ];
  it.each(table)('%s', (_name, change, expected) => {
    const proof = soundRules.provePossession({ ...base, ...change });
    expect(proof.kind === 'synchronise' ? `synchronise ${proof.source.nodeId}` : proof.kind).toBe(expected);
  });
});

describe('commit index', () => {
  const match = (who: Member, atSeq: number): Match => ({ member: who, seq: seq(atSeq), silentMs: 0 });
  const base: CommitInput = {
    commitSeq: seq(5),
    lastSeq: seq(10),
    self,
    inSync: [match(self, 10), match(other, 8), match(third, 7)],
    joiners: [],
    minInSync: 2,
  };
  it('is what every in-sync member holds', () => expect(soundRules.commitIndex(base)).toBe(7));
  it('waits for a proposed joiner too', () =>
    expect(soundRules.commitIndex({ ...base, joiners: [match(member('n4'), 6)] })).toBe(6));
  it('never goes back', () => expect(soundRules.commitIndex({ ...base, joiners: [match(member('n4'), 1)] })).toBe(5));
  it('stands still below minInSync', () =>
    expect(soundRules.commitIndex({ ...base, inSync: [match(self, 10)] })).toBe(5));
  it('silence changes nothing', () => {
    const silent: Match = { member: third, seq: seq(5), silentMs: 1e9 };
    expect(soundRules.commitIndex({ ...base, inSync: [match(self, 10), match(other, 9), silent] })).toBe(5);
  });
});

describe('lease', () => {
  const grant = (who: Member, sentAtMs: number) => ({ member: who, sentAtMs });
  it('needs every promotable member', () => {
    expect(soundRules.leaseHeld({ nowMs: 399, leaseMs: 300, grants: [grant(other, 100), grant(third, 350)] })).toBe(
      true,
    );
    expect(soundRules.leaseHeld({ nowMs: 400, leaseMs: 300, grants: [grant(other, 100), grant(third, 350)] })).toBe(
      false,
    );
    expect(soundRules.leaseHeld({ nowMs: 0, leaseMs: 300, grants: [grant(other, Number.NEGATIVE_INFINITY)] })).toBe(
      false,
    );
  });
  it('holds alone when nobody else could be promoted', () => {
    expect(soundRules.leaseHeld({ nowMs: 1e9, leaseMs: 300, grants: [] })).toBe(true);
  });
});

describe('joining', () => {
  it('needs a log up to the commit index', () => {
    expect(soundRules.mayJoin(seq(9), seq(10))).toBe(false);
    expect(soundRules.mayJoin(seq(10), seq(10))).toBe(true);
  });
});
