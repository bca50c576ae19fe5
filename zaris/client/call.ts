/**
 * One logical call and where it stands. Plain state; {@link ClientCore} moves it. A call is in exactly one state, and its sequence
 * (mutations) is open from its first send until it is settled.
 */
import { unreachable } from '../../lib/assert.ts';
import type { Answer, ClientRequest, Once } from '../model/client-wire.ts';
import type { Member, PartitionId } from '../model/ids.ts';
import type { CallOperation, CallResult, CallTarget } from './contract.ts';
import type { Link } from './link.ts';
import type { AttemptEnd } from './retry.ts';
import type { Timed } from './timers.ts';

/** `waiting`: between attempts (or for a map); `queued`: an attempt in a connection's line; `inFlight`: sent. */
export type CallState = 'new' | 'waiting' | 'queued' | 'inFlight' | 'settled';

export interface Call extends Timed {
  readonly kind: 'call';
  readonly callId: number;
  readonly operation: CallOperation;
  readonly startedAtMs: number;
  readonly deadlineMs: number;
  readonly maxAttempts: number;
  state: CallState;
  /** Place in the client's list of calls. */
  listIndex: number;
  partition: PartitionId | null;
  link: Link | null;
  requestId: number;
  attempts: number;
  /** Times that this sequence was really sent. */
  sends: number;
  sequence: number;
  firstSentAtMs: number;
  sentAtMs: number;
  /** Attempts that may have run. */
  doubts: number;
  lastEnd: AttemptEnd | null;
  inARow: number;
  lastAnswer: Answer | null;
  reason: string | undefined;
  /** Whom and under which epoch the current or last attempt asked. */
  sentTo: Member | null;
  sentEpoch: number;
  endedAtMs: number;
  notBeforeMs: number;
  /** Waits for the map, until `riderUntilMs` at most, to show an epoch of at least `needEpoch` with a serving owner. */
  rides: boolean;
  riderUntilMs: number;
  needEpoch: number;
  /** It has already waited once for any owner at all before this attempt. */
  hasWaitedForOwner: boolean;
  /** It holds a token of the retry budget for its next attempt. */
  hasToken: boolean;
}

export interface CallBounds {
  readonly deadlineMs: number;
  readonly maxAttempts: number;
}

export function newCall(callId: number, operation: CallOperation, nowMs: number, bounds: CallBounds): Call {
  return {
    kind: 'call',
    callId,
    operation,
    startedAtMs: nowMs,
    deadlineMs: bounds.deadlineMs,
    maxAttempts: bounds.maxAttempts,
    timerAtMs: Infinity,
    heapIndex: -1,
    state: 'new',
    listIndex: -1,
    partition: null,
    link: null,
    requestId: 0,
    attempts: 0,
    sends: 0,
    sequence: 0,
    firstSentAtMs: 0,
    sentAtMs: 0,
    doubts: 0,
    lastEnd: null,
    inARow: 0,
    lastAnswer: null,
    reason: undefined,
    sentTo: null,
    sentEpoch: -1,
    endedAtMs: nowMs,
    notBeforeMs: nowMs,
    rides: false,
    riderUntilMs: nowMs,
    needEpoch: 0,
    hasWaitedForOwner: false,
    hasToken: false,
  };
}

/** The node that an operation names, or null when its key or partition decides. */
export function targetOf(operation: CallOperation): CallTarget | null {
  return operation.kind === 'peek' || operation.kind === 'admin' || operation.kind === 'view' ? operation.target : null;
}

/** The request of one attempt. `once` is used by mutations only. */
export function requestOf(call: Call, partition: PartitionId, once: Once | null): ClientRequest {
  const { operation, requestId: id } = call;
  switch (operation.kind) {
    case 'get':
      return { op: 'get', id, partition, key: operation.key };
    case 'mutate': {
      const { mutation, mode } = operation;
      const base = { op: 'mutate', id, partition, once: once as Once, mutation, attempt: call.sends } as const;
      return mode === undefined ? base : { ...base, mode };
    }
    case 'scan': {
      const base = { op: 'scan', id, partition, prefix: operation.prefix, limit: operation.limit } as const;
      return operation.after === undefined ? base : { ...base, after: operation.after };
    }
    case 'peek':
      return { op: 'peek', id, partition: operation.partition, keys: operation.keys };
    case 'admin':
      return { op: 'admin', id, command: operation.command };
    case 'view':
      return { op: 'view', id };
    default:
      return unreachable(operation);
  }
}

type Ending = Pick<CallResult, 'status' | 'inDoubt' | 'elapsedMs'>;

/** What the world is told of a settled call. */
export function resultOf(call: Call, ending: Ending, reason: string | undefined): CallResult {
  const { status, inDoubt, elapsedMs } = ending;
  const { lastAnswer: answer, attempts } = call;
  if (reason === undefined) return { status, answer, inDoubt, attempts, elapsedMs };
  return { status, answer, inDoubt, attempts, elapsedMs, reason };
}

/** Whether a mutation that ends so may have run without anybody having said so. */
export function isInDoubt(call: Call, status: CallResult['status']): boolean {
  const isAnswered = status === 'Ok' || status === 'NotFound' || status === 'Conflict' || status === 'InvalidInput';
  return call.operation.kind === 'mutate' && !isAnswered && call.doubts > 0;
}
