/**
 * Requests at a primary: parks them while it may not serve, judges mutations, answers when, and only when, it may.
 *
 * Invariant: every Ok of a mutation, and every answer derived from a pending entry, waits for that entry's commit; when the
 * primary is deposed, what was logged is answered `Unknown`, what was not `NotExecuted`. A `NotExecuted` for a
 * logged entry would make a client write twice or a verifier call a kept write a phantom.
 */
import { unreachable } from '../../lib/assert.ts';
import type { Answer, ClientRequest, ScanItem } from '../model/client-wire.ts';
import type { Entry, OnceRecord, StoredResult } from '../model/entry.ts';
import type { Seq, Version } from '../model/ids.ts';
import type { TransientStatus } from '../model/status.ts';
import { type CurrentValue, judgeMutation } from './judge.ts';
import type { Primary } from './primary.ts';
import { ReadGate } from './read-gate.ts';

export type DataRequest = ClientRequest & { readonly op: 'get' | 'mutate' | 'scan' };
type Mutate = DataRequest & { readonly op: 'mutate' };
type Read = DataRequest & { readonly op: 'get' | 'scan' };

/** Answered waiters that are kept in front of the others at most. */
const answeredBound = 1_024;
/** Items of one scan answer at most. */
const scanLimit = 1_000;

interface Parked {
  readonly connection: number;
  readonly request: DataRequest;
  readonly sinceMs: number;
}

interface Waiter {
  /** The entry whose commit it waits for. */
  readonly at: Seq;
  readonly connection: number;
  readonly id: number;
  readonly result: StoredResult;
}

export class RequestDesk {
  readonly gate = new ReadGate();
  private readonly primary: Primary;
  private parked: Parked[] = [];
  /** Sorted by entry; those before `nextWaiter` are answered. */
  private waiters: Waiter[] = [];
  private nextWaiter = 0;
  /** Reads that wait for an inherited entry's commit. */
  private behindInherited: {
    readonly upTo: number;
    readonly connection: number;
    readonly request: Read;
    readonly sinceMs: number;
  }[] = [];

  constructor(primary: Primary) {
    this.primary = primary;
  }

  submit(connection: number, request: DataRequest, nowMs: number): void {
    const isRead = request.op !== 'mutate';
    const may = isRead ? this.primary.mayRead(nowMs) : this.primary.mayWrite(nowMs);
    if (!may) this.park(connection, request, nowMs);
    else if (isRead) this.read(connection, request, nowMs, nowMs);
    else this.mutate(connection, request, nowMs);
  }

  private park(connection: number, request: DataRequest, sinceMs: number): void {
    if (this.parked.length >= this.primary.replica.host.timings.parkedRequests) {
      this.refuse(connection, request.id, 'Unavailable', 'NotExecuted', 'too many requests wait for this partition');
      return;
    }
    this.parked.push({ connection, request, sinceMs });
  }

  /** Something changed: whoever was parked tries again. */
  reconsider(nowMs: number): void {
    if (this.parked.length === 0 && this.behindInherited.length === 0) return;
    const { parked } = this;
    this.parked = [];
    for (const { connection, request, sinceMs } of parked) {
      const may = request.op === 'mutate' ? this.primary.mayWrite(nowMs) : this.primary.mayRead(nowMs);
      if (!may) this.park(connection, request, sinceMs);
      else if (request.op === 'mutate') this.mutate(connection, request, nowMs);
      else this.read(connection, request, sinceMs, nowMs);
    }
  }

  private read(connection: number, request: Read, sinceMs: number, nowMs: number): void {
    const { overlay, replica } = this.primary;
    // What names a value waits for entries of its key; what names the position of the whole partition waits for all of them: an older
    // primary may have named any of these positions already.
    const namesValue = request.op === 'get' && replica.store.get(request.key) !== undefined;
    const inherited = namesValue ? overlay.inheritedSeq(request.key) : overlay.inheritedEnd;
    if (inherited > replica.commitSeq) {
      this.behindInherited.push({ upTo: inherited, connection, request, sinceMs });
      return;
    }
    // The value first, the lease after it.
    const answer = this.evaluateRead(request);
    if (this.primary.leaseHeld(nowMs)) {
      replica.host.reply(connection, answer);
      return;
    }
    this.gate.add({
      sinceMs,
      evaluate: () => {
        const later = this.evaluateRead(request);
        return () => replica.host.reply(connection, later);
      },
      refuse: (why) => this.refuse(connection, request.id, 'Unavailable', 'NotExecuted', why),
    });
  }

  private evaluateRead(request: Read): Answer {
    const { store } = this.primary.replica;
    if (request.op === 'get') {
      const item = store.get(request.key);
      if (item === undefined) return { ...this.base(request.id), status: 'NotFound', version: store.applied };
      return this.resultAnswer(request.id, { status: 'Ok', version: item.version, value: item.value });
    }
    const limit = Math.min(request.limit, scanLimit);
    const items: ScanItem[] = [];
    let more = false;
    for (const key of store.keys(request.prefix)) {
      if (request.after !== undefined && key <= request.after) continue;
      if (items.length >= limit) {
        more = true;
        break;
      }
      const item = store.get(key);
      if (item !== undefined) items.push({ key, value: item.value, version: item.version });
    }
    return { ...this.base(request.id), status: 'Ok', version: store.applied, items, more };
  }

  private mutate(connection: number, request: Mutate, nowMs: number): void {
    const { replica, overlay, runtime } = this.primary;
    const { host } = replica;
    const { once, mutation, id } = request;
    const pending = overlay.sequence(once.clientId, once.sequence);
    if (pending !== undefined) {
      this.wait({ at: pending.seq, connection, id, result: pending.once.result });
      return;
    }
    const remembered = host.rules.remembered(replica.store, once.clientId, once.sequence);
    if (remembered.kind === 'done') {
      host.reply(connection, this.settledAnswer(id, remembered.result));
      return;
    }
    if (remembered.kind === 'settled' || once.sequence < overlay.lowWatermark(once.clientId)) {
      host.reply(connection, { ...this.base(id), status: 'InvalidInput', reason: 'this sequence was settled before' });
      return;
    }
    if (runtime.inSync.length < host.minInSync) {
      this.refuse(connection, id, 'Unavailable', 'NotExecuted', 'too few in-sync copies');
      return;
    }
    if (this.primary.pendingCount >= host.timings.pendingEntries) {
      this.refuse(connection, id, 'Unavailable', 'NotExecuted', 'too many uncommitted entries');
      return;
    }
    const overlaid = overlay.key(mutation.key);
    const judgement = judgeMutation(mutation, this.current(mutation.key), replica.log.last);
    switch (judgement.kind) {
      case 'effect': {
        const version: Version = { term: this.primary.term, seq: (replica.log.lastSeq + 1) as Seq };
        const { value } = judgement;
        const result: StoredResult = value === undefined ? { status: 'Ok', version } : { status: 'Ok', version, value };
        const entry = this.primary.append(judgement.effect, this.record(request, result));
        if (request.mode === 'async') host.reply(connection, this.resultAnswer(id, result));
        else this.wait({ at: entry.seq, connection, id, result });
        return;
      }
      case 'refusal': {
        // A refusal is an observation. From committed state, under the lease, on a first attempt it may go out at once; else it is
        // logged, so that it is true when given and an earlier attempt still in flight can no longer run.
        const { result } = judgement;
        const plain = overlaid === undefined && request.attempt === 1 && this.primary.leaseHeld(nowMs);
        if (plain && overlay.inheritedEnd <= replica.commitSeq) {
          // Judged against what is committed: a position beyond it would be ahead of the reads that follow, and one before what was
          // inherited behind what an older primary has named.
          const committed = judgeMutation(mutation, this.current(mutation.key), replica.store.applied);
          host.reply(connection, this.settledAnswer(id, committed.kind === 'refusal' ? committed.result : result));
          return;
        }
        const entry = this.primary.append({ kind: 'completion' }, this.record(request, result));
        this.wait({ at: entry.seq, connection, id, result });
        return;
      }
      default:
        unreachable(judgement);
    }
  }

  private record(request: Mutate, result: StoredResult): OnceRecord {
    const { clientId, sequence, lowWatermark } = request.once;
    return { clientId, sequence, lowWatermark, result };
  }

  /** Committed plus pending. */
  private current(key: string): CurrentValue | null {
    const pending = this.primary.overlay.key(key);
    if (pending !== undefined) {
      return pending.value === null ? null : { value: pending.value, version: pending.version };
    }
    return this.primary.replica.store.get(key) ?? null;
  }

  private wait(waiter: Waiter): void {
    const { waiters } = this;
    let index = waiters.length;
    // Nearly always the newest entry; only a repeat waits for an older one.
    while (index > this.nextWaiter && (waiters[index - 1] as Waiter).at > waiter.at) index -= 1;
    if (index === waiters.length) waiters.push(waiter);
    else waiters.splice(index, 0, waiter);
  }

  onCommitted(entry: Entry): void {
    const { host, commitSeq } = this.primary.replica;
    for (let next = this.waiters[this.nextWaiter]; next?.at === entry.seq; next = this.waiters[this.nextWaiter]) {
      this.nextWaiter += 1;
      if (entry.seq > commitSeq) host.invariant(false, 'an answer above the commit index');
      host.reply(next.connection, this.settledAnswer(next.id, next.result));
    }
    if (this.nextWaiter === this.waiters.length || this.nextWaiter >= answeredBound) {
      this.waiters = this.waiters.slice(this.nextWaiter);
      this.nextWaiter = 0;
    }
  }

  /** Reads behind inherited entries go on once these are committed. */
  afterCommit(nowMs: number): void {
    if (this.behindInherited.length === 0) return;
    const held = this.behindInherited;
    this.behindInherited = [];
    for (const read of held) {
      if (this.primary.mayRead(nowMs)) this.read(read.connection, read.request, read.sinceMs, nowMs);
      else this.park(read.connection, read.request, read.sinceMs);
    }
  }

  tick(nowMs: number): void {
    this.reconsider(nowMs);
    if (this.gate.size > 0 && this.primary.mayRead(nowMs) && this.primary.leaseHeld(nowMs)) this.gate.open();
    const before = nowMs - this.primary.replica.host.timings.parkMs;
    this.gate.refuseOlderThan(before, 'no lease and no confirmation in time');
    // With every beat, and nearly always nobody waits.
    if (this.parked.length === 0 && this.behindInherited.length === 0) return;
    const waited = (since: number): boolean => since <= before;
    for (const { connection, request } of this.parked.filter(({ sinceMs }) => waited(sinceMs))) {
      this.refuse(connection, request.id, 'Unavailable', 'NotExecuted', 'not serving in time');
    }
    this.parked = this.parked.filter(({ sinceMs }) => !waited(sinceMs));
    for (const { connection, request } of this.behindInherited.filter(({ sinceMs }) => waited(sinceMs))) {
      this.refuse(connection, request.id, 'Unavailable', 'NotExecuted', 'an inherited entry is not committed yet');
    }
    this.behindInherited = this.behindInherited.filter(({ sinceMs }) => !waited(sinceMs));
  }

  refuseAll(why: string): void {
    for (const { connection, request } of [...this.parked, ...this.behindInherited]) {
      this.refuse(connection, request.id, 'OwnershipChanging', 'NotExecuted', why);
    }
    this.parked = [];
    this.behindInherited = [];
    this.gate.refuseAll(why);
    for (const { connection, id } of this.waiters.slice(this.nextWaiter)) {
      this.refuse(connection, id, 'OwnershipChanging', 'Unknown', why);
    }
    this.waiters = [];
    this.nextWaiter = 0;
  }

  private refuse(
    connection: number,
    id: number,
    status: TransientStatus,
    outcome: 'NotExecuted' | 'Unknown',
    reason: string,
  ): void {
    this.primary.replica.host.reply(connection, { ...this.base(id), status, outcome, reason });
  }

  /** Spelt out for the shapes that nearly every answer has; spreading costs more than all the rest of an answer. */
  /** The answer to a mutation that is to be kept: an Ok stands at or below the commit index. */
  private settledAnswer(id: number, result: StoredResult): Answer {
    const { host, commitSeq, partition } = this.primary.replica;
    if (result.status === 'Ok' && result.version !== undefined && result.version.seq > commitSeq)
      host.invariant(false, `partition ${partition}: Ok for ${result.version.seq} above the commit index ${commitSeq}`);
    return this.resultAnswer(id, result);
  }

  private resultAnswer(id: number, result: StoredResult): Answer {
    const { runtime } = this.primary;
    const { status, version, value } = result;
    if (runtime.primary === null || version === undefined) return { ...this.base(id), ...result };
    const { partition, host } = this.primary.replica;
    const { epoch } = runtime;
    const member = host.self;
    const owner = runtime.primary.nodeId;
    if (value === undefined) return { id, partition, epoch, member, owner, status, version };
    return { id, partition, epoch, member, owner, status, version, value };
  }

  private base(id: number): Pick<Answer, 'id' | 'partition' | 'epoch' | 'owner' | 'member'> {
    const { replica, runtime } = this.primary;
    const owner = runtime.primary === null ? {} : { owner: runtime.primary.nodeId };
    return { id, partition: replica.partition, epoch: runtime.epoch, member: replica.host.self, ...owner };
  }
}
