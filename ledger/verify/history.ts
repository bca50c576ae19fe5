/**
 * One key's history as columns: its operations in the order of their ids, then its read-backs and its replicas' answers.
 *
 * Columns, not objects, so that one history after another fits the same memory (millions of rows are judged in a flat heap).
 * Invariant: rows [0, operationCount) have strictly increasing `operationId`; NaN means "not there"; an operation of unknown
 * outcome has `returnNs` = Infinity. If a row's `outcome` were wrong here, a good store would be called bad or the reverse.
 */
import { assert } from '../../lib/assert.ts';
import { operationCodes, outcomeCodes } from '../rows.ts';

export const kindCode = { read: 0, write: 1, create: 2, cas: 3, delete: 4, add: 5 } as const;
export const outcomeCode = { ok: 0, fail: 1, info: 2 } as const;
/** Where a row comes from. A replica's row is a read at one instant; `info` when it did not answer or had not caught up. */
export const sourceCode = { operation: 0, final: 1, retire: 2, replica: 3 } as const;
export const whyCondition = 0;
/** `why` of a replica's row. */
export const replicaWhy = { answered: 0, missing: 1, behind: 2 } as const;
/** Values of `observed` that name no operation. NaN: absent (or, for a counter, the value is in `number`). */
export const observedForeign = -1;
export const observedCorrupt = -2;

/** A row in words; every field but the first four may be left out. For tests and small histories. */
export interface HistoryRow {
  readonly f: (typeof operationCodes)[number];
  readonly outcome: (typeof outcomeCodes)[number];
  readonly invokeNs: number;
  /** Ignored for `info`. */
  readonly returnNs: number;
  readonly operationId?: number;
  readonly source?: keyof typeof sourceCode;
  readonly why?: number;
  readonly version?: readonly [number, number] | null;
  readonly expected?: readonly [number, number];
  /** Operation id whose value was read; null absent; observedForeign or observedCorrupt. */
  readonly observed?: number | null;
  readonly number?: number;
  /** ttl in ms of a write, delta of an add. */
  readonly argument?: number;
  readonly partition?: number;
  readonly epoch?: number;
  readonly node?: number;
  /** Replica rows: answered, but before it had applied what it had to. */
  readonly behind?: boolean;
}

const initialCapacity = 64;

export class KeyHistory {
  keyId = 0;
  name = '';
  canary = false;
  /** Read back, recorded and deleted during the run. */
  retired = false;
  size = 0;
  /** Rows that are operations; the others follow. */
  operationCount = 0;
  operationId = new Float64Array(initialCapacity);
  f = new Uint8Array(initialCapacity);
  outcome = new Uint8Array(initialCapacity);
  why = new Int8Array(initialCapacity);
  source = new Uint8Array(initialCapacity);
  invokeNs = new Float64Array(initialCapacity);
  returnNs = new Float64Array(initialCapacity);
  major = new Float64Array(initialCapacity);
  minor = new Float64Array(initialCapacity);
  expectedMajor = new Float64Array(initialCapacity);
  expectedMinor = new Float64Array(initialCapacity);
  observed = new Float64Array(initialCapacity);
  number = new Float64Array(initialCapacity);
  argument = new Float64Array(initialCapacity);
  partition = new Int32Array(initialCapacity);
  epoch = new Float64Array(initialCapacity);
  node = new Int32Array(initialCapacity);

  /** Starts over for another key. */
  reset(keyId: number, name: string, canary = false): void {
    this.keyId = keyId;
    this.name = name;
    this.canary = canary;
    this.retired = false;
    this.size = 0;
    this.operationCount = 0;
  }

  /** Makes room for one more row and returns its index; every column of it must then be set. */
  grow(): number {
    const index = this.size++;
    if (index < this.operationId.length) return index;
    const larger = this.operationId.length * 2;
    this.operationId = copyFloats(this.operationId, larger);
    this.f = copyBytes(this.f, larger);
    this.outcome = copyBytes(this.outcome, larger);
    const why = new Int8Array(larger);
    why.set(this.why);
    this.why = why;
    this.source = copyBytes(this.source, larger);
    this.invokeNs = copyFloats(this.invokeNs, larger);
    this.returnNs = copyFloats(this.returnNs, larger);
    this.major = copyFloats(this.major, larger);
    this.minor = copyFloats(this.minor, larger);
    this.expectedMajor = copyFloats(this.expectedMajor, larger);
    this.expectedMinor = copyFloats(this.expectedMinor, larger);
    this.observed = copyFloats(this.observed, larger);
    this.number = copyFloats(this.number, larger);
    this.argument = copyFloats(this.argument, larger);
    this.partition = copyInts(this.partition, larger);
    this.epoch = copyFloats(this.epoch, larger);
    this.node = copyInts(this.node, larger);
    return index;
  }

  /** Appends one row. Operations come first, in the order of their ids. */
  push(row: HistoryRow): void {
    const source = sourceCode[row.source ?? 'operation'];
    const i = this.grow();
    if (source === sourceCode.operation) {
      assert(this.operationCount === i, 'operations come before read-backs');
      this.operationCount++;
    }
    this.operationId[i] = row.operationId ?? -1;
    this.f[i] = kindCode[row.f];
    this.outcome[i] = row.behind === true ? outcomeCode.info : outcomeCode[row.outcome];
    const silent =
      row.behind === true ? replicaWhy.behind : row.outcome === 'ok' ? replicaWhy.answered : replicaWhy.missing;
    this.why[i] = source === sourceCode.replica ? silent : (row.why ?? (row.outcome === 'fail' ? whyCondition : -1));
    this.source[i] = source;
    this.invokeNs[i] = row.invokeNs;
    this.returnNs[i] = this.outcome[i] === outcomeCode.info ? Infinity : row.returnNs;
    this.major[i] = row.version?.[0] ?? NaN;
    this.minor[i] = row.version?.[1] ?? NaN;
    this.expectedMajor[i] = row.expected?.[0] ?? NaN;
    this.expectedMinor[i] = row.expected?.[1] ?? NaN;
    this.observed[i] = row.observed ?? NaN;
    this.number[i] = row.number ?? NaN;
    this.argument[i] = row.argument ?? NaN;
    this.partition[i] = row.partition ?? -1;
    this.epoch[i] = row.epoch ?? NaN;
    this.node[i] = row.node ?? -1;
  }

  /** Row of an operation id, or -1. */
  indexOf(operationId: number): number {
    let low = 0;
    let high = this.operationCount - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = this.operationId[middle] as number;
      if (found === operationId) return middle;
      if (found < operationId) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }
}

/** A history from literal rows; operation ids default to 1, 2, 3 …. */
export function historyOf(rows: readonly HistoryRow[], name = 'key', keyId = 1): KeyHistory {
  const history = new KeyHistory();
  history.reset(keyId, name);
  let next = 1;
  for (const row of rows) {
    const isOperation = (row.source ?? 'operation') === 'operation';
    history.push(isOperation ? { operationId: next++, ...row } : row);
  }
  return history;
}

function copyFloats(from: Float64Array<ArrayBuffer>, length: number): Float64Array<ArrayBuffer> {
  const to = new Float64Array(length);
  to.set(from);
  return to;
}

function copyInts(from: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const to = new Int32Array(length);
  to.set(from);
  return to;
}

function copyBytes(from: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  const to = new Uint8Array(length);
  to.set(from);
  return to;
}
