/**
 * The data half of a node: its copies of partitions, the ones it leads, beats and leases between pairs of nodes.
 *
 * Invariants: a role follows the committed runtime and nothing else; a message meant for, or sent by, another incarnation
 * is dropped. If a role were taken from a message, a deposed primary could go on leading.
 */
import type { PartitionCommand, Placement } from '../control/commands.ts';
import type { Change, ControlState, PartitionRuntime } from '../control/state.ts';
import type { Answer, CopyReport } from '../model/client-wire.ts';
import {
  type Incarnation,
  type Member,
  type NodeId,
  type PartitionId,
  type Seq,
  type Term,
  hasMember,
  memberName,
  sameMember,
} from '../model/ids.ts';
import {
  type BeatAckMessage,
  beatAckWidth,
  type BeatMessage,
  beatWidth,
  type DataMessage,
  type ProposeMessage,
  type TermsAnswerMessage,
} from '../model/peer-wire.ts';
import { present, unreachable } from '../../lib/assert.ts';
import type { Outgoing, ReplicaHost } from '../partition/host.ts';
import { Primary } from '../partition/primary.ts';
import { Replica } from '../partition/replica.ts';
import type { ProtocolRules } from '../partition/rules.ts';
import type { Timings } from '../partition/timings.ts';
import type { ControlPlane } from './control-plane.ts';
import type { NodeParts } from './options.ts';
import type { Outbox } from './outbox.ts';

/** Handoffs that one node has open at a time; each holds one partition's writes. */
const handoffBound = 4;
/** A control read that was not answered within this is given up and asked again, ms. */
const confirmTimeoutMs = 500;

/** The message with both incarnations. Spelt out for the two that carry every write: spreading costs more than all the rest of a send. */
function withEnds(message: Outgoing, from: Incarnation, to: Incarnation): DataMessage {
  if (message.kind === 'append') {
    const { kind, partition, term, dataLossNumber, previousSeq, previousTerm, entries, commitSeq } = message;
    return { kind, partition, term, dataLossNumber, previousSeq, previousTerm, entries, commitSeq, from, to };
  }
  if (message.kind === 'append-ack') {
    const { kind, partition, term, matched, seq } = message;
    return { kind, partition, term, matched, seq, from, to };
  }
  return { ...message, from, to };
}

export class DataPlane implements ReplicaHost {
  readonly rules: ProtocolRules;
  readonly timings: Timings;
  private readonly control: ControlPlane;
  private readonly outbox: Outbox;
  private readonly parts: NodeParts;
  private readonly replicas = new Map<PartitionId, Replica>();
  private readonly primaries = new Map<PartitionId, Primary>();
  /** The first `touchedCount` are to be flushed at the end of the turn, each once; the list is filled anew with every turn. */
  private readonly touched: Primary[] = [];
  private touchedCount = 0;
  private proposals: PartitionCommand[] = [];
  private lastBeatMs = Number.NEGATIVE_INFINITY;
  private confirm: {
    readonly queryId: number;
    readonly sentAtMs: number;
    readonly partitions: readonly PartitionId[];
  } | null = null;
  private nextQueryId = 1;
  /** A graceful stop, or a drain by command. */
  isShuttingDown = false;

  constructor(control: ControlPlane, outbox: Outbox, timings: Timings, parts: NodeParts) {
    this.control = control;
    this.outbox = outbox;
    this.timings = timings;
    this.rules = parts.rules;
    this.parts = parts;
  }

  // The host of its replicas.

  get self(): Member {
    return present(this.control.self, 'a registered member');
  }
  private get state(): ControlState {
    return this.control.state;
  }
  get minInSync(): number {
    return present(this.state.settings, 'cluster settings').minInSync;
  }
  get draining(): boolean {
    return this.isShuttingDown || this.state.node(this.self.nodeId)?.draining === true;
  }
  send(to: Member, message: Outgoing): void {
    this.outbox.send(to.nodeId, withEnds(message, this.self.incarnation, to.incarnation));
  }
  reply(connection: number, answer: Answer): void {
    this.outbox.reply(connection, answer);
  }
  propose(command: PartitionCommand): void {
    this.proposals.push(command);
  }
  notice(
    level: 'debug' | 'info' | 'warn' | 'error',
    name: string,
    fields: Record<string, string | number | boolean | null>,
  ): void {
    this.outbox.notice(level, name, { ...fields, member: memberName(this.self) });
  }
  invariant(condition: boolean, why: string): void {
    if (!condition) this.parts.onBrokenInvariant(why);
  }
  runtime(partition: PartitionId): Readonly<PartitionRuntime> {
    return this.state.runtime(partition);
  }
  placement(partition: PartitionId): Placement {
    return this.state.placement(partition);
  }
  current(nodeId: NodeId): Member | null {
    return this.state.current(nodeId);
  }
  isCurrent(member: Member): boolean {
    return this.state.isCurrent(member);
  }
  isAlive(member: Member): boolean {
    return this.state.isAlive(member);
  }
  mayLead(member: Member): boolean {
    const node = this.state.node(member.nodeId);
    return node !== undefined && !node.draining;
  }
  sessionHeld(nowMs: number): boolean {
    return this.control.sessionHeld(nowMs);
  }
  handoffSlot(): boolean {
    let open = 0;
    for (const primary of this.primaries.values()) if (primary.handoffOpen) open += 1;
    return open < handoffBound;
  }

  // Roles.

  primary(partition: PartitionId): Primary | undefined {
    return this.primaries.get(partition);
  }
  replica(partition: PartitionId): Replica | undefined {
    return this.replicas.get(partition);
  }
  get leads(): number {
    return this.primaries.size;
  }

  onChange(change: Change, nowMs: number): void {
    if (!this.isReady) return;
    if (change.membersChanged) {
      for (const runtime of this.state.runtimes) this.reconcile(runtime, nowMs);
    } else {
      for (const partition of change.partitions) this.reconcile(this.state.runtime(partition), nowMs);
    }
  }

  /** Makes this node's role in a partition what the committed runtime says. */
  private reconcile(runtime: Readonly<PartitionRuntime>, nowMs: number): void {
    const { partition } = runtime;
    const { self } = this;
    const leads = runtime.primary !== null && sameMember(runtime.primary, self);
    const inSet = hasMember(runtime.inSync, self) || hasMember(runtime.eligible, self);
    const assigned = this.state.placement(partition).replicas.includes(self.nodeId);
    const primary = this.primaries.get(partition);
    if (primary !== undefined && (!leads || primary.term !== runtime.term)) {
      primary.depose(leads ? 'assigned anew in a later term' : 'another member is the primary now');
      this.primaries.delete(partition);
    }
    if (!leads && !inSet && !assigned) {
      // A copy once made stays as long as the process: a primary that has applied a newer map than this node may count on what it
      // acknowledged, and be about to add it to the in-sync set. Dropped here it would be counted, and empty.
      this.replicas.get(partition)?.adoptTerm(runtime.term);
      return;
    }
    const replica = this.ensureReplica(partition);
    replica.adoptDataLoss(runtime.dataLossNumber);
    replica.adoptTerm(runtime.term);
    if (!leads) return;
    const current = this.primaries.get(partition);
    if (current !== undefined) {
      current.onRuntime(nowMs);
      this.touch(current);
      return;
    }
    if (runtime.serving)
      this.invariant(false, `partition ${partition}: serves in term ${runtime.term} without having proved possession`);
    const assignedNow = new Primary(replica, runtime.term, nowMs);
    this.primaries.set(partition, assignedNow);
    this.touch(assignedNow);
  }

  private ensureReplica(partition: PartitionId): Replica {
    let replica = this.replicas.get(partition);
    if (replica === undefined) {
      replica = new Replica(partition, this);
      this.replicas.set(partition, replica);
    }
    return replica;
  }

  // Messages.

  /** False for a message that names another incarnation at either end. */
  private sender(from: NodeId, ends: { readonly from: number; readonly to: number }): Member | null {
    const { self } = this.control;
    if (self === null || self.incarnation !== ends.to) return null;
    const known = this.state.node(from);
    // A sender newer than what this node has applied is let in; an older incarnation is dead.
    if (known !== undefined && known.incarnation > ends.from) return null;
    return { nodeId: from, incarnation: ends.from } as Member;
  }

  onData(from: NodeId, message: DataMessage, nowMs: number): void {
    const sender = this.sender(from, message);
    if (sender === null) return;
    const { partition } = message;
    const primary = this.primaries.get(partition);
    if (primary !== undefined) this.touch(primary);
    switch (message.kind) {
      case 'append':
        if (this.yields(primary, message.term)) this.ensureReplica(partition).onAppend(sender, message, nowMs);
        return;
      case 'snapshot-chunk':
        if (this.yields(primary, message.term)) this.ensureReplica(partition).onSnapshotChunk(sender, message, nowMs);
        return;
      case 'possession-query':
        if (this.yields(primary, message.term)) this.ensureReplica(partition).onPossessionQuery(sender, message);
        return;
      case 'tail-query':
        if (this.yields(primary, message.term)) this.ensureReplica(partition).onTailQuery(sender, message);
        return;
      case 'append-ack':
        return primary?.onAppendAck(sender, message, nowMs);
      case 'snapshot-ack':
        return primary?.onSnapshotAck(sender, message, nowMs);
      case 'possession-answer':
        return primary?.onPossessionAnswer(sender, message, nowMs);
      case 'tail-answer':
        return primary?.onTailAnswer(sender, message, nowMs);
      default:
        unreachable(message);
    }
  }

  /** A primary of a later term speaks: whoever led here before is deposed. One of an older term is not heard. */
  private yields(primary: Primary | undefined, term: Term): boolean {
    if (primary === undefined) return true;
    if (term === primary.term)
      this.invariant(false, `partition ${primary.replica.partition}: another primary speaks in term ${term}`);
    if (term <= primary.term) return false;
    primary.depose('a later term was seen');
    return true;
  }

  onBeat(from: NodeId, message: BeatMessage, nowMs: number): void {
    const sender = this.sender(from, message);
    if (sender === null) return;
    const answers: number[] = [];
    const { partitions } = message;
    for (let index = 0; index + beatWidth <= partitions.length; index += beatWidth) {
      const partition = partitions[index] as PartitionId;
      const term = partitions[index + 1] as Term;
      const commitSeq = partitions[index + 2] as Seq;
      const digestSeq = partitions[index + 3] as Seq;
      const digest = partitions[index + 4] as number;
      if (!this.yields(this.primaries.get(partition), term)) continue;
      const matched = this.ensureReplica(partition).onBeat(sender, { term, commitSeq, digestSeq, digest }, nowMs);
      if (matched !== null) answers.push(partition, term, matched);
    }
    if (answers.length === 0) return;
    const ends = { from: this.self.incarnation, to: sender.incarnation };
    this.outbox.send(from, { kind: 'beat-ack', ...ends, sentAtMs: message.sentAtMs, partitions: answers });
  }

  onBeatAck(from: NodeId, message: BeatAckMessage, nowMs: number): void {
    const sender = this.sender(from, message);
    if (sender === null) return;
    const { partitions } = message;
    for (let index = 0; index + beatAckWidth <= partitions.length; index += beatAckWidth) {
      const primary = this.primaries.get(partitions[index] as PartitionId);
      if (primary === undefined || primary.term !== partitions[index + 1]) continue;
      primary.onBeatAck(sender, message.sentAtMs, partitions[index + 2] as Seq, nowMs);
      this.touch(primary);
    }
  }

  onTermsAnswer(message: TermsAnswerMessage): void {
    const { confirm } = this;
    if (confirm === null || confirm.queryId !== message.queryId) return;
    if (this.control.self?.incarnation !== message.to) return;
    this.confirm = null;
    confirm.partitions.forEach((partition, index) => {
      const primary = this.primaries.get(partition);
      primary?.desk.gate.confirmed(message.queryId, message.terms[index] === primary.term);
    });
  }

  // Time.

  /** Registered, and with a map to act on. */
  private get isReady(): boolean {
    return this.control.self !== null && this.state.mapVersion > 0;
  }

  /** When something here is due. */
  get nextDeadlineMs(): number {
    if (!this.isReady) return Number.POSITIVE_INFINITY;
    let next = this.lastBeatMs + this.timings.beatMs;
    for (const primary of this.primaries.values()) next = Math.min(next, primary.wakeMs);
    return next;
  }

  tick(nowMs: number): void {
    if (!this.isReady) return;
    const isBeat = nowMs - this.lastBeatMs >= this.timings.beatMs;
    for (const primary of this.primaries.values()) {
      if (!isBeat && primary.wakeMs > nowMs) continue;
      primary.tick(nowMs);
      this.touch(primary);
    }
    if (!isBeat) return;
    this.lastBeatMs = nowMs;
    this.beat(nowMs);
    this.confirmReads(nowMs);
  }

  private beat(nowMs: number): void {
    // A list to be searched: members are few, and making a name of each costs more.
    const beats: { readonly member: Member; readonly partitions: number[] }[] = [];
    for (const primary of this.primaries.values()) {
      const { replica, term } = primary;
      const { applied, digest } = replica.store;
      for (const member of primary.beatTargets()) {
        let beat = beats.find((other) => sameMember(other.member, member));
        if (beat === undefined) {
          beat = { member, partitions: [] };
          beats.push(beat);
        }
        beat.partitions.push(replica.partition, term, replica.commitSeq, applied.seq, digest);
      }
    }
    for (const { member, partitions } of beats) {
      const ends = { from: this.self.incarnation, to: member.incarnation };
      this.outbox.send(member.nodeId, { kind: 'beat', ...ends, sentAtMs: nowMs, partitions });
    }
  }

  /** Reads without a lease: one control read at a time for all of them. */
  private confirmReads(nowMs: number): void {
    const { leader } = this.control;
    if (this.confirm !== null) {
      if (nowMs - this.confirm.sentAtMs < confirmTimeoutMs) return;
      for (const partition of this.confirm.partitions) {
        this.primaries.get(partition)?.desk.gate.abandonConfirm(this.confirm.queryId);
      }
      this.confirm = null;
    }
    if (leader === null) return;
    const before = nowMs - this.timings.confirmAfterMs;
    const partitions: PartitionId[] = [];
    const queryId = this.nextQueryId;
    for (const [partition, primary] of this.primaries) {
      if (!primary.desk.gate.waitsSince(before) || !primary.mayRead(nowMs)) continue;
      primary.desk.gate.beginConfirm(queryId);
      partitions.push(partition);
    }
    if (partitions.length === 0) return;
    this.nextQueryId += 1;
    this.confirm = { queryId, sentAtMs: nowMs, partitions };
    this.outbox.send(leader, { kind: 'terms-query', from: this.self.incarnation, queryId, partitions });
  }

  /** End of a turn: what was logged is sent, what is held commits, proposals go to the leader in one message. */
  flush(nowMs: number): void {
    const { touched } = this;
    // Whoever is touched meanwhile stands here already, or joins at the end.
    for (let index = 0; index < this.touchedCount; index++) (touched[index] as Primary).flush(nowMs);
    for (let index = 0; index < this.touchedCount; index++) (touched[index] as Primary).isTouched = false;
    this.touchedCount = 0;
    if (this.proposals.length === 0) return;
    const { leader } = this.control;
    const commands = this.proposals;
    this.proposals = [];
    if (leader === null) return;
    const message: ProposeMessage = { kind: 'propose', from: this.self.incarnation, commands };
    this.outbox.send(leader, message);
  }

  touch(primary: Primary): void {
    if (primary.isTouched) return;
    primary.isTouched = true;
    this.touched[this.touchedCount++] = primary;
  }

  forgiveSilence(nowMs: number): void {
    for (const primary of this.primaries.values()) primary.forgiveSilence(nowMs);
  }

  // Reports.

  /** Flat triples for a beacon. */
  positions(): number[] {
    const flat: number[] = [];
    for (const [partition, replica] of this.replicas) {
      const { last } = replica.log;
      flat.push(partition, last.term, last.seq);
    }
    return flat;
  }

  copyReport(partition: PartitionId, keys: readonly string[]): CopyReport {
    const replica = this.replicas.get(partition);
    if (replica === undefined) {
      return {
        role: 'none',
        applied: { term: 0, seq: 0 } as CopyReport['applied'],
        commitSeq: 0,
        digest: '0',
        keyCount: 0,
        values: keys.map((key) => ({ key })),
      };
    }
    const inSync = hasMember(this.state.runtime(partition).inSync, this.self);
    const role = this.primaries.has(partition) ? 'primary' : inSync ? 'replica' : 'joiner';
    return {
      role,
      applied: replica.store.applied,
      commitSeq: replica.commitSeq,
      digest: replica.store.digest.toString(16),
      keyCount: replica.store.keyCount,
      values: keys.map((key) => {
        const item = replica.store.get(key);
        return item === undefined ? { key } : { key, value: item.value, version: item.version };
      }),
    };
  }

  /** Totals for metrics. */
  totals(): {
    keys: number;
    logEntries: number;
    logBytes: number;
    onceRecords: number;
    pending: number;
    copies: number;
  } {
    const totals = { keys: 0, logEntries: 0, logBytes: 0, onceRecords: 0, pending: 0, copies: this.replicas.size };
    for (const replica of this.replicas.values()) {
      totals.keys += replica.store.keyCount;
      totals.logEntries += replica.log.length;
      totals.logBytes += replica.log.bytes;
      totals.onceRecords += replica.store.onceRecordCount;
    }
    for (const primary of this.primaries.values()) totals.pending += primary.pendingCount;
    return totals;
  }

  copies(): IterableIterator<Replica> {
    return this.replicas.values();
  }
}
