/** What callers of the client get back; and how a core's result becomes it. */
import type { CopyReport, ScanItem } from '../model/client-wire.ts';
import type { Version } from '../model/ids.ts';
import type { ClusterView } from '../model/view.ts';
import type { CallResult, CallStatus } from './contract.ts';

export interface OperationResult {
  /** How the call ended; never an exception for a status. */
  readonly status: CallStatus;
  /** `status` is `Ok`. */
  readonly isSuccess: boolean;
  /** get: the value. add: the new sum, as text. */
  readonly value?: string;
  /** The version written, or the one that the answer was judged against. */
  readonly version?: Version;
  /** A mutation of which an attempt may have run, and no answer settled it. */
  readonly inDoubt: boolean;
  readonly attempts: number;
  readonly elapsedMs: number;
  readonly partition?: number;
  readonly epoch?: number;
  readonly servedBy?: string;
  readonly reason?: string;
}

export interface ScanResult extends OperationResult {
  /** In ascending order of keys (UTF-16 units); complete up to `limit` when `isSuccess`. */
  readonly items: readonly ScanItem[];
  /** There may be more behind the last item. */
  readonly more: boolean;
}

export interface PeekResult extends OperationResult {
  readonly copy?: CopyReport;
}

export interface ViewResult extends OperationResult {
  readonly view?: ClusterView;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** The public face of a core's result. */
export function operationResult(result: CallResult): Writable<OperationResult> {
  const { status, answer, inDoubt, attempts, elapsedMs, reason } = result;
  const isSuccess = status === 'Ok';
  if (answer?.status === status && reason === undefined) {
    const { value, version, partition, epoch, member } = answer;
    if (version !== undefined && partition !== undefined && epoch !== undefined && member !== undefined) {
      // The shapes of nearly every result, each made in one piece.
      const servedBy = member.nodeId;
      if (value === undefined)
        return { status, isSuccess, inDoubt, attempts, elapsedMs, version, partition, epoch, servedBy };
      return { status, isSuccess, inDoubt, attempts, elapsedMs, value, version, partition, epoch, servedBy };
    }
  }
  const isFromAnswer = answer !== null && answer.status === status;
  const face: Writable<OperationResult> = { status, isSuccess, inDoubt, attempts, elapsedMs };
  if (isFromAnswer && answer.value !== undefined) face.value = answer.value;
  if (isFromAnswer && answer.version !== undefined) face.version = answer.version;
  if (answer?.partition !== undefined) face.partition = answer.partition;
  if (answer?.epoch !== undefined) face.epoch = answer.epoch;
  if (answer?.member !== undefined) face.servedBy = answer.member.nodeId;
  if (reason !== undefined) face.reason = reason;
  return face;
}
