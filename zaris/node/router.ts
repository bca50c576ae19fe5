/**
 * Takes client requests to whoever answers them: a primary's desk, the view, the administrative commands; refuses the rest.
 * A refusal here is always `NotExecuted`: nothing was logged. Were that said of a logged write, a client would write twice.
 */
import { unreachable } from '../../lib/assert.ts';
import type { AdminCommand, Answer, ClientRequest, ClusterSettings } from '../model/client-wire.ts';
import { type PartitionId, hasMember } from '../model/ids.ts';
import { partitionOf } from '../model/segments.ts';
import type { TransientStatus } from '../model/status.ts';
import { type ClusterView, segmentCount } from '../model/view.ts';
import type { DataRequest } from '../partition/request-desk.ts';
import type { ControlPlane } from './control-plane.ts';
import type { DataPlane } from './data-plane.ts';
import type { Outbox } from './outbox.ts';

/** A long poll waits at most this long, ms. */
const longPollBoundMs = 30_000;
/** Long polls that wait at one node; beyond it they are answered at once. */
const longPollBound = 2_000;

interface LongPoll {
  readonly connection: number;
  readonly id: number;
  readonly newerThan: number;
  readonly untilMs: number;
}

export class Router {
  private readonly control: ControlPlane;
  private readonly data: DataPlane;
  private readonly outbox: Outbox;
  private readonly view: () => ClusterView;
  private polls: LongPoll[] = [];

  constructor(control: ControlPlane, data: DataPlane, outbox: Outbox, view: () => ClusterView) {
    this.control = control;
    this.data = data;
    this.outbox = outbox;
    this.view = view;
  }

  onRequest(connection: number, request: ClientRequest, nowMs: number): void {
    const { id } = request;
    switch (request.op) {
      case 'hello':
      case 'ping': {
        const { self } = this.control;
        return this.outbox.reply(connection, self === null ? { id, status: 'Ok' } : { id, status: 'Ok', member: self });
      }
      case 'view':
        return this.onView(connection, request, nowMs);
      case 'get':
      case 'mutate':
      case 'scan':
        return this.onDataRequest(connection, request, nowMs);
      case 'peek':
        return this.onPeek(connection, request);
      case 'admin':
        return this.onAdmin(connection, id, request.command, nowMs);
      default:
        unreachable(request);
    }
  }

  private onView(connection: number, request: ClientRequest & { op: 'view' }, nowMs: number): void {
    const { id, newerThan, waitMs } = request;
    const isNewer = newerThan === undefined || this.control.state.revision > newerThan;
    if (isNewer || waitMs === undefined || waitMs <= 0 || this.polls.length >= longPollBound) {
      this.outbox.reply(connection, { id, status: 'Ok', view: this.view() });
      return;
    }
    this.polls.push({ connection, id, newerThan, untilMs: nowMs + Math.min(waitMs, longPollBoundMs) });
  }

  get nextDeadlineMs(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { untilMs } of this.polls) if (untilMs < next) next = untilMs;
    return next;
  }

  /** Answers long polls whose time has come, or for which there is news. */
  answerPolls(nowMs: number): void {
    if (this.polls.length === 0) return;
    const { revision } = this.control.state;
    const keep: LongPoll[] = [];
    let view: ClusterView | null = null;
    for (const poll of this.polls) {
      if (revision <= poll.newerThan && nowMs < poll.untilMs) {
        keep.push(poll);
        continue;
      }
      view ??= this.view();
      this.outbox.reply(poll.connection, { id: poll.id, status: 'Ok', view });
    }
    this.polls = keep;
  }

  onConnectionClosed(connection: number): void {
    this.polls = this.polls.filter((poll) => poll.connection !== connection);
  }

  private onDataRequest(connection: number, request: DataRequest, nowMs: number): void {
    const { state } = this.control;
    const { settings } = state;
    const { id, partition } = request;
    if (settings === null || state.mapVersion === 0 || this.control.self === null) {
      this.refuse(connection, id, { status: 'Unavailable', reason: 'this node has no partition map yet' });
      return;
    }
    const wrong = this.wrongRequest(request, settings);
    if (wrong !== null) {
      this.outbox.reply(connection, { id, status: 'InvalidInput', reason: wrong });
      return;
    }
    const primary = this.data.primary(partition);
    if (primary !== undefined && !primary.deposed) {
      primary.desk.submit(connection, request, nowMs);
      this.data.touch(primary);
      return;
    }
    this.refuseForeign(connection, id, partition);
  }

  private wrongRequest(request: DataRequest, settings: ClusterSettings): string | null {
    const { partitionCount } = settings;
    if (request.partition >= partitionCount)
      return `partition ${request.partition} of ${partitionCount} does not exist`;
    if (request.op === 'scan') return null;
    const key = request.op === 'get' ? request.key : request.mutation.key;
    const owner = partitionOf(key, partitionCount);
    return owner === request.partition ? null : `the key belongs to partition ${owner}, not ${request.partition}`;
  }

  private refuseForeign(connection: number, id: number, partition: PartitionId): void {
    const runtime = this.control.state.runtime(partition);
    const { self } = this.data;
    const common = {
      id,
      partition,
      epoch: runtime.epoch,
      member: self,
      ...(runtime.primary === null ? {} : { owner: runtime.primary.nodeId }),
    };
    if (runtime.health === 'Lost') {
      this.outbox.reply(connection, { ...common, status: 'Lost', reason: 'every copy of this partition is gone' });
      return;
    }
    const status: TransientStatus =
      runtime.primary === null
        ? 'Unavailable'
        : runtime.primary.nodeId === self.nodeId
          ? 'OwnershipChanging'
          : hasMember(runtime.inSync, self)
            ? 'ReplicaWriteRejected'
            : 'Moved';
    const reason =
      status === 'Unavailable' ? 'no member can lead this partition now' : 'another member leads this partition';
    this.outbox.reply(connection, { ...common, status, outcome: 'NotExecuted', reason });
  }

  private refuse(connection: number, id: number, answer: Pick<Answer, 'reason'> & { status: TransientStatus }): void {
    this.outbox.reply(connection, { id, outcome: 'NotExecuted', ...answer });
  }

  private onPeek(connection: number, request: ClientRequest & { op: 'peek' }): void {
    const { id, partition, keys } = request;
    const { state, self } = this.control;
    if (self === null || partition >= state.runtimes.length) {
      this.refuse(connection, id, { status: 'Unavailable', reason: 'no such partition here' });
      return;
    }
    const { epoch } = state.runtime(partition);
    this.outbox.reply(connection, {
      id,
      status: 'Ok',
      partition,
      epoch,
      member: self,
      copy: this.data.copyReport(partition, keys),
    });
  }

  private onAdmin(connection: number, id: number, command: AdminCommand, nowMs: number): void {
    if (command.kind === 'bootstrap') {
      const wrong = wrongSettings(command.settings);
      if (wrong !== null) return this.outbox.reply(connection, { id, status: 'InvalidInput', reason: wrong });
      const done = this.control.bootstrap(command.settings, nowMs);
      const answer: Answer = done
        ? { id, status: 'Ok' }
        : { id, status: 'Conflict', reason: 'this node belongs to a cluster already' };
      return this.outbox.reply(connection, answer);
    }
    if (!this.control.isLeader) {
      const owner = this.control.leader === null ? {} : { owner: this.control.leader };
      return this.outbox.reply(connection, {
        id,
        status: 'Moved',
        outcome: 'NotExecuted',
        reason: 'not the control leader',
        ...owner,
      });
    }
    if (command.kind === 'drain') {
      this.control.enqueue({ kind: 'set-leaving', nodeId: command.nodeId, leaving: false, drain: true });
      return this.outbox.reply(connection, { id, status: 'Ok' });
    }
    // The leaving nodes are marked in one entry, the map follows in a later one that sees them marked.
    const unmarked = command.leaving.filter((nodeId) => this.control.state.node(nodeId)?.leaving === false);
    for (const nodeId of unmarked) this.control.enqueue({ kind: 'set-leaving', nodeId, leaving: true, drain: false });
    if (unmarked.length > 0) {
      return this.refuse(connection, id, {
        status: 'Migrating',
        reason: 'the leaving nodes are being marked; ask again',
      });
    }
    const plan = this.control.planMap(nowMs);
    if (plan !== null) this.control.enqueue(plan);
    return this.outbox.reply(connection, {
      id,
      status: 'Ok',
      reason: plan === null ? 'the map is as it should be' : 'a new map is proposed',
    });
  }
}

function wrongSettings(settings: ClusterSettings): string | null {
  const { replicationFactor, minInSync, partitionCount, initialNodes } = settings;
  if (!(replicationFactor >= 1 && replicationFactor <= 5)) return 'the replication factor must be 1 to 5';
  if (!(minInSync >= 1 && minInSync <= replicationFactor)) return 'minInSync must be 1 to the replication factor';
  if (!(partitionCount >= 1 && segmentCount % partitionCount === 0))
    return `the partition count must divide ${segmentCount}`;
  if (!(initialNodes >= replicationFactor)) return 'fewer nodes than copies';
  return null;
}
