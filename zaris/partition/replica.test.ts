import { describe, expect, it } from 'vitest';
import type { PartitionRuntime } from '../control/state.ts';
import type { Entry } from '../model/entry.ts';
import { type Member, epoch, incarnation, nodeId, partitionId, seq, term } from '../model/ids.ts';
import type { AppendMessage, SnapshotChunkMessage } from '../model/peer-wire.ts';
import type { Outgoing, ReplicaHost } from './host.ts';
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
