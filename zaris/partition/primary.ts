/**
 * The primary of a partition in one term: proves possession, replicates, commits, keeps the in-sync set, hands over.
 *
 * Invariants: nothing is acknowledged above the commit index; the commit index moves only while serving in the current
 * term, within the control session, over every required member; whatever is answered from a pending entry waits for
 * that entry. If one broke, an acknowledgement would promise what a failover does not keep.
 * Sources: PacificA §2.3, DESIGN §4 (Writes, Logs, Failover).
 */
import type { PartitionRuntime } from '../control/state.ts';
import type { Entry, EntryEffect, OnceRecord } from '../model/entry.ts';
import { type Member, type Seq, type Term, memberName, sameMember, seq as asSeq } from '../model/ids.ts';
import type {
  AppendAckMessage,
  PossessionAnswerMessage,
  SnapshotAckMessage,
  TailAnswerMessage,
} from '../model/peer-wire.ts';
import { Handoff, handoffTarget } from './handoff.ts';
import { InSyncKeeper } from './in-sync.ts';
import { PendingOverlay } from './overlay.ts';
import { Promotion } from './promotion.ts';
import type { Replica } from './replica.ts';
import { Replicator } from './replicator.ts';
import { RequestDesk } from './request-desk.ts';
import type { Match } from './rules.ts';

/** Expired keys and idle clients handled in one sweep. */
const sweepLimit = 64;
const noMatches: readonly Match[] = [];

export class Primary {
  readonly replica: Replica;
  readonly term: Term;
  readonly overlay = new PendingOverlay();
  readonly desk: RequestDesk;
  private readonly promotion: Promotion;
  private replicator: Replicator | null = null;
  private keeper: InSyncKeeper | null = null;
  private handoff: Handoff | null = null;
  private lastServeProposal = { epoch: 0, atMs: Number.NEGATIVE_INFINITY };
  private fullSinceMs = Number.POSITIVE_INFINITY;
  private lastSweepMs = Number.NEGATIVE_INFINITY;
  private isDeposed = false;
  private dirty = false;
  /** The node's mark that it stands among those to be flushed at the end of this turn. */
  isTouched = false;

  constructor(replica: Replica, term: Term, nowMs: number) {
    this.replica = replica;
    this.term = term;
    // Assigned in the past: a primary of a later term has spoken to this copy already, before this node heard of the assignment.
    this.isDeposed = !replica.adoptTerm(term);
    this.desk = new RequestDesk(this);
    this.promotion = new Promotion(replica, term, nowMs);
    this.advancePromotion(nowMs);
  }

  get runtime(): Readonly<PartitionRuntime> {
    return this.replica.host.runtime(this.replica.partition);
  }

  /** Assigned, proved, committed as serving, and in touch with control. */
  isServing(nowMs: number): boolean {
    const { runtime } = this;
    return (
      !this.isDeposed &&
      this.replicator !== null &&
      runtime.serving &&
      runtime.term === this.term &&
      this.replica.term === this.term &&
      this.replica.host.sessionHeld(nowMs)
    );
  }

  mayWrite(nowMs: number): boolean {
    return this.handoff === null && this.isServing(nowMs);
  }

  mayRead(nowMs: number): boolean {
    return (this.handoff === null || !this.handoff.readsStopped) && this.isServing(nowMs);
  }

  leaseHeld(nowMs: number): boolean {
    const { host } = this.replica;
    const { keeper, replicator } = this;
    const { leaseMs } = host.timings;
    let oldestMs = Number.POSITIVE_INFINITY;
    const grants: { readonly member: Member; readonly sentAtMs: number }[] = [];
    for (const member of keeper === null ? [] : keeper.promotable(this.runtime)) {
      const sentAtMs = replicator?.get(member)?.leaseSentAtMs ?? Number.NEGATIVE_INFINITY;
      if (sentAtMs < oldestMs) oldestMs = sentAtMs;
      grants.push({ member, sentAtMs });
    }
    const isHeld = host.rules.leaseHeld({ nowMs, leaseMs, grants });
    if (isHeld && nowMs >= oldestMs + leaseMs)
      host.invariant(false, `partition ${this.replica.partition}: a read outside the lease`);
    return isHeld;
  }

  /** Whom to send beats to: everybody that may hold a lease or learns. */
  beatTargets(): readonly Member[] {
    if (this.replicator === null) return [];
    return this.replicator.all().map((progress) => progress.member);
  }

  /** Progress for reports: who holds what. */
  progress(): readonly { member: Member; matchSeq: Seq; catchingUp: boolean }[] {
    if (this.replicator === null) return [];
    return this.replicator.all().map(({ member, matchSeq, snapshot, probing }) => ({
      member,
      matchSeq,
      catchingUp: snapshot !== null || probing,
    }));
  }

  /** When it wants a tick, apart from the regular one with each beat. */
  get wakeMs(): number {
    return this.replicator === null && !this.isDeposed ? this.promotion.wakeMs : Number.POSITIVE_INFINITY;
  }

  get deposed(): boolean {
    return this.isDeposed;
  }

  get handoffOpen(): boolean {
    return this.handoff !== null;
  }

  private advancePromotion(nowMs: number): void {
    // Its log may follow another primary by now.
    if (this.isDeposed) return;
    this.promotion.advance(nowMs);
    if (!this.promotion.isReady) return;
    const { host, partition, log, commitSeq } = this.replica;
    const { runtime } = this;
    if (this.replicator === null) {
      if (!runtime.released && nowMs < this.replica.leaseGrantedUntilMs(host.self))
        host.invariant(false, `partition ${partition}: ready to serve within a lease that it granted`);
      for (const entry of log.slice(commitSeq, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER))
        this.overlay.add(entry, true);
      this.replicator = new Replicator(this.replica, this.term);
      this.keeper = new InSyncKeeper(this.replica, this.replicator);
      this.replicator.setFollowers(this.keeper.followers(runtime), nowMs);
      this.append({ kind: 'term-start' });
    }
    if (runtime.serving || runtime.term !== this.term) return;
    const last = this.lastServeProposal;
    if (last.epoch === runtime.epoch && nowMs - last.atMs < host.timings.reproposeMs) return;
    this.lastServeProposal = { epoch: runtime.epoch, atMs: nowMs };
    host.propose({ kind: 'serve', partition, expectEpoch: runtime.epoch, member: host.self });
  }

  /** Logs an effect at the end; it is sent and committed by {@link flush}. */
  append(effect: EntryEffect, once?: OnceRecord): Entry {
    const { term } = this;
    const seq = asSeq(this.replica.log.lastSeq + 1);
    const entry: Entry = once === undefined ? { seq, term, effect } : { seq, term, effect, once };
    this.replica.log.append(entry);
    this.overlay.add(entry, false);
    this.dirty = true;
    return entry;
  }

  get pendingCount(): number {
    return this.replica.log.lastSeq - this.replica.commitSeq;
  }

  /** The committed runtime moved and still names this member in this term. */
  onRuntime(nowMs: number): void {
    const { runtime, replicator, keeper } = this;
    if (replicator === null || keeper === null) {
      this.advancePromotion(nowMs);
      return;
    }
    keeper.onRuntime(runtime);
    replicator.setFollowers(keeper.followers(runtime), nowMs);
    const isFull = runtime.inSync.length >= this.replica.host.placement(this.replica.partition).replicas.length;
    if (!isFull) this.fullSinceMs = Number.POSITIVE_INFINITY;
    else if (this.fullSinceMs === Number.POSITIVE_INFINITY) this.fullSinceMs = nowMs;
    this.advanceHandoff(nowMs);
    this.dirty = true;
    this.desk.reconsider(nowMs);
    this.flush(nowMs);
  }

  onAppendAck(from: Member, message: AppendAckMessage, nowMs: number): void {
    if (message.term > this.term) this.depose('a member follows a later term');
    else if (this.replicator?.onAppendAck(from, message, nowMs) === true) this.dirty = true;
  }

  onSnapshotAck(from: Member, message: SnapshotAckMessage, nowMs: number): void {
    this.replicator?.onSnapshotAck(from, message, nowMs);
  }

  onBeatAck(from: Member, sentAtMs: number, matchSeq: Seq, nowMs: number): void {
    if (this.replicator?.onBeatAck(from, sentAtMs, matchSeq, nowMs) === true) this.dirty = true;
    if (this.desk.gate.size > 0 && this.mayRead(nowMs) && this.leaseHeld(nowMs)) this.desk.gate.open();
  }

  onPossessionAnswer(from: Member, message: PossessionAnswerMessage, nowMs: number): void {
    this.promotion.onPossessionAnswer(from, message, nowMs);
    this.advancePromotion(nowMs);
  }

  onTailAnswer(from: Member, message: TailAnswerMessage, nowMs: number): void {
    this.promotion.onTailAnswer(from, message, nowMs);
    this.advancePromotion(nowMs);
  }

  /** Sends what was logged and commits what is held; called once at the end of a turn. */
  flush(nowMs: number): void {
    if (!this.dirty || this.isDeposed) return;
    this.dirty = false;
    this.replicator?.push(nowMs);
    this.tryCommit(nowMs);
  }

  private tryCommit(nowMs: number): void {
    const { replica, runtime, replicator } = this;
    if (replicator === null || replica.log.lastSeq === replica.commitSeq || !this.isServing(nowMs)) return;
    const { host } = replica;
    const joiner = this.keeper?.joiner ?? null;
    const inSync: Match[] = [];
    for (const member of runtime.inSync) inSync.push(this.matchOf(member, replicator, nowMs));
    const joiners = joiner === null ? noMatches : [this.matchOf(joiner, replicator, nowMs)];
    const upTo = host.rules.commitIndex({
      commitSeq: replica.commitSeq,
      lastSeq: replica.log.lastSeq,
      self: host.self,
      inSync,
      joiners,
      minInSync: host.minInSync,
    });
    if (upTo <= replica.commitSeq) return;
    this.checkHeld(upTo, inSync, joiners);
    const applied: Entry[] = [];
    replica.commitTo(upTo, nowMs, applied);
    for (const entry of applied) {
      this.overlay.settle(entry);
      this.desk.onCommitted(entry);
    }
    this.desk.afterCommit(nowMs);
    this.advanceHandoff(nowMs);
    replica.trim(replicator.heldFrom());
  }

  private matchOf(member: Member, replicator: Replicator, nowMs: number): Match {
    const { host, log } = this.replica;
    if (sameMember(member, host.self)) return { member, seq: log.lastSeq, silentMs: 0 };
    const progress = replicator.get(member);
    if (progress === undefined) return { member, seq: asSeq(0), silentMs: Number.POSITIVE_INFINITY };
    return { member, seq: progress.matchSeq, silentMs: nowMs - progress.lastAckMs };
  }

  /** What is about to be acknowledged is in the log of everybody who could be promoted, and of enough of them. */
  private checkHeld(upTo: Seq, inSync: readonly Match[], joiners: readonly Match[]): void {
    const { host, partition } = this.replica;
    for (const { member, seq } of inSync) {
      if (seq < upTo)
        host.invariant(false, `partition ${partition}: commits ${upTo}, in sync ${memberName(member)} holds ${seq}`);
    }
    for (const { member, seq } of joiners) {
      if (seq < upTo)
        host.invariant(false, `partition ${partition}: commits ${upTo}, joiner ${memberName(member)} holds ${seq}`);
    }
    if (inSync.length < host.minInSync)
      host.invariant(false, `partition ${partition}: commits ${upTo} with ${inSync.length} in sync`);
  }

  tick(nowMs: number): void {
    if (this.isDeposed) return;
    this.advancePromotion(nowMs);
    const { replicator, keeper } = this;
    if (replicator === null || keeper === null) {
      this.desk.tick(nowMs);
      return;
    }
    replicator.resend(nowMs);
    if (this.isServing(nowMs)) {
      keeper.tick(this.runtime, nowMs);
      this.sweep(nowMs);
      this.considerHandoff(nowMs);
      this.dirty = true;
    }
    this.advanceHandoff(nowMs);
    this.desk.tick(nowMs);
    this.flush(nowMs);
  }

  forgiveSilence(nowMs: number): void {
    this.replicator?.forgiveSilence(nowMs);
  }

  /** Time to live and idle clients: both leave by logged entries, so every copy agrees. */
  private sweep(nowMs: number): void {
    const { store, host } = this.replica;
    if (nowMs - this.lastSweepMs < host.timings.sweepMs || !this.mayWrite(nowMs)) return;
    this.lastSweepMs = nowMs;
    if (this.runtime.inSync.length < host.minInSync) return;
    for (const key of store.expired(nowMs, sweepLimit)) {
      if (this.overlay.key(key) === undefined) this.append({ kind: 'delete', key });
    }
    const clientIds = store.idleClients(nowMs, host.timings.clientIdleMs, sweepLimit);
    if (clientIds.length > 0 && this.pendingCount === 0) this.append({ kind: 'expire-clients', clientIds });
  }

  private considerHandoff(nowMs: number): void {
    const { host } = this.replica;
    if (this.handoff !== null || this.keeper?.joiner !== null) return;
    const to = handoffTarget(this.replica, this.runtime, this.fullSinceMs, nowMs);
    if (to === null || !host.handoffSlot()) return;
    this.handoff = new Handoff(this.replica, to, host.draining ? 'drain' : 'preferred primary', nowMs);
    this.advanceHandoff(nowMs);
  }

  private advanceHandoff(nowMs: number): void {
    const { handoff, replica } = this;
    if (handoff === null || this.isDeposed) return;
    const { lastSeq } = replica.log;
    const drained = lastSeq === replica.commitSeq && this.replicator?.get(handoff.to)?.matchSeq === lastSeq;
    const step = handoff.advance(this.runtime, drained, nowMs);
    if (step.kind === 'resumed') {
      this.handoff = null;
      // A hold-down before the next try, so that a target that cannot follow does not stall writes again and again.
      this.fullSinceMs = nowMs;
      this.desk.reconsider(nowMs);
    }
  }

  /** No longer the primary (a committed entry says so, or a later term was seen): everything open gets an honest answer. */
  depose(why: string): void {
    if (this.isDeposed) return;
    this.isDeposed = true;
    this.handoff = null;
    // Nobody follows it any more, whatever of theirs is still on its way. Its copy follows a later primary: beats and appends of the old
    // term would carry that one's commit index and entries to members that still hold other ones.
    this.replicator = null;
    this.keeper = null;
    this.desk.refuseAll(why);
  }
}
