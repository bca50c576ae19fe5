/**
 * The cluster wire (port 7811) as bytes. Appends, their entries and their acknowledgements travel as lists by position (they carry
 * all the data); the rest as maps, checked field by field by a table. Control commands inside stay opaque: the state machine that applies them
 * judges them. A peer that sends anything else loses that connection and nothing more.
 */
import { maxFrameBytes } from '../../lib/frame.ts';
import { decodeEntries, encodeEntries, estimateEntries } from './codec-entry.ts';
import { incarnation, partitionId, seq, term } from './ids.ts';
import { maxValueBytes } from './limits.ts';
import { packBatches, unpackBatch } from './pack.ts';
import type { AppendAckMessage, AppendMessage, PeerMessage, TailAnswerMessage } from './peer-wire.ts';
import {
  CodecError,
  readArray,
  readBoolean,
  readFinite,
  readInt,
  readRecord,
  readText,
  readWord,
} from './wire-check.ts';

const forms = ['map', 'append', 'append-ack', 'tail-answer'] as const;

/** Messages as frames, in order. Throws {@link CodecError} when one alone is over the frame bound. */
export function encodePeerMessages(messages: readonly PeerMessage[]): Uint8Array[] {
  return packBatches(messages, { encode: encodeMessage, estimateBytes, limitBytes: maxFrameBytes });
}

/** The messages of one frame's payload. Throws {@link CodecError}. */
export function decodePeerMessages(payload: Uint8Array): PeerMessage[] {
  return unpackBatch(payload).map(decodeMessage);
}

function estimateBytes(message: PeerMessage): number {
  switch (message.kind) {
    case 'append':
    case 'tail-answer':
      return 128 + estimateEntries(message.entries);
    case 'append-ack':
      return 128;
    case 'snapshot-chunk':
    case 'raft':
    case 'propose':
      return maxValueBytes;
    default:
      return 4096;
  }
}

function encodeMessage(message: PeerMessage): unknown {
  switch (message.kind) {
    case 'append':
      return encodeAppend(message);
    case 'append-ack':
      return [2, message.from, message.to, message.partition, message.term, message.matched, message.seq];
    case 'tail-answer':
      return encodeTail(message);
    default:
      return message;
  }
}

const encodeAppend = (message: AppendMessage): unknown[] => [
  1,
  message.from,
  message.to,
  message.partition,
  message.term,
  message.dataLossNumber,
  message.previousSeq,
  message.previousTerm,
  message.commitSeq,
  encodeEntries(message.entries),
];

const encodeTail = (message: TailAnswerMessage): unknown[] => [
  3,
  message.from,
  message.to,
  message.partition,
  message.term,
  message.afterSeq,
  message.afterTerm,
  message.more,
  encodeEntries(message.entries),
];

const readTerm = (value: unknown) => term(readInt(value, 'term'));
const readSeq = (value: unknown) => seq(readInt(value, 'seq'));

function decodeMessage(raw: unknown): PeerMessage {
  if (!Array.isArray(raw)) return checkMap(raw);
  const form = readWord(raw[0], 'form', forms);
  const common = {
    from: incarnation(readInt(raw[1], 'from')),
    to: incarnation(readInt(raw[2], 'to')),
    partition: partitionId(readInt(raw[3], 'partition')),
    term: readTerm(raw[4]),
  };
  if (form === 'append') {
    readArray(raw, form, 10);
    return {
      kind: 'append',
      ...common,
      dataLossNumber: readInt(raw[5], 'data-loss number'),
      previousSeq: readSeq(raw[6]),
      previousTerm: readTerm(raw[7]),
      commitSeq: readSeq(raw[8]),
      entries: decodeEntries(raw[9]),
    };
  }
  if (form === 'append-ack') {
    readArray(raw, form, 7);
    const ack: AppendAckMessage = {
      kind: 'append-ack',
      ...common,
      matched: readBoolean(raw[5], 'matched'),
      seq: readSeq(raw[6]),
    };
    return ack;
  }
  if (form === 'tail-answer') {
    readArray(raw, form, 9);
    return {
      kind: 'tail-answer',
      ...common,
      afterSeq: readSeq(raw[5]),
      afterTerm: readTerm(raw[6]),
      more: readBoolean(raw[7], 'more'),
      entries: decodeEntries(raw[8]),
    };
  }
  throw new CodecError('a map travels as a map');
}

/** What each field of a message that travels as a map must be. */
type FieldCheck = (value: unknown, what: string) => unknown;
const int: FieldCheck = (value, what) => readInt(value, what);
const number: FieldCheck = readFinite;
const text: FieldCheck = (value, what) => readText(value, what);
const flag: FieldCheck = readBoolean;
const list: FieldCheck = (value, what) => readArray(value, what, null);
const ints: FieldCheck = (value, what) => {
  for (const element of readArray(value, what, null)) readInt(element, what);
};
const numbers: FieldCheck = (value, what) => {
  for (const element of readArray(value, what, null)) readFinite(element, what);
};

type MapKind = Exclude<PeerMessage['kind'], 'append' | 'append-ack' | 'tail-answer'>;
const ends = { from: int, to: int } as const;
const dataHead = { ...ends, partition: int, term: int } as const;
const mapFields: { readonly [K in MapKind]: Readonly<Record<string, FieldCheck>> } = {
  raft: { message: checkRaft },
  register: { diskId: text, nonce: text, clientAddress: text, clusterAddress: text },
  beacon: { from: int, sentAtMs: number, positions: ints },
  'beacon-ack': { to: int, sentAtMs: number },
  look: { nonce: number },
  'look-ack': { nonce: number },
  propose: { from: int, commands: list },
  'terms-query': { from: int, queryId: int, partitions: ints },
  'terms-answer': { to: int, queryId: int, terms: ints },
  beat: { ...ends, sentAtMs: number, partitions: numbers },
  'beat-ack': { ...ends, sentAtMs: number, partitions: ints },
  'possession-query': dataHead,
  'possession-answer': { ...dataHead, lastTerm: int, lastSeq: int, keyCount: int },
  'tail-query': { ...dataHead, afterSeq: int, afterTerm: int },
  'snapshot-chunk': {
    ...dataHead,
    dataLossNumber: int,
    seq: int,
    seqTerm: int,
    snapshotId: number,
    index: int,
    last: flag,
    items: checkSnapshotItems,
    clients: checkSnapshotClients,
  },
  'snapshot-ack': { ...dataHead, snapshotId: number, nextIndex: int },
};
const fieldsByKind = new Map(Object.entries(mapFields).map(([kind, fields]) => [kind, Object.entries(fields)]));

function checkMap(raw: unknown): PeerMessage {
  const message = readRecord(raw, 'peer message');
  const fields = fieldsByKind.get(message['kind'] as string);
  if (fields === undefined) throw new CodecError('peer message: no such kind');
  for (const [field, check] of fields) check(message[field], field);
  return raw as PeerMessage;
}

const voterFields = { nodeId: text, diskId: text };
const voter: FieldCheck = (value, what) => checkFields(readRecord(value, what), voterFields);
const envelope = { sender: voter, receiver: voter, raftTerm: int };
const votes = { ...envelope, lastIndex: int, lastRaftTerm: int };
const granting = { ...envelope, granted: flag, commitIndex: int, commitRaftTerm: int };
const raftFields: Readonly<Record<string, Readonly<Record<string, FieldCheck>>>> = {
  preVote: votes,
  vote: votes,
  preVoteAnswer: granting,
  voteAnswer: granting,
  append: { ...envelope, prevIndex: int, prevRaftTerm: int, entries: checkRaftEntries, commitIndex: int, round: int },
  install: { ...envelope, snapshot: checkRaftSnapshot, round: int },
  accepted: { ...envelope, matchIndex: int, round: int },
  rejected: { ...envelope, prevIndex: int, conflictIndex: int, round: int },
  stale: envelope,
};

function checkFields(record: Readonly<Record<string, unknown>>, fields: Readonly<Record<string, FieldCheck>>): void {
  for (const field in fields) (fields[field] as FieldCheck)(record[field], field);
}

function checkRaft(raw: unknown): void {
  const message = readRecord(raw, 'raft message');
  const kind = readText(message['kind'], 'raft kind');
  if (!Object.hasOwn(raftFields, kind)) throw new CodecError('raft message: no such kind');
  checkFields(message, raftFields[kind] as Readonly<Record<string, FieldCheck>>);
}

function checkRaftEntries(raw: unknown): void {
  for (const element of readArray(raw, 'raft entries', null)) {
    const entry = readRecord(element, 'raft entry');
    readInt(entry['index'], 'index', 1);
    readInt(entry['raftTerm'], 'raft term');
    if (entry['kind'] === 'config') checkConfig(entry['config']);
    else if (entry['kind'] !== 'noop' && entry['kind'] !== 'command') throw new CodecError('raft entry: no such kind');
  }
}

function checkConfig(raw: unknown): void {
  const config = readRecord(raw, 'raft config');
  for (const role of ['voters', 'learners']) {
    for (const element of readArray(config[role], role, null, 1024)) voter(element, role);
  }
}

function checkRaftSnapshot(raw: unknown): void {
  const snapshot = readRecord(raw, 'raft snapshot');
  readInt(snapshot['index'], 'index');
  readInt(snapshot['raftTerm'], 'raft term');
  checkConfig(snapshot['config']);
}

function checkSnapshotItems(raw: unknown): void {
  for (const element of readArray(raw, 'items', null)) {
    const item = readRecord(element, 'item');
    readText(item['key'], 'key', maxValueBytes);
    readText(item['value'], 'value', maxValueBytes);
    checkFields(readRecord(item['version'], 'version'), { term: int, seq: int });
    if (item['ttlMs'] !== undefined) readFinite(item['ttlMs'], 'ttl');
  }
}

function checkSnapshotClients(raw: unknown): void {
  for (const element of readArray(raw, 'clients', null)) {
    const client = readRecord(element, 'client');
    readText(client['clientId'], 'client id');
    readInt(client['lowWatermark'], 'low watermark');
    for (const pair of readArray(client['results'], 'results', null)) {
      const [sequence, result] = readArray(pair, 'result', 2);
      readInt(sequence, 'sequence');
      readText(readRecord(result, 'stored result')['status'], 'status');
    }
  }
}
