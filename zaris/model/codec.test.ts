import fc from 'fast-check';
import { pack, Packr } from 'msgpackr';
import { describe, expect, it } from 'vitest';
import { FrameReader } from '../../lib/frame.ts';
import type { Answer, ClientRequest } from './client-wire.ts';
import { CodecError, decodeAnswers, decodeRequests, encodeAnswers, encodeRequests } from './codec.ts';
import { decodePeerMessages, encodePeerMessages } from './codec-peer.ts';
import type { Entry } from './entry.ts';
import { epoch, incarnation, nodeId, partitionId, seq, term } from './ids.ts';
import { maxKeyBytes, maxValueBytes, utf8Bytes } from './limits.ts';
import { scanMessagePack } from './msgpack-scan.ts';
import type { PeerMessage } from './peer-wire.ts';
import type { ClusterView } from './view.ts';

const payloadsOf = (frames: readonly Uint8Array[]): Uint8Array[] => {
  const reader = new FrameReader();
  return frames.flatMap((frame) => reader.push(frame));
};
const once = { clientId: 'c1', sequence: 9, lowWatermark: 4 };
const version = { term: term(3), seq: seq(7) };
const partition = partitionId(5);
const member = { nodeId: nodeId('n1'), incarnation: incarnation(2) };

const requests: ClientRequest[] = [
  { op: 'hello', id: 1, clientId: 'c1' },
  { op: 'hello', id: 2, clientId: 'c1', token: 'secret' },
  { op: 'view', id: 3 },
  { op: 'view', id: 4, newerThan: 0, waitMs: 1500 },
  { op: 'ping', id: 5 },
  { op: 'get', id: 6, partition, key: 'clé' },
  { op: 'mutate', id: 7, partition, once, attempt: 1, mutation: { kind: 'put', key: '', value: '' } },
  {
    op: 'mutate',
    id: 8,
    partition,
    once,
    attempt: 2,
    mode: 'async',
    mutation: { kind: 'put', key: 'k', value: 'v', ifAbsent: true },
  },
  {
    op: 'mutate',
    id: 9,
    partition,
    once,
    attempt: 2,
    mutation: { kind: 'put', key: 'k', value: 'v', ifVersion: version, ttlMs: 5 },
  },
  { op: 'mutate', id: 10, partition, once, attempt: 3, mode: 'in-sync', mutation: { kind: 'delete', key: 'k' } },
  { op: 'mutate', id: 11, partition, once, attempt: 3, mutation: { kind: 'delete', key: 'k', ifVersion: version } },
  { op: 'mutate', id: 12, partition, once, attempt: 3, mutation: { kind: 'add', key: 'k', delta: -1.5 } },
  {
    op: 'mutate',
    id: 13,
    partition,
    once,
    attempt: 3,
    mutation: { kind: 'add', key: 'k', delta: 2, min: -(2 ** 40), max: 0 },
  },
  { op: 'scan', id: 14, partition, prefix: '', limit: 10 },
  { op: 'scan', id: 15, partition, prefix: 'p', after: 'pa', limit: 1 },
  { op: 'peek', id: 16, partition, keys: ['a', 'b'] },
  { op: 'admin', id: 17, command: { kind: 'drain', nodeId: nodeId('n2') } },
  { op: 'admin', id: 18, command: { kind: 'rebalance', leaving: [nodeId('n3')] } },
  {
    op: 'admin',
    id: 19,
    command: {
      kind: 'bootstrap',
      settings: { clusterId: 'c', replicationFactor: 3, minInSync: 2, partitionCount: 64, initialNodes: 5 },
    },
  },
];

const view: ClusterView = {
  revision: 12,
  clusterId: 'c',
  mapVersion: 1,
  replicationFactor: 3,
  minInSync: 2,
  partitionCount: 1,
  controlLeader: null,
  voters: [{ nodeId: nodeId('n1'), diskId: 'd1' }],
  nodes: [{ nodeId: nodeId('n1'), incarnation: 2, clientAddress: 'h:1', alive: true, voter: true, leaving: false }],
  partitions: [
    {
      partition: partitionId(0),
      preferredPrimary: nodeId('n1'),
      replicas: [nodeId('n1')],
      epoch: epoch(3),
      term: term(2),
      primary: member,
      inSync: [member],
      eligible: [],
      health: 'Degraded',
      serving: true,
      dataLossNumber: 0,
    },
  ],
};

const answers: Answer[] = [
  { id: 1, status: 'Ok' },
  { id: 2, status: 'Ok', value: '', version, partition, epoch: epoch(4), member },
  {
    id: 3,
    status: 'Moved',
    outcome: 'NotExecuted',
    partition,
    epoch: epoch(4),
    owner: nodeId('n9'),
    reason: 'not mine',
  },
  { id: 4, status: 'Unavailable', outcome: 'Unknown' },
  { id: 5, status: 'Ok', view },
  { id: 6, status: 'Ok', items: [{ key: 'k', value: 'v', version }], more: false },
  {
    id: 7,
    status: 'Ok',
    copy: {
      role: 'replica',
      applied: version,
      commitSeq: 7,
      digest: 'd',
      keyCount: 1,
      values: [{ key: 'k' }, { key: 'l', value: '', version }],
    },
  },
];

const entries: Entry[] = [
  { seq: seq(1), term: term(1), effect: { kind: 'term-start' } },
  {
    seq: seq(2),
    term: term(1),
    effect: { kind: 'put', key: 'k', value: 'v', ttlMs: 1.5 },
    once: { ...once, result: { status: 'Ok', value: '3', version } },
  },
  { seq: seq(3), term: term(1), effect: { kind: 'delete', key: 'k' }, once: { ...once, result: { status: 'Ok' } } },
  {
    seq: seq(4),
    term: term(2),
    effect: { kind: 'completion' },
    once: { ...once, result: { status: 'Conflict', version } },
  },
  { seq: seq(5), term: term(2), effect: { kind: 'expire-clients', clientIds: ['a', 'b'] } },
  { seq: seq(6), term: term(2), effect: { kind: 'put', key: 'k', value: 'é'.repeat(9) } },
];
const ends = { from: incarnation(1), to: incarnation(2) };
const data = { ...ends, partition, term: term(4) };
const voter = { nodeId: nodeId('n1'), diskId: 'd1' };
const raftEnvelope = { sender: voter, receiver: voter, raftTerm: 3 };
const raftSnapshot = {
  index: 4,
  raftTerm: 2,
  config: { voters: [voter], learners: [] },
  state: { any: ['thing', null, 1.5] },
};

const peerMessages: PeerMessage[] = [
  {
    kind: 'append',
    ...data,
    dataLossNumber: 1,
    previousSeq: seq(0),
    previousTerm: term(0),
    commitSeq: seq(0),
    entries,
  },
  { kind: 'append-ack', ...data, matched: true, seq: seq(3) },
  { kind: 'tail-answer', ...data, afterSeq: seq(1), afterTerm: term(1), entries, more: true },
  { kind: 'tail-query', ...data, afterSeq: seq(1), afterTerm: term(1) },
  { kind: 'register', diskId: 'd', nonce: 'x', clientAddress: 'h:1', clusterAddress: 'h:2' },
  { kind: 'beacon', from: incarnation(1), sentAtMs: 1.25, positions: [1, 2, 3] },
  { kind: 'beacon-ack', to: incarnation(1), sentAtMs: 1.25 },
  { kind: 'look', nonce: 4 },
  { kind: 'look-ack', nonce: 4 },
  { kind: 'propose', from: incarnation(1), commands: [{ anything: [1, null, 'x', { deep: true }] }] },
  { kind: 'terms-query', from: incarnation(1), queryId: 8, partitions: [partition] },
  { kind: 'terms-answer', to: incarnation(1), queryId: 8, terms: [term(2)] },
  { kind: 'beat', ...ends, sentAtMs: 3, partitions: [1, 2, 3, 4, 4294967295] },
  { kind: 'beat-ack', ...ends, sentAtMs: 3, partitions: [1, 2, 3] },
  { kind: 'possession-query', ...data },
  { kind: 'possession-answer', ...data, lastTerm: term(1), lastSeq: seq(2), keyCount: 3 },
  {
    kind: 'snapshot-chunk',
    ...data,
    dataLossNumber: 0,
    seq: seq(5),
    seqTerm: term(2),
    snapshotId: 7,
    index: 0,
    last: true,
    items: [{ key: 'k', value: 'v', version, ttlMs: 5 }],
    clients: [{ clientId: 'c', lowWatermark: 1, results: [[1, { status: 'Ok' }]] }],
  },
  { kind: 'snapshot-ack', ...data, snapshotId: 7, nextIndex: 1 },
  { kind: 'raft', message: { kind: 'preVote', ...raftEnvelope, lastIndex: 1, lastRaftTerm: 1 } },
  { kind: 'raft', message: { kind: 'voteAnswer', ...raftEnvelope, granted: false, commitIndex: 2, commitRaftTerm: 1 } },
  {
    kind: 'raft',
    message: {
      kind: 'append',
      ...raftEnvelope,
      prevIndex: 0,
      prevRaftTerm: 0,
      commitIndex: 0,
      round: 1,
      entries: [
        { kind: 'noop', index: 1, raftTerm: 1 },
        { kind: 'config', index: 2, raftTerm: 1, config: raftSnapshot.config },
        { kind: 'command', index: 3, raftTerm: 1, command: { kind: 'x' } },
      ],
    },
  },
  { kind: 'raft', message: { kind: 'install', ...raftEnvelope, snapshot: raftSnapshot, round: 2 } },
  { kind: 'raft', message: { kind: 'accepted', ...raftEnvelope, matchIndex: 1, round: 1 } },
  {
    kind: 'raft',
    message: { kind: 'rejected', ...raftEnvelope, prevIndex: 1, conflictIndex: 1, conflictRaftTerm: null, round: 1 },
  },
  { kind: 'raft', message: { kind: 'stale', ...raftEnvelope } },
];

describe('codec', () => {
  it('gives back every request, in one frame', () => {
    const payloads = payloadsOf(encodeRequests(requests));
    expect(payloads).toHaveLength(1);
    expect(payloads.flatMap(decodeRequests)).toEqual(requests);
  });

  it('gives back every answer and peer message', () => {
    expect(payloadsOf(encodeAnswers(answers)).flatMap(decodeAnswers)).toEqual(answers);
    expect(payloadsOf(encodePeerMessages(peerMessages)).flatMap(decodePeerMessages)).toEqual(peerMessages);
  });

  it('splits large batches and keeps their order', () => {
    const many = Array.from({ length: 40 }, (_, index): ClientRequest => {
      const mutation = { kind: 'put', key: `k${index}`, value: 'v'.repeat(100_000) } as const;
      return { op: 'mutate', id: index, partition, once, attempt: 1, mutation };
    });
    const payloads = payloadsOf(encodeRequests(many));
    expect(payloads.length).toBeGreaterThan(1);
    expect(payloads.flatMap(decodeRequests)).toEqual(many);
  });

  it('answers too large for a frame become a refusal, the others stay', () => {
    const item = { key: 'k', value: 'v'.repeat(maxValueBytes), version };
    const huge: Answer = { id: 2, status: 'Ok', items: Array.from({ length: 17 }, () => item), more: false };
    const got = payloadsOf(encodeAnswers([{ id: 1, status: 'Ok' }, huge, { id: 3, status: 'NotFound' }])).flatMap(
      decodeAnswers,
    );
    expect(got.map((answer) => [answer.id, answer.status])).toEqual([
      [1, 'Ok'],
      [2, 'InvalidInput'],
      [3, 'NotFound'],
    ]);
  });

  const get = (key: unknown): Uint8Array => pack([[3, 1, 5, key]]);
  const put = (value: unknown, key: unknown = 'k'): Uint8Array =>
    pack([[4, 1, 5, 'c', 1, 1, 1, 0, 0, key, null, null, value, 0, null]]);
  it('holds keys and values to their bounds in bytes', () => {
    expect(decodeRequests(get('k'.repeat(maxKeyBytes)))).toHaveLength(1);
    expect(() => decodeRequests(get('k'.repeat(maxKeyBytes + 1)))).toThrow(CodecError);
    expect(decodeRequests(get('é'.repeat(maxKeyBytes / 2)))).toHaveLength(1);
    expect(() => decodeRequests(get('é'.repeat(maxKeyBytes / 2 + 1)))).toThrow(CodecError);
    expect(decodeRequests(put('v'.repeat(maxValueBytes)))).toHaveLength(1);
    expect(() => decodeRequests(put('v'.repeat(maxValueBytes + 1)))).toThrow(CodecError);
  });

  it.each([
    ['no list', pack({ op: 'get' })],
    ['no such op', pack([[8, 1]])],
    ['a negative id', pack([[2, -1]])],
    ['a fractional id', pack([[2, 1.5]])],
    ['too few fields', pack([[3, 1, 5]])],
    ['too many fields', pack([[3, 1, 5, 'k', 1]])],
    ['a number for a key', get(7)],
    ['an object for a key', get({ length: 1 })],
    ['a partition out of range', pack([[3, 1, 16_384, 'k']])],
    ['a watermark over the sequence', pack([[4, 1, 5, 'c', 1, 2, 1, 0, 1, 'k', null, null]])],
    ['sequence 0', pack([[4, 1, 5, 'c', 0, 1, 1, 0, 1, 'k', null, null]])],
    ['half a version', pack([[4, 1, 5, 'c', 1, 1, 1, 0, 1, 'k', 3, null]])],
    ['a counter step that is no number', pack([[4, 1, 5, 'c', 1, 1, 1, 0, 2, 'k', Number.NaN, null, null]])],
    ['two conditions', pack([[4, 1, 5, 'c', 1, 1, 1, 0, 0, 'k', 1, 1, 'v', 1, null]])],
    ['bytes behind the value', Uint8Array.from([...pack([[2, 1]]), 0])],
    ['nothing', new Uint8Array(0)],
    ['ill-formed text', Uint8Array.from([0x91, 0x94, 3, 1, 5, 0xa3, 0xed, 0xa0, 0x80])],
  ])('refuses %s', (_, payload) => {
    if (_ === 'ill-formed text') {
      // A decoder may also have mended it; what must never come out is a lone surrogate.
      let key = '';
      try {
        const [request] = decodeRequests(payload);
        key = (request as { key: string }).key;
      } catch (error) {
        expect(error).toBeInstanceOf(CodecError);
      }
      expect(key.isWellFormed()).toBe(true);
    } else expect(() => decodeRequests(payload)).toThrow(CodecError);
  });

  it('allocates nothing for lengths that are only claimed, and takes no extension', () => {
    expect(scanMessagePack(Uint8Array.from([0xdd, 0x01, 0xff, 0xff, 0xff]))).toMatch('truncated');
    expect(scanMessagePack(Uint8Array.from([0xdf, 0x01, 0xff, 0xff, 0xff]))).toMatch('truncated');
    expect(scanMessagePack(Uint8Array.from([0xdb, 0xff, 0xff, 0xff, 0xff, 1]))).toMatch('truncated');
    expect(scanMessagePack(new Uint8Array(10_000).fill(0x91))).toMatch('deep');
    expect(scanMessagePack(new Packr({ useRecords: true }).pack([{ a: 1 }]))).not.toBe(null);
    expect(scanMessagePack(new Packr({ moreTypes: true }).pack(new Set([1])))).not.toBe(null);
    expect(scanMessagePack(pack(new Date(0)))).not.toBe(null);
    expect(
      scanMessagePack(
        new Packr({ useRecords: false }).pack({ a: undefined, b: [1, 'x', null, true, -5, 2 ** 40, 1.5] }),
      ),
    ).toBe(null);
  });

  it('never throws anything but CodecError, whatever the bytes', () => {
    const sound = [
      ...payloadsOf(encodeRequests(requests)),
      ...payloadsOf(encodePeerMessages(peerMessages)),
      ...payloadsOf(encodeAnswers(answers)),
    ];
    const check = (payload: Uint8Array): void => {
      for (const decode of [decodeRequests, decodeAnswers, decodePeerMessages]) {
        try {
          decode(payload);
        } catch (error) {
          if (!(error instanceof CodecError)) throw error;
        }
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), check), { seed: 7, numRuns: 2000 });
    const flips = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom(...sound), flips, fc.nat(), (payload, changes, cut) => {
        const copy = payload.slice(0, cut % 3 === 0 ? cut % (payload.byteLength + 1) : payload.byteLength);
        for (const [at, byte] of changes) if (copy.byteLength > 0) copy[at % copy.byteLength] = byte;
        check(copy);
      }),
      { seed: 8, numRuns: 3000 },
    );
  });

  it('counts UTF-8 bytes as an encoder does', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(utf8Bytes(text)).toBe(new TextEncoder().encode(text).byteLength);
      }),
      { seed: 9 },
    );
  });
});
