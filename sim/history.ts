/**
 * The history of a simulated run, in memory, in the shape that the judge reads: the same meaning, row for row, as the ledger's
 * file (ledger/ledger.ts), without a disk. Or on its way to such a file, row by row (then nothing can be judged from here).
 *
 * Invariant: an operation stands here from before it is sent; one that never ended is `info`. If a row differed from what the
 * ledger would hold, the simulator and the containers would be judged by different rules.
 */
import { assert, present } from '../lib/assert.ts';
import type {
  DigestRow,
  EpochChangeRow,
  FaultRow,
  FinalReadRow,
  GapRow,
  IncarnationRow,
  ReplicaReadRow,
  RetireRow,
} from '../ledger/rows.ts';
import { operationCodes, outcomeCodes, whyCodes } from '../ledger/rows.ts';
import { decodeValue, type DecodedValue } from '../ledger/values.ts';
import {
  type HistoryRow,
  KeyHistory,
  observedCorrupt,
  observedForeign,
  outcomeCode,
  sourceCode,
} from '../ledger/verify/history.ts';
import type { HistorySource, OperationDetails } from '../ledger/verify/source.ts';
import type { Completion, Operation } from '../workloads/port.ts';
import { OpenTable } from './open-table.ts';

/** One operation as it was called and ended. */
export interface RecordedOperation {
  readonly operationId: number;
  readonly session: number;
  readonly operation: Operation;
  readonly invokeNs: number;
  /** Null: still open at the end. */
  readonly returnNs: number | null;
  readonly completion: Completion | null;
  readonly canary: boolean;
}

/** An operation whose end is known. */
export type EndedOperation = RecordedOperation & { readonly returnNs: number; readonly completion: Completion };

/**
 * Takes a history row by row while the run goes on, so that the memory of a run of hours stays flat. Rows of operations come in the
 * order in which they ended; those that never ended come from {@link SimHistory.recorded} afterwards.
 */
export interface HistorySink {
  ended(operation: EndedOperation): void;
  finalRead(row: FinalReadRow): void;
  replicaRead(row: ReplicaReadRow): void;
  retire(row: RetireRow): void;
  /** The key is gone for good: every operation on it has ended, and its name never comes again. */
  released(key: string): void;
  digest(row: DigestRow): void;
  epochChange(row: EpochChangeRow): void;
}

interface Slot {
  readonly operationId: number;
  readonly session: number;
  readonly operation: Operation;
  readonly canary: boolean;
  invokeNs: number;
  returnNs: number | null;
  completion: Completion | null;
}

interface KeyRows {
  readonly name: string;
  readonly canary: boolean;
  readonly operations: number[];
  readonly finals: FinalReadRow[];
  readonly replicas: ReplicaReadRow[];
  retirement: RetireRow | null;
}

/** Lists are told apart by what they hold; a plain value's checksum already covers it. */
const digestOf = (value: DecodedValue): number | undefined =>
  value.kind === 'operation' && value.items > 1 ? value.digest : undefined;

export class SimHistory implements HistorySource {
  readonly runTag: string;
  readonly faultRows: FaultRow[] = [];
  readonly epochRows: EpochChangeRow[] = [];
  readonly incarnationRows: IncarnationRow[] = [];
  readonly digestRows: DigestRow[] = [];
  readonly gapRows: GapRow[] = [];
  readonly metas = new Map<string, unknown>();
  private readonly sink: HistorySink | null;
  /** By operation id less one; none where a sink takes them. */
  private readonly slots: Slot[] = [];
  /** Where a sink takes the rest: operations that have not ended. */
  private readonly open = new OpenTable<Slot>();
  private started = 0;
  private readonly keys = new Map<string, KeyRows>();
  private readonly nodeIds = new Map<string, number>();
  private readonly nodeNames: string[] = [];
  private largest = { attempts: 0, durationNs: 0 };

  constructor(runTag: string, sink: HistorySink | null = null) {
    this.runTag = runTag;
    this.sink = sink;
  }

  /** The id that the next operation gets; from 1. */
  get nextOperationId(): number {
    return this.started + 1;
  }

  get operationCount(): number {
    return this.started;
  }

  /** Before the operation is sent; returns its id. */
  intent(session: number, operation: Operation, atNs: number, canary = false): number {
    const operationId = ++this.started;
    const slot = { operationId, session, operation, canary, invokeNs: atNs, returnNs: null, completion: null };
    if (this.sink !== null) this.open.put(operationId, slot);
    else {
      this.slots.push(slot);
      this.keyRows(operation.key, canary).operations.push(operationId);
    }
    return operationId;
  }

  outcome(operationId: number, completion: Completion, returnNs: number): void {
    const { sink } = this;
    const slot = present(sink === null ? this.slots[operationId - 1] : this.open.take(operationId), 'operation');
    assert(slot.completion === null, 'an operation ends once');
    slot.completion = completion;
    slot.returnNs = returnNs;
    if (!slot.canary) {
      this.largest.attempts = Math.max(this.largest.attempts, completion.attempts ?? 0);
      this.largest.durationNs = Math.max(this.largest.durationNs, returnNs - slot.invokeNs);
    }
    sink?.ended(slot as EndedOperation);
  }

  finalRead(row: FinalReadRow): void {
    if (this.sink !== null) this.sink.finalRead(row);
    else this.keyRows(row.key, false).finals.push(row);
  }

  replicaRead(row: ReplicaReadRow): void {
    if (this.sink !== null) this.sink.replicaRead(row);
    else this.keyRows(row.key, false).replicas.push(row);
  }

  retire(row: RetireRow): void {
    if (this.sink !== null) this.sink.retire(row);
    else this.keyRows(row.key, false).retirement = row;
  }

  /** What is known of a retired key by its name may be forgotten; its rows stay. */
  released(key: string): void {
    this.sink?.released(key);
  }

  epochChange(row: EpochChangeRow): void {
    if (this.sink !== null) this.sink.epochChange(row);
    else this.epochRows.push(row);
  }

  digest(row: DigestRow): void {
    if (this.sink !== null) this.sink.digest(row);
    else this.digestRows.push(row);
  }

  private rowOfFinal(row: FinalReadRow): HistoryRow {
    const { completion } = row;
    const seen = completion.kind === 'ok' ? this.seen(completion.value ?? null) : {};
    const version = completion.kind === 'info' ? null : (completion.version ?? null);
    return {
      f: 'read',
      outcome: completion.kind,
      source: row.phase === 'retire' ? 'retire' : 'final',
      invokeNs: row.invokeNs,
      returnNs: row.returnNs,
      version,
      why: -1,
      ...seen,
      ...(completion.partition === undefined ? {} : { partition: completion.partition }),
      ...(completion.epoch === undefined ? {} : { epoch: completion.epoch }),
      ...(completion.node === undefined ? {} : { node: this.nodeId(completion.node) }),
    };
  }

  private rowOfReplica(row: ReplicaReadRow): HistoryRow {
    const base = {
      f: 'read',
      source: 'replica',
      invokeNs: row.atNs,
      returnNs: row.atNs,
      node: this.nodeId(row.node),
    } as const;
    if (row.kind === 'missing') return { ...base, outcome: 'info' };
    const behind = row.appliedSeq !== null && row.commitSeq !== null && row.appliedSeq < row.commitSeq;
    return { ...base, outcome: 'ok', behind, version: row.version, ...this.seen(row.value) };
  }

  /** Every operation in the order of the ids; of a history that a sink takes, those that have not ended. */
  *recorded(): Iterable<RecordedOperation> {
    yield* this.slots;
    yield* this.open.all();
  }

  /** Names of all keys in the order of their first use. */
  keyNames(): Iterable<string> {
    return this.keys.keys();
  }

  operationsOf(key: string): RecordedOperation[] {
    return (this.keys.get(key)?.operations ?? []).map((operationId) =>
      present(this.slots[operationId - 1], 'operation'),
    );
  }

  // What the judge reads.

  meta(key: string): unknown {
    return this.metas.get(key);
  }
  faults(): Iterable<FaultRow> {
    return this.faultRows;
  }
  epochChanges(): Iterable<EpochChangeRow> {
    return this.epochRows;
  }
  incarnations(): Iterable<IncarnationRow> {
    return this.incarnationRows;
  }
  digests(): Iterable<DigestRow> {
    return this.digestRows;
  }
  gaps(): Iterable<GapRow> {
    return this.gapRows;
  }
  nodeName(nodeId: number): string {
    return this.nodeNames[nodeId] ?? `node ${nodeId}`;
  }
  extremes(): { readonly attempts: number; readonly durationNs: number } {
    return this.largest;
  }

  details(operationId: number): OperationDetails | null {
    const slot = this.slots[operationId - 1];
    if (slot === undefined) return null;
    const { completion } = slot;
    return {
      session: slot.session,
      attempts: completion?.attempts ?? 1,
      error: completion === null || completion.kind === 'ok' ? null : completion.error,
    };
  }

  *histories(): Iterable<KeyHistory> {
    const history = new KeyHistory();
    let keyId = 0;
    for (const rows of this.keys.values()) {
      keyId += 1;
      history.reset(keyId, rows.name, rows.canary);
      history.retired = rows.retirement !== null;
      for (const operationId of rows.operations)
        this.pushOperation(history, present(this.slots[operationId - 1], 'operation'));
      history.operationCount = history.size;
      for (const row of rows.finals) history.push(this.rowOfFinal(row));
      for (const row of rows.replicas) history.push(this.rowOfReplica(row));
      yield history;
    }
  }

  private pushOperation(history: KeyHistory, slot: Slot): void {
    const { operation, completion } = slot;
    const i = history.grow();
    const outcome = completion === null ? outcomeCode.info : outcomeCodes.indexOf(completion.kind);
    const version = completion === null || completion.kind === 'info' ? null : (completion.version ?? null);
    const expected = 'expected' in operation ? operation.expected : undefined;
    history.operationId[i] = slot.operationId;
    history.f[i] = operationCodes.indexOf(operation.f);
    history.outcome[i] = outcome;
    history.source[i] = sourceCode.operation;
    history.why[i] = completion?.kind === 'fail' ? whyCodes.indexOf(completion.why) : -1;
    history.invokeNs[i] = slot.invokeNs;
    history.returnNs[i] = outcome === outcomeCode.info ? Infinity : (slot.returnNs as number);
    history.major[i] = version?.[0] ?? NaN;
    history.minor[i] = version?.[1] ?? NaN;
    history.expectedMajor[i] = expected?.[0] ?? NaN;
    history.expectedMinor[i] = expected?.[1] ?? NaN;
    history.argument[i] =
      operation.f === 'add' ? operation.delta : operation.f === 'write' ? (operation.ttlMs ?? NaN) : NaN;
    history.partition[i] = completion?.partition ?? -1;
    history.epoch[i] = completion?.epoch ?? NaN;
    history.node[i] = completion?.node === undefined ? -1 : this.nodeId(completion.node);
    this.setValues(history, i, operation, completion);
  }

  private setValues(history: KeyHistory, i: number, operation: Operation, completion: Completion | null): void {
    const value = completion?.kind === 'ok' ? completion.value : undefined;
    const isRead = operation.f === 'read';
    const seen =
      completion?.kind === 'ok' && (isRead || (value !== undefined && value !== null)) ? this.seen(value ?? null) : {};
    const written = 'value' in operation ? listDigest(this.runTag, operation.value) : undefined;
    history.observed[i] = isRead ? (seen.observed ?? NaN) : NaN;
    history.number[i] = seen.number ?? written ?? NaN;
  }

  private seen(value: string | null): { observed?: number | null; number?: number } {
    if (value === null) return { observed: null };
    const decoded = decodeValue(this.runTag, value);
    switch (decoded.kind) {
      case 'operation': {
        const digest = digestOf(decoded);
        return { observed: decoded.operationId, ...(digest === undefined ? {} : { number: digest }) };
      }
      case 'number':
        return { number: decoded.number };
      case 'foreign':
        return { observed: observedForeign };
      case 'corrupt':
        return { observed: observedCorrupt };
    }
  }

  private keyRows(name: string, canary: boolean): KeyRows {
    let rows = this.keys.get(name);
    if (rows === undefined) {
      rows = { name, canary, operations: [], finals: [], replicas: [], retirement: null };
      this.keys.set(name, rows);
    }
    return rows;
  }

  private nodeId(name: string): number {
    let id = this.nodeIds.get(name);
    if (id === undefined) {
      id = this.nodeNames.push(name) - 1;
      this.nodeIds.set(name, id);
    }
    return id;
  }
}

/** Digest of a list value; a plain value (no separator) has none. */
const listDigest = (runTag: string, value: string): number | undefined =>
  value.includes(' ') ? digestOf(decodeValue(runTag, value)) : undefined;
