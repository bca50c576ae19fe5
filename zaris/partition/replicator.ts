/**
 * A primary's view of each follower: what it holds, what was sent, when it last answered; and the sending itself.
 *
 * Owns the rule that a match counts only when confirmed in this term, by this incarnation. If a stale confirmation counted,
 * an entry could be acknowledged that a member of the in-sync set does not hold.
 */
import { assert } from '../../lib/assert.ts';
import { type Member, type Seq, type Term, memberName, sameMember, seq as asSeq } from '../model/ids.ts';
import type { SnapshotClient, SnapshotItem } from '../model/entry.ts';
import type { AppendAckMessage, SnapshotAckMessage } from '../model/peer-wire.ts';
import type { Replica } from './replica.ts';

interface SnapshotSender {
  readonly snapshotId: number;
  readonly seq: Seq;
  readonly seqTerm: Term;
  readonly items: readonly SnapshotItem[];
  readonly clients: readonly SnapshotClient[];
  /** Item offset at which each sent chunk starts. */
  readonly offsets: number[];
  nextIndex: number;
  done: boolean;
  sentAtMs: number;
}

export interface Progress {
  readonly member: Member;
  /** Confirmed in this term. */
  matchSeq: Seq;
  nextSeq: Seq;
  /** Nothing further is sent until the follower has said where its log matches. */
  probing: boolean;
  /** The oldest entry still in the log was offered as predecessor since the last match. */
  triedBase: boolean;
  snapshot: SnapshotSender | null;
  /** Last confirmation of any kind in this term. */
  lastAckMs: number;
  lastSentMs: number;
  /** Send time of the newest beat that it answered in this term; −Infinity before. */
  leaseSentAtMs: number;
}

export class Replicator {
  private readonly replica: Replica;
  private readonly term: Term;
  private readonly followers = new Map<string, Progress>();
  /** The same ones, for looking up by comparison: they are few, and making a name costs more. */
  private list: readonly Progress[] = [];
  private nextSnapshotId = 1;

  constructor(replica: Replica, term: Term) {
    this.replica = replica;
    this.term = term;
  }

  /** The followers are exactly these from now on; who stays keeps its progress. */
  setFollowers(members: readonly Member[], nowMs: number): void {
    const wanted = new Set(members.map(memberName));
    for (const name of this.followers.keys()) if (!wanted.has(name)) this.followers.delete(name);
    for (const member of members) {
      const name = memberName(member);
      if (this.followers.has(name)) continue;
      const progress: Progress = {
        member,
        matchSeq: asSeq(0),
        nextSeq: asSeq(this.replica.log.last.seq + 1),
        probing: true,
        triedBase: false,
        snapshot: null,
        lastAckMs: nowMs,
        lastSentMs: Number.NEGATIVE_INFINITY,
        leaseSentAtMs: Number.NEGATIVE_INFINITY,
      };
      this.followers.set(name, progress);
      this.probe(progress, nowMs);
    }
    this.list = [...this.followers.values()];
  }

  all(): readonly Progress[] {
    return this.list;
  }

  get(member: Member): Progress | undefined {
    for (const follower of this.list) if (sameMember(follower.member, member)) return follower;
    return undefined;
  }

  /** After the process stood still, silence before it proves nothing. */
  forgiveSilence(nowMs: number): void {
    for (const follower of this.followers.values()) follower.lastAckMs = nowMs;
  }

  /** Lowest seq that a follower still needs from the log; a stalled one stops counting. */
  heldFrom(): Seq {
    let lowest = this.replica.log.lastSeq as number;
    for (const follower of this.list) {
      const needs = follower.snapshot === null ? follower.matchSeq : follower.snapshot.seq;
      if (needs < lowest) lowest = needs;
    }
    return asSeq(lowest);
  }

  private probe(follower: Progress, nowMs: number): void {
    const { log } = this.replica;
    if (follower.nextSeq - 1 < log.baseVersion.seq) {
      this.startSnapshot(follower, nowMs);
      return;
    }
    follower.probing = true;
    this.sendAppend(follower, 0, nowMs);
  }

  /** Sends what is new, within the window. */
  push(nowMs: number): void {
    for (const follower of this.list) this.pushTo(follower, nowMs);
  }

  private pushTo(follower: Progress, nowMs: number): void {
    if (follower.probing || follower.snapshot !== null) return;
    const { appendEntries, windowEntries } = this.replica.host.timings;
    while (follower.nextSeq <= this.replica.log.lastSeq && follower.nextSeq - follower.matchSeq <= windowEntries) {
      if (follower.nextSeq - 1 < this.replica.log.baseVersion.seq) {
        this.startSnapshot(follower, nowMs);
        return;
      }
      this.sendAppend(follower, appendEntries, nowMs);
    }
  }

  private sendAppend(follower: Progress, maxEntries: number, nowMs: number): void {
    const { log, partition, dataLossNumber, commitSeq, host } = this.replica;
    const previousSeq = asSeq(follower.nextSeq - 1);
    const previousTerm = log.termAt(previousSeq);
    assert(previousTerm !== null, 'the predecessor of what is sent is known');
    const entries = maxEntries === 0 ? [] : log.slice(previousSeq, maxEntries, host.timings.appendBytes);
    follower.nextSeq = asSeq(follower.nextSeq + entries.length);
    follower.lastSentMs = nowMs;
    host.send(follower.member, {
      kind: 'append',
      partition,
      term: this.term,
      dataLossNumber,
      previousSeq,
      previousTerm,
      entries,
      commitSeq,
    });
  }

  /** Returns true when the follower's match grew. */
  onAppendAck(from: Member, message: AppendAckMessage, nowMs: number): boolean {
    const follower = this.get(from);
    if (follower === undefined || message.term !== this.term) return false;
    follower.lastAckMs = nowMs;
    if (message.matched) return this.matched(follower, message.seq, nowMs);
    if (follower.snapshot !== null) return false;
    // What was matched in this term stays matched. A late mismatch may have sent us above it, into another past of the follower,
    // whose hint then points below: back to what is known, or the two would repeat themselves for ever.
    const hint = asSeq(Math.max(message.seq, follower.matchSeq));
    // On its way already; what got lost of it is sent again in time.
    if (follower.probing && follower.nextSeq === hint + 1 && hint === follower.matchSeq) return false;
    this.stepBack(follower, hint, nowMs);
    return false;
  }

  /**
   * Where to try next after a mismatch. A hint below the trimmed part does not yet ask for a snapshot: it skips a whole term, and a
   * member that is counted as a holder always matches at the base; a snapshot would take its acknowledged tail away.
   */
  private stepBack(follower: Progress, hint: Seq, nowMs: number): void {
    const { log } = this.replica;
    const base = log.baseVersion.seq;
    if (hint >= base) {
      follower.nextSeq = asSeq(Math.min(hint, log.last.seq) + 1);
      this.probe(follower, nowMs);
    } else if (follower.triedBase) {
      this.startSnapshot(follower, nowMs);
    } else {
      follower.triedBase = true;
      follower.nextSeq = asSeq(base + 1);
      this.probe(follower, nowMs);
    }
  }

  private matched(follower: Progress, at: Seq, nowMs: number): boolean {
    const grew = at > follower.matchSeq;
    if (grew) follower.matchSeq = at;
    if (follower.nextSeq <= at) follower.nextSeq = asSeq(at + 1);
    follower.probing = false;
    follower.triedBase = false;
    this.pushTo(follower, nowMs);
    return grew;
  }

  /** A beat was answered: lease from its send; `matchSeq` repeats what an append-ack may have lost. */
  onBeatAck(from: Member, sentAtMs: number, matchSeq: Seq, nowMs: number): boolean {
    const follower = this.get(from);
    if (follower === undefined) return false;
    follower.lastAckMs = nowMs;
    if (sentAtMs > follower.leaseSentAtMs) follower.leaseSentAtMs = sentAtMs;
    if (matchSeq <= follower.matchSeq || follower.snapshot !== null) return false;
    return this.matched(follower, matchSeq, nowMs);
  }

  /** Sends again what was not answered in time. */
  resend(nowMs: number): void {
    const { resendMs } = this.replica.host.timings;
    for (const follower of this.list) {
      if (nowMs - follower.lastSentMs < resendMs) continue;
      if (follower.snapshot !== null) this.sendChunk(follower, follower.snapshot, nowMs);
      else if (follower.probing) this.probe(follower, nowMs);
      else if (follower.nextSeq > follower.matchSeq + 1) {
        follower.nextSeq = asSeq(follower.matchSeq + 1);
        this.probeOrPush(follower, nowMs);
      }
    }
  }

  private probeOrPush(follower: Progress, nowMs: number): void {
    if (follower.nextSeq - 1 < this.replica.log.baseVersion.seq) this.startSnapshot(follower, nowMs);
    else this.pushTo(follower, nowMs);
  }

  private startSnapshot(follower: Progress, nowMs: number): void {
    const { store, host, partition } = this.replica;
    const { items, clients } = store.snapshot(nowMs);
    follower.snapshot = {
      snapshotId: this.nextSnapshotId++,
      seq: store.applied.seq,
      seqTerm: store.applied.term,
      items,
      clients,
      offsets: [0],
      nextIndex: 0,
      done: false,
      sentAtMs: nowMs,
    };
    host.notice('info', 'snapshot-started', {
      partition,
      to: memberName(follower.member),
      seq: store.applied.seq,
      keys: items.length,
    });
    this.sendChunk(follower, follower.snapshot, nowMs);
  }

  private sendChunk(follower: Progress, snapshot: SnapshotSender, nowMs: number): void {
    const { partition, dataLossNumber, host } = this.replica;
    const start = snapshot.offsets[snapshot.nextIndex];
    assert(start !== undefined, 'chunks are sent in order');
    let end = start;
    let bytes = 0;
    while (
      end < snapshot.items.length &&
      end - start < host.timings.snapshotItems &&
      bytes < host.timings.snapshotBytes
    ) {
      const item = snapshot.items[end];
      bytes += (item?.key.length ?? 0) + (item?.value.length ?? 0) + 40;
      end += 1;
    }
    snapshot.offsets[snapshot.nextIndex + 1] = end;
    follower.lastSentMs = nowMs;
    host.send(follower.member, {
      kind: 'snapshot-chunk',
      partition,
      term: this.term,
      dataLossNumber,
      seq: snapshot.seq,
      seqTerm: snapshot.seqTerm,
      snapshotId: snapshot.snapshotId,
      index: snapshot.nextIndex,
      last: end >= snapshot.items.length,
      items: snapshot.items.slice(start, end),
      clients: snapshot.nextIndex === 0 ? snapshot.clients : [],
    });
  }

  /** Returns true when the follower's match grew: its snapshot is complete. */
  onSnapshotAck(from: Member, message: SnapshotAckMessage, nowMs: number): boolean {
    const follower = this.get(from);
    if (follower === undefined || message.term !== this.term) return false;
    follower.lastAckMs = nowMs;
    const { snapshot } = follower;
    if (snapshot === null || snapshot.snapshotId !== message.snapshotId) return false;
    const start = snapshot.offsets[message.nextIndex];
    if (start === undefined || (message.nextIndex !== 0 && message.nextIndex <= snapshot.nextIndex)) return false;
    if (message.nextIndex > 0 && start >= snapshot.items.length) {
      follower.snapshot = null;
      follower.nextSeq = asSeq(snapshot.seq + 1);
      this.probe(follower, nowMs);
      return false;
    }
    snapshot.nextIndex = message.nextIndex;
    this.sendChunk(follower, snapshot, nowMs);
    return false;
  }
}
