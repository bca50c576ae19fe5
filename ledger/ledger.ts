/**
 * The front of a ledger: takes rows, turns them into numbers and names, and tells when they are committed.
 *
 * Duties of the caller: await `intent` before sending the operation; call `outcome` before the session's next `intent`
 * (no need to await it: they travel in order, so the next intent's promise covers it). If an operation were sent before its
 * intent is on disk, a crash of the harness would hide what the store acknowledged. Source: DESIGN §8.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { assert, present } from '../lib/assert.ts';
import type { Operation, Version } from '../workloads/port.ts';
import { type FromWriter, recordKinds, type ResumedState, type SideRow, type WriterOptions } from './batch.ts';
import { type ClockOrigin, newOrigin, resumedOrigin } from './clock-origin.ts';
import { DiskGuardError, GroupCommit, maxQueuedRows } from './group-commit.ts';
import { Names } from './names.ts';
import * as rows from './rows.ts';
import { LedgerFileError } from './schema.ts';
import { digestOf, seenIn, seenValue } from './seen-value.ts';
import { decodeValue } from './values.ts';

/** Free bytes below which new operations are refused unless told otherwise. */
export const defaultMinFreeBytes = 512 * 1024 * 1024;
const clockSampleEveryNs = 10e9;

export interface LedgerOptions {
  /** The file; its folder exists. */
  readonly path: string;
  /** `full` survives power loss too; `normal` survives the death of any process. */
  readonly sync?: 'normal' | 'full';
  /** Go on with an existing file instead of making a new one. */
  readonly resume?: boolean;
  readonly minFreeBytes?: number;
  /** Named in every value of the run; letters, digits, _ and -. Kept from the file on resume. */
  readonly runTag: string;
}

interface OpenOperation {
  readonly operationId: number;
  readonly operation: Operation;
  readonly keyId: number;
  readonly digest: number;
}

/** Opens a ledger for writing. Rejects with {@link LedgerFileError} (one sentence) when the file is not as wanted. */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const path = resolve(options.path);
  const resume = options.resume ?? false;
  if (resume && !existsSync(path))
    throw new LedgerFileError('missing', `${path} does not exist; there is no run to resume.`);
  if (!resume && existsSync(path))
    throw new LedgerFileError('exists', `${path} exists already; name a new results folder or resume that run.`);
  const data: WriterOptions = { path, sync: options.sync ?? 'normal', resume };
  const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData: data });
  const first = await new Promise<FromWriter>((settle, reject) => {
    worker.once('message', settle);
    worker.once('error', reject);
  });
  if (first.kind !== 'open') {
    await worker.terminate();
    const reason = first.kind === 'failed' ? first.reason : first.kind;
    throw new LedgerFileError('unwritable', `${path} cannot be opened for writing (${reason}).`);
  }
  return new Ledger(worker, options, first.resumed, first.freeBytes);
}

/** An open ledger; see the file's header for the caller's duties. */
export class Ledger {
  /** What the file held when it was opened; of use after a resume. */
  readonly resumed: ResumedState;
  readonly runTag: string;
  private readonly queue: GroupCommit;
  private readonly minFreeBytes: number;
  private readonly originNs: bigint;
  private readonly names: Names;
  private readonly open = new Map<number, OpenOperation>();
  private nextId: number;
  private lastClockSampleNs = -Infinity;
  private origin: ClockOrigin;

  /** @internal Use {@link openLedger}. */
  constructor(worker: Worker, options: LedgerOptions, resumed: ResumedState, freeBytes: number) {
    this.resumed = resumed;
    this.minFreeBytes = options.minFreeBytes ?? defaultMinFreeBytes;
    this.runTag = resumed.runTag === null ? options.runTag : (JSON.parse(resumed.runTag) as string);
    this.nextId = resumed.nextOperationId;
    const saved = resumed.origin === null ? null : (JSON.parse(resumed.origin) as ClockOrigin);
    this.origin = saved === null ? newOrigin() : resumedOrigin(saved, resumed.lastNs);
    this.originNs = BigInt(this.origin.monotonicNs);
    this.queue = new GroupCommit({ worker, freeBytes, rowOfBatch: () => this.clockSample() });
    this.names = new Names(this.queue, resumed);
    void this.meta('origin', this.origin);
    void this.meta('runTag', this.runTag);
    if (saved !== null)
      void this.gap({ fromNs: resumed.lastNs, toNs: this.nowNs(), reason: 'the harness was not running' });
  }

  /** Nanoseconds since the start of the run. */
  nowNs(): number {
    return Number(process.hrtime.bigint() - this.originNs);
  }

  /** An operation id that no earlier operation of this run has, also across a resume. */
  nextOperationId(): number {
    return this.nextId++;
  }

  /** Size of the file and room beside it, as of the last look (twice a second under load). */
  usage(): {
    readonly fileBytes: number;
    readonly freeBytes: number;
    readonly queuedRows: number;
    /** Names of keys that were not released. */
    readonly keysInMemory: number;
  } {
    return { ...this.queue.space, queuedRows: this.queue.queuedRows, keysInMemory: this.names.keyCount };
  }

  /** Resolves once the intent is committed; only then may the operation be sent. Rejects with {@link DiskGuardError} or {@link LedgerWriteError}. */
  intent(row: rows.IntentRow): Promise<void> {
    if (this.queue.space.freeBytes < this.minFreeBytes) {
      return Promise.reject(
        new DiskGuardError(
          `only ${this.queue.space.freeBytes} bytes are free for the ledger, below the bound of ${this.minFreeBytes}; no new operation is started.`,
        ),
      );
    }
    const refused = this.queue.refusal(maxQueuedRows);
    if (refused !== null) return Promise.reject(refused);
    const { operation } = row;
    assert(!this.open.has(row.session), 'a session has one open operation at a time');
    const keyId = this.names.key(operation.key, row.canary);
    const digest = this.digestIn(operation);
    this.open.set(row.session, { operationId: row.operationId, operation, keyId, digest });
    const at = this.queue.records.append(recordKinds.open_operations);
    this.queue.records.set(at, 0, row.session);
    this.queue.records.set(at, 1, row.operationId);
    this.queue.records.set(at, 2, rows.operationCodes.indexOf(operation.f));
    this.queue.records.set(at, 3, keyId);
    this.queue.records.set(at, 4, row.atNs);
    this.setArguments(at, 5, operation, digest);
    return this.queue.queued();
  }

  /** Records how the session's open operation ended. Resolves once committed. */
  outcome(row: rows.OutcomeRow): Promise<void> {
    const refused = this.queue.refusal();
    if (refused !== null) return Promise.reject(refused);
    const open = present(this.open.get(row.session), `open operation of session ${row.session}`);
    this.open.delete(row.session);
    return this.ending(open, row);
  }

  /**
   * Records an operation that has ended already, in one row, for a history that is told afterwards: there was nothing that a crash
   * between intent and outcome could have hidden. Resolves once committed.
   */
  ended(intent: rows.IntentRow, outcome: rows.OutcomeRow): Promise<void> {
    const refused = this.queue.refusal();
    if (refused !== null) return Promise.reject(refused);
    const { operationId, operation } = intent;
    const keyId = this.names.key(operation.key, intent.canary);
    return this.ending({ operationId, operation, keyId, digest: this.digestIn(operation) }, outcome);
  }

  private ending(open: OpenOperation, row: rows.OutcomeRow): Promise<void> {
    const { completion } = row;
    const version: Version | null = completion.kind === 'info' ? null : (completion.version ?? null);
    const seen = seenIn(this.runTag, completion, open.operation.f === 'read');
    // A refusal rejects what is returned below, too.
    if (seen.text !== null) this.queue.side('odd_values', open.operationId, seen.text).catch(() => undefined);
    const { records } = this.queue;
    const error = completion.kind === 'ok' ? NaN : this.names.error(completion.error);
    const node = completion.node === undefined ? NaN : this.names.node(completion.node);
    const at = records.append(recordKinds.operations);
    records.set(at, 0, open.operationId);
    records.set(at, 1, row.session);
    records.set(at, 2, rows.operationCodes.indexOf(open.operation.f));
    records.set(at, 3, open.keyId);
    records.set(at, 4, rows.outcomeCodes.indexOf(completion.kind));
    records.set(at, 5, completion.kind === 'fail' ? rows.whyCodes.indexOf(completion.why) : NaN);
    records.set(at, 6, error);
    records.set(at, 7, row.invokeNs);
    records.set(at, 8, row.returnNs - row.invokeNs);
    records.set(at, 9, version === null ? NaN : version[0]);
    records.set(at, 10, version === null ? NaN : version[1]);
    records.set(at, 11, completion.partition ?? NaN);
    records.set(at, 12, completion.epoch ?? NaN);
    records.set(at, 13, node);
    records.set(at, 14, completion.attempts ?? NaN);
    records.set(at, 15, seen.observed);
    this.setArguments(at, 16, open.operation, Number.isNaN(seen.number) ? open.digest : seen.number);
    return this.queue.queued();
  }

  /** Of a list that an operation writes; a plain value (no separator) has none. */
  private digestIn(operation: Operation): number {
    return 'value' in operation && operation.value.includes(' ')
      ? digestOf(decodeValue(this.runTag, operation.value))
      : NaN;
  }

  fault(row: rows.FaultRow): Promise<void> {
    const partitions = row.partitions === undefined ? null : JSON.stringify(row.partitions);
    return this.queue.side(
      'faults',
      row.faultId,
      row.kind,
      row.stage,
      row.atNs,
      Math.round(row.wallMs),
      JSON.stringify(row.targets),
      partitions,
      JSON.stringify(row.evidence ?? null),
    );
  }

  epochChange(row: rows.EpochChangeRow): Promise<void> {
    const node = row.node === null ? null : this.names.node(row.node);
    return this.queue.side(
      'epoch_changes',
      row.partition,
      row.epoch,
      row.term,
      node,
      row.incarnation,
      row.kind,
      row.health,
      row.atNs,
    );
  }

  incarnation(row: rows.IncarnationRow): Promise<void> {
    return this.queue.side(
      'incarnations',
      this.names.node(row.node),
      row.incarnation,
      row.atNs,
      Math.round(row.wallMs),
    );
  }

  finalRead(row: rows.FinalReadRow): Promise<void> {
    const refused = this.queue.refusal();
    if (refused !== null) return Promise.reject(refused);
    const { completion } = row;
    const seen = seenIn(this.runTag, completion, true);
    const version = completion.kind === 'info' ? null : (completion.version ?? null);
    const keyId = this.names.key(row.key);
    const error = completion.kind === 'ok' ? NaN : this.names.error(completion.error);
    const node = completion.node === undefined ? NaN : this.names.node(completion.node);
    const { records } = this.queue;
    const at = records.append(recordKinds.final_reads);
    records.set(at, 0, keyId);
    records.set(at, 1, rows.phaseCodes.indexOf(row.phase));
    records.set(at, 2, rows.outcomeCodes.indexOf(completion.kind));
    records.set(at, 3, error);
    records.set(at, 4, row.invokeNs);
    records.set(at, 5, row.returnNs - row.invokeNs);
    records.set(at, 6, version?.[0] ?? NaN);
    records.set(at, 7, version?.[1] ?? NaN);
    records.set(at, 8, completion.partition ?? NaN);
    records.set(at, 9, completion.epoch ?? NaN);
    records.set(at, 10, node);
    records.set(at, 11, seen.observed);
    records.set(at, 12, seen.number);
    records.setText(at, 13, seen.text);
    return this.queue.queued();
  }

  replicaRead(row: rows.ReplicaReadRow): Promise<void> {
    const refused = this.queue.refusal();
    if (refused !== null) return Promise.reject(refused);
    const answer = row.kind === 'answered' ? row : noAnswer;
    const seen = seenValue(this.runTag, answer.value);
    const keyId = this.names.key(row.key);
    const node = this.names.node(row.node);
    const { records } = this.queue;
    const at = records.append(recordKinds.replica_reads);
    records.set(at, 0, keyId);
    records.set(at, 1, rows.phaseCodes.indexOf(row.phase));
    records.set(at, 2, node);
    records.set(at, 3, row.incarnation ?? NaN);
    records.setWord(at, 4, row.role);
    records.set(at, 5, row.atNs);
    records.set(at, 6, row.kind === 'answered' ? 1 : 0);
    records.set(at, 7, seen.observed);
    records.set(at, 8, seen.number);
    records.set(at, 9, answer.version?.[0] ?? NaN);
    records.set(at, 10, answer.version?.[1] ?? NaN);
    records.set(at, 11, answer.appliedSeq ?? NaN);
    records.set(at, 12, answer.commitSeq ?? NaN);
    records.setText(at, 13, row.kind === 'answered' ? seen.text : row.reason);
    return this.queue.queued();
  }

  digest(row: rows.DigestRow): Promise<void> {
    const refused = this.queue.refusal();
    if (refused !== null) return Promise.reject(refused);
    const node = this.names.node(row.node);
    const { records } = this.queue;
    const at = records.append(recordKinds.digests);
    records.set(at, 0, row.partition);
    records.set(at, 1, node);
    records.set(at, 2, row.incarnation ?? NaN);
    records.setWord(at, 3, row.role);
    records.set(at, 4, row.atNs);
    records.set(at, 5, row.appliedTerm);
    records.set(at, 6, row.appliedSeq);
    records.setText(at, 7, row.digest);
    records.set(at, 8, row.keyCount);
    return this.queue.queued();
  }

  retire(row: rows.RetireRow): Promise<void> {
    const refused = this.queue.refusal();
    if (refused !== null) return Promise.reject(refused);
    const keyId = this.names.key(row.key);
    const at = this.queue.records.append(recordKinds.retirements);
    this.queue.records.set(at, 0, keyId);
    this.queue.records.set(at, 1, row.atNs);
    this.queue.records.set(at, 2, row.exposed ? 1 : 0);
    return this.queue.queued();
  }

  /** Forgets a retired key's name, so that memory stays flat. The name must never be used again in this run. */
  release(key: string): Promise<void> {
    const refused = this.queue.refusal();
    if (refused !== null) return Promise.reject(refused);
    const keyId = this.names.key(key);
    this.names.forgetKey(key);
    const at = this.queue.records.append(recordKinds.released_keys);
    this.queue.records.set(at, 0, keyId);
    return this.queue.queued();
  }

  meta(key: string, json: unknown): Promise<void> {
    return this.queue.side('meta', key, JSON.stringify(json));
  }

  gap(row: rows.GapRow): Promise<void> {
    return this.queue.side('gaps', row.fromNs, row.toNs, row.reason);
  }

  /** Resolves once everything handed in so far is committed. */
  flush(): Promise<void> {
    return this.queue.flush();
  }

  /** Commits what is queued, folds the WAL into the file and ends the thread. Operations still open stay open in the file (readers take them as `info`). */
  close(): Promise<void> {
    return this.queue.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private setArguments(at: number, column: number, operation: Operation, number: number): void {
    const expected = 'expected' in operation ? operation.expected : undefined;
    this.queue.records.set(at, column, number);
    this.queue.records.set(
      at,
      column + 1,
      operation.f === 'add' ? operation.delta : operation.f === 'write' ? (operation.ttlMs ?? NaN) : NaN,
    );
    this.queue.records.set(at, column + 2, expected?.[0] ?? NaN);
    this.queue.records.set(at, column + 3, expected?.[1] ?? NaN);
    this.queue.records.set(at, column + 4, 'value' in operation ? operation.value.length : NaN);
  }

  /** A row that ties the run's clock to the wall's, now and then. */
  private clockSample(): SideRow | null {
    const nowNs = this.nowNs();
    if (nowNs - this.lastClockSampleNs <= clockSampleEveryNs) return null;
    this.lastClockSampleNs = nowNs;
    return ['clock', nowNs, Date.now(), this.origin.bootId];
  }
}

/** What is recorded of a copy that gave no answer. */
const noAnswer = { value: null, version: null, appliedSeq: null, commitSeq: null } as const;
