/**
 * The client wire (port 7861) as bytes: requests and answers, one list of them per frame. Messages travel as lists by position: a
 * third of the time and half the bytes of maps, and nothing in them is named by a stranger. Decoders check every field, so what
 * comes out has the type it claims; anything else is a {@link CodecError}, which closes that connection and harms nobody else.
 */
import { maxFrameBytes } from '../../lib/frame.ts';
import { unreachable } from '../../lib/assert.ts';
import type { AckMode, AdminCommand, Answer, ClientRequest, ClusterSettings, Mutation } from './client-wire.ts';
import { checkCopy, checkItems, checkView } from './codec-view.ts';
import {
  type NodeId,
  type PartitionId,
  type Version,
  epoch,
  incarnation,
  nodeId,
  partitionId,
  seq,
  term,
} from './ids.ts';
import { interned } from './interned.ts';
import { maxKeyBytes, maxPeekKeys, maxRequestFrameBytes, maxScanItems, maxValueBytes } from './limits.ts';
import { packBatches, packFrame, unpackBatch } from './pack.ts';
import { finalStatuses, type Outcome, type Status, transientStatuses } from './status.ts';
import { CodecError, readArray, readFinite, readInt, readRecord, readText, readWord } from './wire-check.ts';
import { segmentCount } from './view.ts';

export { CodecError } from './wire-check.ts';

const ops = ['hello', 'view', 'ping', 'get', 'mutate', 'scan', 'peek', 'admin'] as const;
const mutations = ['put', 'delete', 'add'] as const;
const modes: readonly (AckMode | null)[] = [null, 'in-sync', 'async'];
const statuses: readonly Status[] = [...finalStatuses, ...transientStatuses];
const outcomes: readonly (Outcome | null)[] = [null, 'NotExecuted', 'Unknown'];
const statusIndex = new Map(statuses.map((status, index) => [status, index]));
const opIndex = new Map(ops.map((op, index) => [op, index]));
const answerLength = 13;

/** Requests as frames, in order. Throws {@link CodecError} when one alone is over the bound. */
export function encodeRequests(requests: readonly ClientRequest[]): Uint8Array[] {
  return packBatches(requests, requestRules);
}

/** Answers as frames, in order. One that is too large for any frame becomes `InvalidInput` with a reason. */
export function encodeAnswers(answers: readonly Answer[]): Uint8Array[] {
  try {
    return packBatches(answers, answerRules);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return answers.map((answer) => {
      try {
        return packFrame([encodeAnswer(answer)]);
      } catch (cause) {
        if (!(cause instanceof CodecError)) throw cause;
        return packFrame([
          encodeAnswer({ id: answer.id, status: 'InvalidInput', reason: `${cause.message}: ask for less` }),
        ]);
      }
    });
  }
}

/** The requests of one frame's payload. Throws {@link CodecError}. */
export function decodeRequests(payload: Uint8Array): ClientRequest[] {
  return unpackBatch(payload).map(decodeRequest);
}

/** The answers of one frame's payload. Throws {@link CodecError}. */
export function decodeAnswers(payload: Uint8Array): Answer[] {
  return unpackBatch(payload).map(decodeAnswer);
}

const requestRules = {
  encode: encodeRequest,
  limitBytes: maxRequestFrameBytes,
  estimateBytes(request: ClientRequest): number {
    if (request.op === 'mutate' && request.mutation.kind === 'put') return 3 * request.mutation.value.length + 256;
    return request.op === 'peek' ? 3 * maxKeyBytes * request.keys.length : 256;
  },
};

const answerRules = {
  encode: encodeAnswer,
  limitBytes: maxFrameBytes,
  estimateBytes(answer: Answer): number {
    if (answer.items !== undefined || answer.view !== undefined || answer.copy !== undefined) return maxValueBytes;
    return 3 * (answer.value?.length ?? 0) + 128;
  },
};

function encodeRequest(request: ClientRequest): unknown[] {
  const op = opIndex.get(request.op) as number;
  switch (request.op) {
    case 'hello':
      return [op, request.id, request.clientId, request.token ?? null];
    case 'view':
      return [op, request.id, request.newerThan ?? null, request.waitMs ?? null];
    case 'ping':
      return [op, request.id];
    case 'get':
      return [op, request.id, request.partition, request.key];
    case 'mutate': {
      const { once } = request;
      const mode = request.mode === undefined ? 0 : modes.indexOf(request.mode);
      const head = [
        op,
        request.id,
        request.partition,
        once.clientId,
        once.sequence,
        once.lowWatermark,
        request.attempt,
        mode,
      ];
      encodeMutation(head, request.mutation);
      return head;
    }
    case 'scan':
      return [op, request.id, request.partition, request.prefix, request.after ?? null, request.limit];
    case 'peek':
      return [op, request.id, request.partition, request.keys];
    case 'admin':
      return [op, request.id, request.command];
    default:
      return unreachable(request);
  }
}

function encodeMutation(head: unknown[], mutation: Mutation): void {
  switch (mutation.kind) {
    case 'put': {
      const { key, value, ifVersion, ttlMs } = mutation;
      const ifAbsent = mutation.ifAbsent === true ? 1 : 0;
      head.push(0, key, ifVersion?.term ?? null, ifVersion?.seq ?? null, value, ifAbsent, ttlMs ?? null);
      return;
    }
    case 'delete':
      head.push(1, mutation.key, mutation.ifVersion?.term ?? null, mutation.ifVersion?.seq ?? null);
      return;
    case 'add':
      head.push(2, mutation.key, mutation.delta, mutation.min ?? null, mutation.max ?? null);
      return;
    default:
      unreachable(mutation);
  }
}

const readPartition = (value: unknown): PartitionId => partitionId(readInt(value, 'partition', 0, segmentCount - 1));
const readKey = (value: unknown): string => readText(value, 'key', maxKeyBytes);

function readVersion(majorPart: unknown, minorPart: unknown): Version | undefined {
  if (majorPart === null && minorPart === null) return undefined;
  return { term: term(readInt(majorPart, 'version term')), seq: seq(readInt(minorPart, 'version seq')) };
}

function decodeRequest(raw: unknown): ClientRequest {
  if (!Array.isArray(raw)) throw new CodecError('a request is a list');
  const op = readWord(raw[0], 'op', ops);
  const id = readInt(raw[1], 'id');
  switch (op) {
    case 'hello': {
      readArray(raw, 'hello', 4);
      const clientId = readText(raw[2], 'client id');
      return raw[3] === null ? { op, id, clientId } : { op, id, clientId, token: readText(raw[3], 'token') };
    }
    case 'view':
      readArray(raw, 'view', 4);
      return {
        op,
        id,
        ...(raw[2] === null ? {} : { newerThan: readInt(raw[2], 'newer than') }),
        ...(raw[3] === null ? {} : { waitMs: readFinite(raw[3], 'wait') }),
      };
    case 'ping':
      readArray(raw, 'ping', 2);
      return { op, id };
    case 'get':
      readArray(raw, 'get', 4);
      return { op, id, partition: readPartition(raw[2]), key: readKey(raw[3]) };
    case 'mutate':
      return decodeMutate(raw, id);
    case 'scan': {
      readArray(raw, 'scan', 6);
      const limit = readInt(raw[5], 'limit', 1, maxScanItems);
      const scan = { op, id, partition: readPartition(raw[2]), prefix: readText(raw[3], 'prefix', maxKeyBytes), limit };
      return raw[4] === null ? scan : { ...scan, after: readKey(raw[4]) };
    }
    case 'peek':
      readArray(raw, 'peek', 4);
      return {
        op,
        id,
        partition: readPartition(raw[2]),
        keys: readArray(raw[3], 'keys', null, maxPeekKeys).map(readKey),
      };
    case 'admin':
      readArray(raw, 'admin', 3);
      return { op, id, command: decodeCommand(raw[2]) };
    default:
      return unreachable(op);
  }
}

function decodeMutate(raw: readonly unknown[], id: number): ClientRequest {
  const sequence = readInt(raw[4], 'sequence', 1);
  const once = {
    clientId: interned(readText(raw[3], 'client id')),
    sequence,
    lowWatermark: readInt(raw[5], 'low watermark', 1, sequence),
  };
  const attempt = readInt(raw[6], 'attempt', 1);
  const mode = readWord(raw[7], 'mode', modes);
  const partition = readPartition(raw[2]);
  const mutation = decodeMutation(raw);
  return mode === null
    ? { op: 'mutate', id, partition, once, mutation, attempt }
    : { op: 'mutate', id, partition, once, mutation, attempt, mode };
}

function decodeMutation(raw: readonly unknown[]): Mutation {
  const kind = readWord(raw[8], 'mutation', mutations);
  const key = readKey(raw[9]);
  switch (kind) {
    case 'put': {
      readArray(raw, 'put', 15);
      const ifVersion = readVersion(raw[10], raw[11]);
      const value = readText(raw[12], 'value', maxValueBytes);
      const ifAbsent = readInt(raw[13], 'if absent', 0, 1) === 1;
      if (!ifAbsent && ifVersion === undefined && raw[14] === null) return { kind, key, value };
      if (ifAbsent && ifVersion !== undefined) throw new CodecError('put: two conditions');
      return {
        kind,
        key,
        value,
        ...(ifAbsent ? { ifAbsent } : {}),
        ...(ifVersion === undefined ? {} : { ifVersion }),
        ...(raw[14] === null ? {} : { ttlMs: readInt(raw[14], 'ttl', 1) }),
      };
    }
    case 'delete': {
      readArray(raw, 'delete', 12);
      const ifVersion = readVersion(raw[10], raw[11]);
      return ifVersion === undefined ? { kind, key } : { kind, key, ifVersion };
    }
    case 'add':
      readArray(raw, 'add', 13);
      return {
        kind,
        key,
        delta: readFinite(raw[10], 'delta'),
        ...(raw[11] === null ? {} : { min: readFinite(raw[11], 'min') }),
        ...(raw[12] === null ? {} : { max: readFinite(raw[12], 'max') }),
      };
    default:
      return unreachable(kind);
  }
}

function decodeCommand(raw: unknown): AdminCommand {
  const command = readRecord(raw, 'command');
  const { kind } = command;
  if (kind === 'drain') return { kind, nodeId: nodeId(readText(command['nodeId'], 'node id')) };
  if (kind === 'rebalance') {
    const leaving = readArray(command['leaving'], 'leaving', null, 1024);
    return { kind, leaving: leaving.map((id) => nodeId(readText(id, 'node id'))) };
  }
  if (kind === 'bootstrap') return { kind, settings: decodeSettings(command['settings']) };
  throw new CodecError('command: no such kind');
}

function decodeSettings(raw: unknown): ClusterSettings {
  const settings = readRecord(raw, 'settings');
  return {
    clusterId: readText(settings['clusterId'], 'cluster id'),
    replicationFactor: readInt(settings['replicationFactor'], 'replication factor', 1, 5),
    minInSync: readInt(settings['minInSync'], 'min in-sync', 1, 5),
    partitionCount: readInt(settings['partitionCount'], 'partition count', 1, segmentCount),
    initialNodes: readInt(settings['initialNodes'], 'initial nodes', 1, 1024),
  };
}

function encodeAnswer(answer: Answer): unknown[] {
  const { version, member, view, items, more, copy } = answer;
  const rare = view !== undefined || items !== undefined || more !== undefined || copy !== undefined;
  return [
    answer.id,
    statusIndex.get(answer.status),
    answer.value ?? null,
    version === undefined ? null : version.term,
    version === undefined ? null : version.seq,
    answer.outcome === undefined ? 0 : outcomes.indexOf(answer.outcome),
    answer.partition ?? null,
    answer.epoch ?? null,
    answer.owner ?? null,
    member === undefined ? null : member.nodeId,
    member === undefined ? null : member.incarnation,
    answer.reason ?? null,
    rare ? [view ?? null, items ?? null, more ?? null, copy ?? null] : null,
  ];
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function decodeAnswer(raw: unknown): Answer {
  const list = readArray(raw, 'answer', answerLength);
  const id = readInt(list[0], 'id');
  const status = readWord(list[1], 'status', statuses);
  const isPlain = list[5] === 0 && list[11] === null && list[12] === null;
  if (!isPlain || list[3] === null || list[6] === null || list[7] === null || list[8] === null || list[9] === null) {
    return decodeAnyAnswer(list, { id, status });
  }
  // The shapes of nearly every answer, each made in one piece.
  const version = { term: term(readInt(list[3], 'version term')), seq: seq(readInt(list[4], 'version seq')) };
  const partition = readPartition(list[6]);
  const at = epoch(readInt(list[7], 'epoch'));
  const owner = readNode(list[8]);
  const member = { nodeId: readNode(list[9]), incarnation: incarnation(readInt(list[10], 'incarnation')) };
  if (list[2] === null) return { id, status, version, partition, epoch: at, owner, member };
  const value = readText(list[2], 'value', maxValueBytes);
  return { id, status, value, version, partition, epoch: at, owner, member };
}

function decodeAnyAnswer(list: readonly unknown[], answer: Writable<Answer>): Answer {
  if (list[2] !== null) answer.value = readText(list[2], 'value', maxValueBytes);
  const version = readVersion(list[3], list[4]);
  if (version !== undefined) answer.version = version;
  const outcome = readWord(list[5], 'outcome', outcomes);
  if (outcome !== null) answer.outcome = outcome;
  if (list[6] !== null) answer.partition = readPartition(list[6]);
  if (list[7] !== null) answer.epoch = epoch(readInt(list[7], 'epoch'));
  if (list[8] !== null) answer.owner = nodeId(readText(list[8], 'owner'));
  if (list[9] !== null)
    answer.member = { nodeId: readNode(list[9]), incarnation: incarnation(readInt(list[10], 'incarnation')) };
  if (list[11] !== null) answer.reason = readText(list[11], 'reason', maxKeyBytes * 4);
  if (list[12] !== null) decodeRare(list[12], answer);
  return answer;
}

const readNode = (value: unknown): NodeId => nodeId(readText(value, 'node id'));

function decodeRare(raw: unknown, answer: Writable<Answer>): void {
  const [view, items, more, copy] = readArray(raw, 'answer extras', 4);
  if (view !== null) answer.view = checkView(view);
  if (items !== null) answer.items = checkItems(items);
  if (more !== null) answer.more = more === true;
  if (copy !== null) answer.copy = checkCopy(copy);
}
