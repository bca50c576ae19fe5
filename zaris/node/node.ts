/**
 * One node: control plane and data plane behind `step(event, nowMs) → Effect[]` (see contract.ts for what the world owes it).
 *
 * Synchronous and deterministic: same options, disk, seed and events, same effects. The same class runs in a container, as a
 * process and in the simulator; if it read a clock or a socket itself, what the simulator proves would be about another program.
 */
import { unreachable } from '../../lib/assert.ts';
import type { Prng } from '../../lib/prng.ts';
import { type NodeId, hasMember, memberName } from '../model/ids.ts';
import type { PeerMessage } from '../model/peer-wire.ts';
import type { DiskState } from '../model/raft-wire.ts';
import type { ClusterView } from '../model/view.ts';
import type { Change } from '../control/state.ts';
import { clusterView } from './cluster-view.ts';
import type { Effect, NodeEvent } from './contract.ts';
import { ControlPlane } from './control-plane.ts';
import { DataPlane } from './data-plane.ts';
import { EdgeNotice } from './edge-notice.ts';
import { type NodeOptions, type NodeParts, soundParts, withTimings } from './options.ts';
import { Outbox } from './outbox.ts';
import { Router } from './router.ts';

/** What `/partitions` shows of one local copy. */
export interface CopyStatus {
  readonly partition: number;
  readonly role: 'primary' | 'replica' | 'joiner';
  readonly term: number;
  readonly lastSeq: number;
  readonly commitSeq: number;
  readonly appliedSeq: number;
  readonly keyCount: number;
  readonly digest: string;
  /** At a primary: what each follower has confirmed. */
  readonly followers: readonly { readonly member: string; readonly matchSeq: number; readonly catchingUp: boolean }[];
}

/** After the last handoff a stopping node waits at most this long for the new primaries to serve, ms. */
const lingerMs = 1_000;
/** What is overdue is looked at again after this, never in the same instant, ms. */
const shortestWakeMs = 1;

export class Node {
  /** For checkers that look inside; whoever reads here must change nothing. */
  readonly planes: { readonly control: ControlPlane; readonly data: DataPlane };
  private readonly options: NodeOptions;
  private readonly outbox: Outbox;
  private readonly control: ControlPlane;
  private readonly data: DataPlane;
  private readonly router: Router;
  private lastStepMs = Number.NaN;
  private wakeAtMs = Number.NaN;
  private shutdownSinceMs: number | null = null;
  private handedOverMs: number | null = null;
  private lastDrainRequestMs = Number.NEGATIVE_INFINITY;
  private exited = false;
  private steps = 0;

  constructor(options: NodeOptions, disk: DiskState, random: Prng, parts: NodeParts = soundParts) {
    this.options = options;
    this.outbox = new Outbox(options.nodeId);
    this.control = new ControlPlane(options, disk, {
      random: random.fork('raft'),
      outbox: this.outbox,
      onChange: (change, nowMs) => this.onChange(change, nowMs),
      positions: () => this.data.positions(),
      onBrokenInvariant: parts.onBrokenInvariant,
    });
    this.data = new DataPlane(this.control, this.outbox, withTimings(options), parts);
    this.planes = { control: this.control, data: this.data };
    this.router = new Router(this.control, this.data, this.outbox, () => this.view());
  }

  step(event: NodeEvent, nowMs: number): Effect[] {
    return this.stepAll([event], nowMs);
  }

  /** Several events of one turn: logged entries are sent and committed once, at the end. */
  stepAll(events: readonly NodeEvent[], nowMs: number): Effect[] {
    if (this.exited) return [];
    this.steps += 1;
    if (nowMs - this.lastStepMs > this.control.timings.stallMs) {
      // This process stood still: what it did not hear meanwhile it could not have heard.
      this.control.forgiveSilence(nowMs);
      this.data.forgiveSilence(nowMs);
    }
    this.lastStepMs = nowMs;
    for (const event of events) this.handle(event, nowMs);
    this.settle(nowMs);
    this.router.answerPolls(nowMs);
    this.considerExit(nowMs);
    this.wake();
    return this.outbox.take();
  }

  private handle(event: NodeEvent, nowMs: number): void {
    switch (event.kind) {
      case 'start':
        this.control.start(nowMs);
        return;
      case 'tick':
        this.control.tick(nowMs);
        this.data.tick(nowMs);
        return;
      case 'message':
        return this.onMessage(event.from, event.message, nowMs);
      case 'linkDown':
        return this.control.onLinkDown(event.nodeId, nowMs);
      case 'linkUp':
        return this.control.onLinkUp(event.nodeId, nowMs);
      case 'persisted':
        return this.control.onPersisted(event.ticket, nowMs);
      case 'request':
        return this.router.onRequest(event.connection, event.request, nowMs);
      case 'connectionClosed':
        return this.router.onConnectionClosed(event.connection);
      case 'shutdown':
        this.shutdownSinceMs ??= nowMs;
        this.data.isShuttingDown = true;
        return;
      default:
        unreachable(event);
    }
  }

  private onMessage(from: NodeId, message: PeerMessage, nowMs: number): void {
    switch (message.kind) {
      case 'raft':
        return this.control.onRaft(from, message.message, nowMs);
      case 'register':
        return this.control.onRegister(from, message, nowMs);
      case 'beacon':
        return this.control.onBeacon(from, message, nowMs);
      case 'beacon-ack':
        return this.control.onBeaconAck(message.to, message.sentAtMs);
      case 'look':
        return this.outbox.send(from, { kind: 'look-ack', nonce: message.nonce });
      case 'look-ack':
        return this.control.onLookAck(from, message.nonce, nowMs);
      case 'propose':
        return this.control.onPropose(from, message.from, message.commands);
      case 'terms-query':
        return this.control.onTermsQuery(from, message, nowMs);
      case 'terms-answer':
        return this.data.onTermsAnswer(message);
      case 'beat':
        return this.data.onBeat(from, message, nowMs);
      case 'beat-ack':
        return this.data.onBeatAck(from, message, nowMs);
      default:
        return this.data.onData(from, message, nowMs);
    }
  }

  /** Runs both planes until nothing more follows from what happened. */
  private settle(nowMs: number): void {
    for (;;) {
      this.data.flush(nowMs);
      this.control.pump(nowMs);
      this.data.flush(nowMs);
      const own = this.outbox.takeOwn();
      if (own === undefined) return;
      this.onMessage(this.options.nodeId, own, nowMs);
      for (let next = this.outbox.takeOwn(); next !== undefined; next = this.outbox.takeOwn()) {
        this.onMessage(this.options.nodeId, next, nowMs);
      }
    }
  }

  private onChange(change: Change, nowMs: number): void {
    const level = this.control.isLeader ? 'info' : 'debug';
    const { revision } = this.control.state;
    for (const edge of change.edges) this.outbox.add({ kind: 'notice', notice: new EdgeNotice(level, edge, revision) });
    this.data.onChange(change, nowMs);
  }

  private considerExit(nowMs: number): void {
    if (this.control.isReplaced) {
      this.exited = true;
      this.outbox.add({ kind: 'exit', code: 1 });
      return;
    }
    if (this.shutdownSinceMs === null) return;
    if (nowMs - this.lastDrainRequestMs >= this.control.timings.reproposeMs) {
      // Nobody should hand a partition back to a node that stops.
      this.lastDrainRequestMs = nowMs;
      this.control.requestDrain();
      this.settle(nowMs);
    }
    const timedOut = nowMs - this.shutdownSinceMs >= this.control.timings.shutdownMs;
    if (this.data.leads > 0 && !timedOut) return;
    this.handedOverMs ??= nowMs;
    // Whoever took over still needs the control plane, which may be led from here.
    const settling = this.control.state.runtimes.some((runtime) => runtime.primary !== null && !runtime.serving);
    if (settling && !timedOut && nowMs - this.handedOverMs < lingerMs) return;
    this.exited = true;
    this.outbox.add({ kind: 'exit', code: 0 });
  }

  private wake(): void {
    const dueMs = Math.min(this.control.nextDeadlineMs, this.data.nextDeadlineMs, this.router.nextDeadlineMs);
    const atMs = Math.max(dueMs, this.lastStepMs + shortestWakeMs);
    if (atMs === this.wakeAtMs) return;
    this.wakeAtMs = atMs;
    this.outbox.add({ kind: 'wake', atMs });
  }

  // Looks from outside; none of them changes anything.

  view(): ClusterView {
    return clusterView(this.control.state, this.control.raft.committedConfig, this.control.leader);
  }

  identity(): { nodeId: NodeId; incarnation: number | null; controlLeader: NodeId | null; ready: boolean } {
    const { self, leader } = this.control;
    const ready = self !== null && leader !== null && this.control.state.mapVersion > 0;
    return { nodeId: this.options.nodeId, incarnation: self?.incarnation ?? null, controlLeader: leader, ready };
  }

  partitionsReport(): CopyStatus[] {
    const { self } = this.control;
    if (self === null) return [];
    return [...this.data.copies()].map((replica) => {
      const { partition } = replica;
      const primary = this.data.primary(partition);
      const inSync = hasMember(this.control.state.runtime(partition).inSync, self);
      return {
        partition,
        role: primary !== undefined ? 'primary' : inSync ? 'replica' : 'joiner',
        term: replica.term,
        lastSeq: replica.log.last.seq,
        commitSeq: replica.commitSeq,
        appliedSeq: replica.store.applied.seq,
        keyCount: replica.store.keyCount,
        digest: replica.store.digest.toString(16),
        followers: (primary?.progress() ?? []).map(({ member, matchSeq, catchingUp }) => ({
          member: memberName(member),
          matchSeq,
          catchingUp,
        })),
      };
    });
  }

  metrics(): Record<string, number> {
    const totals = this.data.totals();
    return {
      steps: this.steps,
      raft_term: this.control.raft.raftTerm,
      raft_log_entries: this.control.raft.logLength,
      control_revision: this.control.state.revision,
      is_control_leader: this.control.isLeader ? 1 : 0,
      partitions_led: this.data.leads,
      partition_copies: totals.copies,
      keys: totals.keys,
      log_entries: totals.logEntries,
      log_bytes: totals.logBytes,
      once_records: totals.onceRecords,
      pending_entries: totals.pending,
    };
  }
}
