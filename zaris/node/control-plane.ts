/**
 * The control half of a node: Raft, the replicated state, registration, beacons, and, on the leader, detector and controller.
 *
 * Invariants: only the leader proposes; a node acts on committed entries alone; the control session counts from the send of
 * an answered beacon. If a node acted on an uncommitted entry, two members could lead one partition.
 */
import type { Prng } from '../../lib/prng.ts';
import type { ClusterSettings } from '../model/client-wire.ts';
import type { Member, NodeId, PartitionId } from '../model/ids.ts';
import type { DiskState, RaftEntry, RaftMessage, Voter } from '../model/raft-wire.ts';
import type { BeaconMessage, RegisterMessage, TermsQueryMessage } from '../model/peer-wire.ts';
import type { Batch, ControlCommand } from '../control/commands.ts';
import { Controller } from '../control/controller.ts';
import { FailureDetector } from '../control/detector.ts';
import { Raft } from '../control/raft.ts';
import type { RaftReady } from '../control/raft-output.ts';
import { type Change, ControlState } from '../control/state.ts';
import { nextConfigChange } from './raft-membership.ts';
import { type ControlTimings, type NodeOptions, withControlTimings } from './options.ts';
import type { Outbox } from './outbox.ts';

/** Partition ends that a beacon reports. */
export type Positions = () => number[];

interface WaitingTerms {
  readonly from: Member;
  readonly queryId: number;
  readonly partitions: readonly PartitionId[];
}

export class ControlPlane {
  readonly state: ControlState;
  readonly raft: Raft;
  readonly timings: ControlTimings;
  private readonly options: NodeOptions;
  private readonly outbox: Outbox;
  private readonly detector: FailureDetector;
  private readonly controller: Controller;
  private readonly onChange: (change: Change, nowMs: number) => void;
  private readonly positions: Positions;
  private member: Member | null = null;
  private lastBeaconMs = Number.NEGATIVE_INFINITY;
  private lastDecideMs = Number.NEGATIVE_INFINITY;
  /** Send time of the newest beacon that the leader answered. */
  private sessionSentAtMs = Number.NEGATIVE_INFINITY;
  private wasLeader = false;
  private bootstrapSettings: ClusterSettings | null = null;
  private readonly waitingTerms = new Map<number, WaitingTerms>();
  private nextContext = 1;
  private queued: ControlCommand[] = [];
  /** Something happened since the last pump that Raft or the leader may act on; data traffic is none of it. */
  private isDirty = true;
  /** This start was replaced by a later one of the same node. */
  isReplaced = false;

  constructor(
    options: NodeOptions,
    disk: DiskState,
    world: {
      readonly random: Prng;
      readonly outbox: Outbox;
      readonly onChange: (change: Change, nowMs: number) => void;
      readonly positions: Positions;
      readonly onBrokenInvariant: (why: string) => void;
    },
  ) {
    this.state = new ControlState((condition, why) => {
      if (!condition) world.onBrokenInvariant(why);
    });
    this.options = options;
    this.outbox = world.outbox;
    this.onChange = world.onChange;
    this.positions = world.positions;
    this.timings = withControlTimings(options);
    const { electionTimeoutMs, heartbeatMs, snapshotEvery } = this.timings;
    const self: Voter = { nodeId: options.nodeId, diskId: disk.diskId ?? options.newDiskId };
    this.raft = new Raft({ self, random: world.random, electionTimeoutMs, heartbeatMs, snapshotEvery }, disk);
    this.detector = new FailureDetector(this.timings);
    this.controller = new Controller(this.state, this.detector, this.timings);
  }

  /** Null until this start is registered. */
  get self(): Member | null {
    return this.member;
  }
  get leader(): NodeId | null {
    return this.raft.leader;
  }
  get isLeader(): boolean {
    return this.raft.isReadyLeader;
  }

  sessionHeld(nowMs: number): boolean {
    return nowMs - this.sessionSentAtMs < this.timings.controlSessionMs;
  }

  /** Refused (false) where this node belongs to a cluster already. */
  bootstrap(settings: ClusterSettings, nowMs: number): boolean {
    this.isDirty = true;
    if (this.raft.lastIndex !== 0 || this.raft.raftTerm !== 0) return false;
    this.bootstrapSettings = settings;
    this.raft.bootstrap(nowMs);
    return true;
  }

  onRaft(from: NodeId, message: RaftMessage, nowMs: number): void {
    this.isDirty = true;
    this.raft.receive(from, message, nowMs);
  }

  onRegister(from: NodeId, message: RegisterMessage, nowMs: number): void {
    this.isDirty = true;
    if (!this.isLeader) return;
    const known = this.state.node(from);
    if (known?.nonces.includes(message.nonce) === true) return;
    const { diskId, nonce, clientAddress, clusterAddress } = message;
    const repeats = this.queued.some((command) => command.kind === 'register' && command.nonce === nonce);
    if (repeats || this.proposedNonces.get(nonce) === this.raft.raftTerm) return;
    this.proposedNonces.set(nonce, this.raft.raftTerm);
    this.queued.push({ kind: 'register', nodeId: from, diskId, nonce, clientAddress, clusterAddress });
    this.detector.onRegistered(from, nowMs);
  }
  private readonly proposedNonces = new Map<string, number>();

  onBeacon(from: NodeId, message: BeaconMessage, nowMs: number): void {
    if (!this.isLeader) return;
    const member = this.state.current(from);
    if (member === null || member.incarnation !== message.from) return;
    this.detector.onBeacon(from, nowMs);
    this.controller.onPositions(member, message.positions);
    this.outbox.send(from, { kind: 'beacon-ack', to: message.from, sentAtMs: message.sentAtMs });
  }

  onBeaconAck(to: number, sentAtMs: number): void {
    if (this.member?.incarnation !== to) return;
    if (sentAtMs > this.sessionSentAtMs) this.sessionSentAtMs = sentAtMs;
  }

  onLinkDown(nodeId: NodeId, nowMs: number): void {
    this.isDirty = true;
    this.raft.linkDown(nodeId, nowMs);
    const nonce = this.detector.onLinkDown(nodeId, nowMs);
    if (nonce !== null) this.outbox.send(nodeId, { kind: 'look', nonce });
  }

  /** What was told of connections before is taken as old news. */
  private lookAgain(nowMs: number): void {
    for (const { nodeId, nonce } of this.detector.lookAgain(nowMs)) this.outbox.send(nodeId, { kind: 'look', nonce });
  }

  onLinkUp(nodeId: NodeId, nowMs: number): void {
    this.isDirty = true;
    this.raft.linkUp(nodeId, nowMs);
    this.detector.onLinkUp(nodeId, nowMs);
  }

  onLookAck(from: NodeId, nonce: number, nowMs: number): void {
    this.detector.onLookAck(from, nonce, nowMs);
  }

  /** Commands that a member asks for; the leader puts them into its next batch. */
  onPropose(from: NodeId, incarnation: number, commands: readonly unknown[]): void {
    this.isDirty = true;
    if (!this.isLeader || this.state.node(from)?.incarnation !== incarnation) return;
    this.queued.push(...(commands as readonly ControlCommand[]));
  }

  /** This member is about to stop: it asks not to be given partitions any more. */
  requestDrain(): void {
    const { leader, member } = this;
    if (leader === null || member === null || this.state.node(member.nodeId)?.draining === true) return;
    const command: ControlCommand = { kind: 'set-leaving', nodeId: member.nodeId, leaving: false, drain: true };
    this.outbox.send(leader, { kind: 'propose', from: member.incarnation, commands: [command] });
  }

  /** Administrative commands, of this node or through it. */
  enqueue(command: ControlCommand): void {
    this.isDirty = true;
    this.queued.push(command);
  }

  planMap(nowMs: number): ControlCommand | null {
    return this.controller.planMap(nowMs);
  }

  onTermsQuery(from: NodeId, message: TermsQueryMessage, nowMs: number): void {
    this.isDirty = true;
    const member = this.state.current(from);
    if (!this.isLeader || member === null || member.incarnation !== message.from) return;
    const context = this.nextContext++;
    if (!this.raft.requestRead(context, nowMs)) return;
    this.waitingTerms.set(context, { from: member, queryId: message.queryId, partitions: message.partitions });
  }

  start(nowMs: number): void {
    this.isDirty = true;
    this.raft.start(nowMs);
    this.tick(nowMs);
  }

  onPersisted(ticket: number, nowMs: number): void {
    this.isDirty = true;
    this.raft.persisted(ticket, nowMs);
  }

  /** After the process stood still. */
  forgiveSilence(nowMs: number): void {
    this.detector.forgiveSilence(
      this.state.nodes.map((node) => node.nodeId),
      nowMs,
    );
    this.lookAgain(nowMs);
  }

  get nextDeadlineMs(): number {
    const beacon = this.lastBeaconMs + this.timings.beaconMs;
    const look = this.isLeader ? this.detector.nextDeadlineMs(this.lastDecideMs) : Number.POSITIVE_INFINITY;
    return Math.min(this.raft.nextDeadlineMs, beacon, look);
  }

  tick(nowMs: number): void {
    this.isDirty = true;
    this.raft.tick(nowMs);
    if (nowMs - this.lastBeaconMs >= this.timings.beaconMs) {
      this.lastBeaconMs = nowMs;
      if (this.member === null) this.sendRegister();
      else this.sendBeacon(this.member, nowMs);
    }
  }

  private sendRegister(): void {
    const { options } = this;
    const message: RegisterMessage = {
      kind: 'register',
      diskId: this.raft.self.diskId,
      nonce: options.nonce,
      clientAddress: options.clientAddress,
      clusterAddress: options.clusterAddress,
    };
    const targets = new Set<NodeId>([options.nodeId, ...options.peers, ...this.state.nodes.map((node) => node.nodeId)]);
    for (const nodeId of targets) this.outbox.send(nodeId, message);
  }

  private sendBeacon(member: Member, nowMs: number): void {
    const { leader } = this;
    if (leader === null) return;
    this.outbox.send(leader, {
      kind: 'beacon',
      from: member.incarnation,
      sentAtMs: nowMs,
      positions: this.positions(),
    });
  }

  /** The leader's turn: decide, and propose everything that gathered as one entry. */
  lead(nowMs: number): void {
    const isLeader = this.isLeader;
    if (isLeader && !this.wasLeader) {
      this.controller.reset();
      this.proposedNonces.clear();
      this.detector.forgiveSilence(
        this.state.nodes.map((node) => node.nodeId),
        nowMs,
      );
      this.lookAgain(nowMs);
      this.outbox.notice('info', 'control-leader', { nodeId: this.options.nodeId, raftTerm: this.raft.raftTerm });
    }
    this.wasLeader = isLeader;
    if (!isLeader) {
      this.queued = [];
      return;
    }
    if (this.bootstrapSettings !== null) {
      this.queued.push({ kind: 'bootstrap', settings: this.bootstrapSettings });
      this.bootstrapSettings = null;
    }
    const look = this.detector.nextDeadlineMs(this.lastDecideMs) <= nowMs;
    if (look || nowMs - this.lastDecideMs >= this.timings.beaconMs / 2 || this.decideSoon) {
      this.decideSoon = false;
      this.lastDecideMs = nowMs;
      this.detector.onQuorum(this.raft.quorumHeardMs(nowMs));
      this.queued.push(...this.controller.decide(nowMs));
      const change = nextConfigChange(this.state, this.raft, this.timings.maxVoters);
      if (change !== null) this.raft.proposeConfig(change, nowMs);
    }
    if (this.queued.length === 0) return;
    const batch: Batch = { commands: this.queued };
    this.queued = [];
    this.raft.propose(batch, nowMs);
  }
  /** The state just changed under the leader: what follows from it should not wait for the next beat. */
  private decideSoon = false;

  /** Takes what Raft wants done: messages and writes go out, committed entries are applied. */
  pump(nowMs: number): void {
    if (!this.isDirty) return;
    this.isDirty = false;
    for (;;) {
      this.lead(nowMs);
      const ready = this.raft.takeReady();
      if (ready.snapshot !== null) this.applied(this.state.load(ready.snapshot.state), nowMs);
      for (const entry of ready.committed) this.apply(entry, nowMs);
      this.release(ready);
      for (const { context } of ready.reads) this.answerTerms(context);
      for (const context of ready.lostReads) this.waitingTerms.delete(context);
      if (this.raft.compactionDue && this.state.revision > 0) this.raft.compact(this.state.revision, this.state.save());
      const idle =
        ready.persist === null &&
        ready.messages.length === 0 &&
        ready.committed.length === 0 &&
        ready.snapshot === null &&
        !ready.roleChange;
      if (idle) return;
    }
  }

  /**
   * Writes and messages in the order in which they must leave. Entries may go to the followers while the leader's own disk is still at it
   * (Ongaro 2014, §10.2.1): it counts its own copy only once that is durable. Not so where the raftTerm itself is among the writes: a
   * leader that forgot its raftTerm in a crash could use it again for other entries.
   */
  private release({ persist, messages }: RaftReady): void {
    const isTermDurable = persist?.writes.every(({ kind }) => kind === 'entries') !== false;
    const mayPass = (message: RaftMessage): boolean => isTermDurable && message.kind === 'append';
    for (const { to, message } of messages) if (mayPass(message)) this.outbox.send(to, { kind: 'raft', message });
    if (persist !== null) this.outbox.add({ kind: 'persist', ...persist });
    for (const { to, message } of messages) if (!mayPass(message)) this.outbox.send(to, { kind: 'raft', message });
  }

  private apply(entry: RaftEntry, nowMs: number): void {
    const batch = entry.kind === 'command' ? (entry.command as Batch) : null;
    this.applied(this.state.apply(entry.index, batch), nowMs);
  }

  private applied(change: Change, nowMs: number): void {
    if (change.membersChanged) this.refreshSelf();
    this.decideSoon = this.decideSoon || change.membersChanged || change.partitions.size > 0;
    this.onChange(change, nowMs);
  }

  private refreshSelf(): void {
    const record = this.state.node(this.options.nodeId);
    for (const node of this.state.nodes) {
      if (node.nodeId !== this.options.nodeId) {
        this.outbox.add({ kind: 'address', nodeId: node.nodeId, clusterAddress: node.clusterAddress });
      }
    }
    if (record === undefined || !record.nonces.includes(this.options.nonce)) return;
    if (record.nonces.at(-1) === this.options.nonce) {
      this.member = { nodeId: this.options.nodeId, incarnation: record.incarnation };
    } else {
      this.isReplaced = true;
    }
  }

  private answerTerms(context: number): void {
    const waiting = this.waitingTerms.get(context);
    if (waiting === undefined) return;
    this.waitingTerms.delete(context);
    const terms = waiting.partitions.map((partition) => this.state.runtime(partition).term);
    this.outbox.send(waiting.from.nodeId, {
      kind: 'terms-answer',
      to: waiting.from.incarnation,
      queryId: waiting.queryId,
      terms,
    });
  }
}
