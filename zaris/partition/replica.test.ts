import { describe, expect, it } from 'vitest';
import type { PartitionRuntime } from '../control/state.ts';
import type { Entry } from '../model/entry.ts';
import { type Member, epoch, incarnation, nodeId, partitionId, seq, term } from '../model/ids.ts';
import type { AppendMessage, SnapshotChunkMessage } from '../model/peer-wire.ts';
import type { Outgoing, ReplicaHost } from './host.ts';
import { Primary } from './primary.ts';
import { Replica } from './replica.ts';
import { Replicator } from './replicator.ts';
import { soundRules } from './rules.ts';
import { defaultTimings } from './timings.ts';

const member = (name: string): Member => ({ nodeId: nodeId(name), incarnation: incarnation(1) });
const primary = member('n1');
const self = member('n2');

interface TestHost extends ReplicaHost {
  readonly sent: { to: Member; message: Outgoing }[];
}

function hostWith(inSync: readonly Member[], who = self): TestHost {
  const runtime: PartitionRuntime = {
    partition: partitionId(0),
    epoch: epoch(5),
    term: term(5),
    primary,
    released: false,
    serving: true,
    inSync,
    eligible: [],
    health: 'Degraded',
    dataLossNumber: 0,
  };
  const sent: TestHost['sent'] = [];
  return {
    sent,
    self: who,
    rules: soundRules,
    timings: { ...defaultTimings, logKeepEntries: 2 },
    minInSync: 2,
    draining: false,
    send: (to, message) => void sent.push({ to, message }),
    reply() {},
    propose() {},
    notice() {},
    invariant(condition, why) {
      if (!condition) throw new Error(why);
    },
    runtime: () => runtime,
    placement: () => ({ preferredPrimary: primary.nodeId, replicas: [primary.nodeId, self.nodeId] }),
    current: (id) => member(id),
    isCurrent: () => true,
    isAlive: () => true,
    mayLead: () => true,
    sessionHeld: () => true,
    handoffSlot: () => true,
  };
}

const entry = (at: number, inTerm: number): Entry => ({
  seq: seq(at),
  term: term(inTerm),
  effect: { kind: 'put', key: `k${at}`, value: 'v' },
});

const append = (fields: Partial<AppendMessage>): AppendMessage => ({
  kind: 'append',
  from: primary.incarnation,
  to: self.incarnation,
  partition: partitionId(0),
  term: term(1),
  dataLossNumber: 0,
  previousSeq: seq(0),
  previousTerm: term(0),
  entries: [],
  commitSeq: seq(0),
  ...fields,
});

const snapshot = (at: number): SnapshotChunkMessage => ({
  kind: 'snapshot-chunk',
  from: primary.incarnation,
  to: self.incarnation,
  partition: partitionId(0),
  term: term(5),
  dataLossNumber: 0,
  seq: seq(at),
  seqTerm: term(1),
  snapshotId: 1,
  index: 0,
  last: true,
  items: [],
  clients: [],
});

const entries = (from: number, to: number, inTerm: number): Entry[] =>
  Array.from({ length: to - from + 1 }, (_, index) => entry(from + index, inTerm));

describe('a replica and snapshots', () => {
  it('keeps a tail that may be acknowledged: a member of the in-sync set takes no snapshot below its log', () => {
    const replica = new Replica(partitionId(0), hostWith([primary, self]));
    replica.onAppend(primary, append({ entries: entries(1, 8, 1), commitSeq: seq(2) }), 0);
    replica.onSnapshotChunk(primary, snapshot(5), 0);
    expect(replica.log.last.seq).toBe(8);
  });

  it('takes the same snapshot as a learner, which nobody counts', () => {
    const replica = new Replica(partitionId(0), hostWith([primary]));
    replica.onAppend(primary, append({ entries: entries(1, 8, 1), commitSeq: seq(2) }), 0);
    replica.onSnapshotChunk(primary, snapshot(5), 0);
    expect(replica.log.last.seq).toBe(5);
  });

  it('ignores a late snapshot of what it has matched in this term', () => {
    const replica = new Replica(partitionId(0), hostWith([primary]));
    replica.onAppend(primary, append({ term: term(5), entries: entries(1, 8, 1), commitSeq: seq(2) }), 0);
    replica.onSnapshotChunk(primary, snapshot(5), 0);
    expect(replica.log.last.seq).toBe(8);
  });

  it('is offered the oldest entry of a trimmed log before a snapshot', () => {
    const host = hostWith([primary, self], primary);
    const leader = new Replica(partitionId(0), host);
    leader.onAppend(self, append({ entries: entries(1, 20, 1), commitSeq: seq(20) }), 0);
    expect(leader.log.baseVersion.seq).toBe(18);
    leader.adoptTerm(term(5));
    const replicator = new Replicator(leader, term(5));
    replicator.setFollowers([self], 0);
    const ack = {
      kind: 'append-ack',
      from: self.incarnation,
      to: primary.incarnation,
      partition: partitionId(0),
      term: term(5),
    } as const;
    host.sent.length = 0;
    replicator.onAppendAck(self, { ...ack, matched: false, seq: seq(3) }, 1);
    expect(host.sent.map(({ message }) => message.kind)).toEqual(['append']);
    expect(host.sent[0]?.message).toMatchObject({ previousSeq: 18, previousTerm: 1 });
    replicator.onAppendAck(self, { ...ack, matched: false, seq: seq(3) }, 2);
    expect(host.sent.map(({ message }) => message.kind)).toEqual(['append', 'snapshot-chunk']);
  });
});

describe('a copy by snapshot', () => {
  it('knows what its clients have settled: nothing of it runs again when this copy leads', () => {
    const { store } = new Replica(partitionId(0), hostWith([primary]));
    const result = { status: 'Ok' } as const;
    store.apply({ ...entry(1, 1), once: { clientId: 'c', sequence: 1, lowWatermark: 1, result } }, 0);
    store.apply({ ...entry(2, 1), once: { clientId: 'c', sequence: 3, lowWatermark: 3, result } }, 0);
    const learner = new Replica(partitionId(0), hostWith([primary]));
    learner.onSnapshotChunk(primary, { ...snapshot(2), ...store.snapshot(0) }, 0);
    const remembered = [1, 2, 3, 4].map((sequence) => learner.store.remembered('c', sequence).kind);
    expect(remembered).toEqual(['settled', 'settled', 'done', 'unknown']);
  });

  it('is all of one primary: of the half that another had sent nothing stays', () => {
    const learner = new Replica(partitionId(0), hostWith([primary]));
    const chunk = (key: string, index: number): SnapshotChunkMessage => {
      const items = [{ key, value: 'v', version: { term: term(1), seq: seq(3) } }];
      return { ...snapshot(5), index, last: index === 1, items };
    };
    learner.onSnapshotChunk(primary, chunk('of the first', 0), 0);
    // Both primaries number their snapshots from 1. The first chunk of the second comes again until it is taken.
    const next = { term: term(6), seqTerm: term(2) };
    learner.onSnapshotChunk(member('n3'), { ...chunk('b', 1), ...next }, 0);
    learner.onSnapshotChunk(member('n3'), { ...chunk('a', 0), ...next }, 0);
    learner.onSnapshotChunk(member('n3'), { ...chunk('b', 1), ...next }, 0);
    expect(learner.store.keys('')).toEqual(['a', 'b']);
    expect(learner.store.applied).toEqual({ term: 2, seq: 5 });
  });
});

describe('the log of a copy', () => {
  it('that is too long for its bound keeps what is not committed', () => {
    const host = hostWith([primary, self]);
    const replica = new Replica(partitionId(0), { ...host, timings: { ...host.timings, logBoundEntries: 10 } });
    replica.onAppend(primary, append({ entries: entries(1, 20, 1), commitSeq: seq(5) }), 0);
    expect(replica.log.baseVersion.seq, 'the end of what is trimmed').toBe(5);
    replica.onAppend(primary, append({ previousSeq: seq(20), previousTerm: term(1), commitSeq: seq(20) }), 0);
    expect(replica.store.keys('')).toHaveLength(20);
  });

  it('begins anew with a partition that is re-homed empty: what is committed then is applied', () => {
    const replica = new Replica(partitionId(0), hostWith([primary, self]));
    replica.onAppend(primary, append({ entries: entries(1, 8, 1), commitSeq: seq(8) }), 0);
    const reborn = { term: term(6), dataLossNumber: 1, entries: entries(1, 3, 6), commitSeq: seq(3) };
    replica.onAppend(primary, append(reborn), 0);
    expect(replica.store.keys('')).toEqual(['k1', 'k2', 'k3']);
    expect(replica.store.get('k1')?.version).toEqual({ term: 6, seq: 1 });
  });
});

describe('what a replica asserts', () => {
  const other = member('n3');

  it('a commit index that goes back, or passes the end of the log', () => {
    const replica = new Replica(partitionId(0), hostWith([primary, self]));
    replica.onAppend(primary, append({ entries: entries(1, 8, 1), commitSeq: seq(5) }), 0);
    expect(() => replica.commitTo(seq(4), 0)).toThrow('the commit index goes back');
    expect(() => replica.commitTo(seq(9), 0)).toThrow('is not in the log');
  });

  it('a committed entry that would be cut', () => {
    const replica = new Replica(partitionId(0), hostWith([primary, self]));
    replica.onAppend(primary, append({ entries: entries(1, 3, 1), commitSeq: seq(3) }), 0);
    const conflicting = append({ term: term(2), previousSeq: seq(2), previousTerm: term(1), entries: [entry(3, 2)] });
    expect(() => replica.onAppend(other, conflicting, 0)).toThrow('a committed entry would be cut at 3');
  });

  it('two primaries in one term, whatever they say', () => {
    const replica = new Replica(partitionId(0), hostWith([primary, self]));
    replica.onAppend(primary, append({ term: term(5) }), 0);
    const beat = { term: term(5), commitSeq: seq(0), digestSeq: seq(0), digest: 0 };
    expect(() => replica.onAppend(other, append({ term: term(5) }), 0)).toThrow(
      'two primaries in term 5: n1#1 and n3#1',
    );
    expect(() => replica.onBeat(other, beat, 0)).toThrow('two primaries in term 5');
    expect(() => replica.onSnapshotChunk(other, snapshot(5), 0)).toThrow('two primaries in term 5');
    expect(replica.onBeat(other, { ...beat, term: term(6) }, 0)).toBe(0);
    expect(() => replica.onBeat(primary, beat, 0)).not.toThrow();
  });

  it('a digest that differs at the same seq', () => {
    const replica = new Replica(partitionId(0), hostWith([primary, self]));
    replica.onAppend(primary, append({ term: term(5), entries: entries(1, 3, 5), commitSeq: seq(3) }), 0);
    const beat = { term: term(5), commitSeq: seq(3), digestSeq: seq(3), digest: replica.store.digest };
    expect(() => replica.onBeat(primary, beat, 0)).not.toThrow();
    expect(() => replica.onBeat(primary, { ...beat, digest: beat.digest + 1 }, 0)).toThrow('digest differs');
  });

  it('a sequence that takes effect twice', () => {
    const replica = new Replica(partitionId(0), hostWith([primary, self]));
    const once = { clientId: 'c', sequence: 1, lowWatermark: 1, result: { status: 'Ok' } } as const;
    const twice = entries(1, 2, 1).map((each) => ({ ...each, once }));
    expect(() => replica.onAppend(primary, append({ entries: twice, commitSeq: seq(2) }), 0)).toThrow(
      'a sequence took effect twice at 2',
    );
  });

  it('a version of a key that goes back, an entry applied out of order', () => {
    const { store } = new Replica(partitionId(0), hostWith([primary, self]));
    store.apply({ ...entry(1, 5), effect: { kind: 'put', key: 'k', value: 'v' } }, 0);
    expect(() => store.apply({ ...entry(2, 4), effect: { kind: 'put', key: 'k', value: 'w' } }, 0)).toThrow(
      'version of a key goes back',
    );
    expect(() => store.apply(entry(7, 5), 0)).toThrow('applied out of order');
  });
});

describe('a primary of the past, on a copy that follows a later one already', () => {
  const follow = (replica: Replica): void =>
    replica.onAppend(member('n3'), append({ term: term(17), entries: [entry(1, 17)] }), 0);

  it('assigned when its time is over: it logs nothing, and wants no ticks', () => {
    // Alone in the set, it would be ready to serve at once.
    const replica = new Replica(partitionId(0), hostWith([primary], primary));
    follow(replica);
    const late = new Primary(replica, term(5), 10_000);
    late.onRuntime(10_001);
    late.tick(10_002);
    expect(late.deposed).toBe(true);
    expect(late.wakeMs).toBe(Infinity);
    expect(replica.log.last).toEqual({ term: 17, seq: 1 });
    expect(replica.term).toBe(17);
  });

  it('deposed before it could prove possession: answers that come after that change nothing', () => {
    const host = hostWith([primary, self], primary);
    const replica = new Replica(partitionId(0), host);
    const old = new Primary(replica, term(5), 10_000);
    expect(host.sent.map(({ message }) => message.kind)).toEqual(['possession-query']);
    old.depose('a later term was seen');
    follow(replica);
    const answer = {
      kind: 'possession-answer',
      from: self.incarnation,
      to: primary.incarnation,
      partition: partitionId(0),
      term: term(5),
      lastTerm: term(0),
      lastSeq: seq(0),
      keyCount: 0,
    } as const;
    old.onPossessionAnswer(self, answer, 10_001);
    old.onRuntime(10_002);
    expect(replica.log.last).toEqual({ term: 17, seq: 1 });
    expect(old.wakeMs).toBe(Infinity);
  });
});
