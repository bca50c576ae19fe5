/**
 * The operations of a ledger as events in the order of time: invocations and completions, interleaved as they happened.
 *
 * A ledger holds operations by id, which is nearly the order of their invocations; events wait in a heap until nothing earlier
 * can come any more. Memory is that of one window of time, however long the run was.
 */
import { assert } from '../../lib/assert.ts';
import type { LedgerReader } from '../../ledger/reader.ts';
import type { StoredOperation, StoredRead } from '../../ledger/stored-operations.ts';
import { EventHeap } from '../../sim/event-heap.ts';

/** An operation, or a read-back that stands as one. */
export interface ExportedOperation extends Omit<StoredOperation, 'argument'> {
  readonly argument: number | null;
  /** `operation`, or the phase of a read-back. */
  readonly source: 'operation' | 'final' | 'retire';
}

export interface HistoryEvent {
  readonly kind: 'invoke' | 'complete';
  readonly atNs: number;
  readonly operation: ExportedOperation;
}

/** How much later than one that follows it an event may have begun, ns: longer than any operation of a client with a deadline. */
const windowNs = 300e9;
/** Session numbers of read-backs start here, one per read: they ran beside each other. */
export const firstReadBackSession = 1_000_000;

/** Every event, oldest first. `wanted` leaves out keys. */
export function* historyEvents(
  reader: LedgerReader,
  wanted: (key: string) => boolean,
): Generator<HistoryEvent, void, undefined> {
  const heap = new EventHeap<HistoryEvent>();
  let lastNs = 0;
  const ready = (beforeNs: number): HistoryEvent | undefined => {
    if (heap.nextMs > beforeNs) return undefined;
    const event = heap.pop();
    assert(event === undefined || event.atNs >= lastNs, 'the events of a history come in the order of time');
    lastNs = event?.atNs ?? lastNs;
    return event;
  };
  for (const operation of merged(reader)) {
    const { invokeNs, returnNs } = operation;
    for (let event = ready(invokeNs - windowNs); event !== undefined; event = ready(invokeNs - windowNs)) yield event;
    if (!wanted(operation.key)) continue;
    heap.push(invokeNs, { kind: 'invoke', atNs: invokeNs, operation });
    if (returnNs !== null) heap.push(returnNs, { kind: 'complete', atNs: returnNs, operation });
  }
  for (let event = ready(Infinity); event !== undefined; event = ready(Infinity)) yield event;
}

/** Operations and read-backs, nearly in the order of their invocations. */
function* merged(reader: LedgerReader): Generator<ExportedOperation, void, undefined> {
  const open = reader.openOperations().map(asOperation);
  const reads = numbered(reader.finalReads());
  const finished = reader.finishedOperations();
  let nextRead = reads.next();
  let nextOpen = 0;
  for (const operation of finished) {
    const { invokeNs, operationId } = operation;
    while (nextOpen < open.length && (open[nextOpen] as ExportedOperation).operationId < operationId)
      yield open[nextOpen++] as ExportedOperation;
    for (; nextRead.done !== true && nextRead.value.invokeNs <= invokeNs; nextRead = reads.next()) yield nextRead.value;
    yield asOperation(operation);
  }
  yield* open.slice(nextOpen);
  for (; nextRead.done !== true; nextRead = reads.next()) yield nextRead.value;
}

const asOperation = (operation: StoredOperation): ExportedOperation => ({ ...operation, source: 'operation' });

function* numbered(reads: Iterable<StoredRead>): Generator<ExportedOperation, void, undefined> {
  let session = firstReadBackSession;
  for (const { phase, ...read } of reads) {
    yield {
      ...read,
      operationId: -session,
      session: session++,
      f: 'read',
      why: null,
      attempts: null,
      argument: null,
      expected: null,
      source: phase,
    };
  }
}
