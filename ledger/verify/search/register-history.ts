/**
 * Register histories as columns: one entry per operation, no object per operation, so that a million of them fit in
 * 40 MiB and are read in memory order.
 *
 * Owns the meaning of (kind, status) for reads, writes and compare-and-sets of one register per key. If it were wrong,
 * every verdict built on it would be.
 *
 * | kind  | status  | meaning                                                                                  |
 * | ----- | ------- | ---------------------------------------------------------------------------------------- |
 * | read  | ok      | returned `b`; any other status says nothing and is left out                              |
 * | write | ok      | the state became `a` between invoke and complete (a delete writes the absent value)      |
 * | write | unknown | the same at some time after invoke, or never; a failed write did not happen: left out    |
 * | cas   | ok      | the state was `a` and became `b`                                                         |
 * | cas   | failed  | an observation: at some instant between invoke and complete the state was not `a`        |
 * | cas   | unknown | may have happened at any time after invoke at which the state was `a`, or never          |
 *
 * An operation precedes another when it completed strictly before the other was invoked; equal times are concurrent,
 * which can only make a verdict milder.
 */

export const readKind = 0;
export const writeKind = 1;
export const casKind = 2;

export const okStatus = 0;
export const failedStatus = 1;
export const unknownStatus = 2;

/** Columns, all of length `count`, in order of `invoke` (not decreasing) within each key. Values are plain numbers. */
export interface RegisterHistory {
  readonly count: number;
  readonly kind: Uint8Array;
  readonly status: Uint8Array;
  /** write: the value; cas: the expected value; read: unused. */
  readonly a: Float64Array;
  /** read: the result; cas: the new value; write: unused. */
  readonly b: Float64Array;
  /** Any unit, as long as it is one clock. */
  readonly invoke: Float64Array;
  /** Infinity for an operation that never completed; always so for an unknown status. */
  readonly complete: Float64Array;
}

/** A moment in the order of completions: everything completed up to operation `operation` at `time`, that one included. */
export interface HistoryCut {
  readonly time: number;
  readonly operation: number;
}

/** No cut: the whole history. */
export const wholeHistory: HistoryCut = { time: Infinity, operation: Infinity };

/** True when the operation's completion is inside the prefix that ends at the cut. */
export function isCompleteAt(history: RegisterHistory, operation: number, cut: HistoryCut): boolean {
  const time = history.complete[operation]!;
  return time < cut.time ? true : time === cut.time && time !== Infinity && operation <= cut.operation;
}

/**
 * True when the operation says anything at all (see the table), given the prefix. An operation that completes after the
 * prefix is open in it: its read or its failed compare-and-set says nothing yet, its write may or may not have happened.
 */
export function isRelevantAt(history: RegisterHistory, operation: number, cut: HistoryCut): boolean {
  if (history.invoke[operation]! > cut.time) return false;
  const kind = history.kind[operation]!;
  const status = history.status[operation]!;
  if (kind === readKind) return status === okStatus && isCompleteAt(history, operation, cut);
  if (kind === writeKind) return status !== failedStatus;
  return status !== failedStatus || isCompleteAt(history, operation, cut);
}

/** Allocates empty columns for `count` operations, all open. */
export function allocateHistory(count: number): RegisterHistory {
  return {
    count,
    kind: new Uint8Array(count),
    status: new Uint8Array(count),
    a: new Float64Array(count),
    b: new Float64Array(count),
    invoke: new Float64Array(count),
    complete: new Float64Array(count).fill(Infinity),
  };
}

/** All operation numbers of a history, for a history of one key. */
export function allOperations(history: RegisterHistory): Uint32Array {
  return Uint32Array.from({ length: history.count }, (_, index) => index);
}
