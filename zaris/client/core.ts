/**
 * The client core: calls in, requests out, every call settled exactly once. It routes by the map, retries by {@link decideRetry}, keeps
 * the exactly-once envelope, and knows no clock, socket or chance of its own. Worst outcomes if wrong: a mutation sent again under a new
 * sequence (it runs twice), or one that may have run reported as if it had not.
 */
import { assert, unreachable } from '../../lib/assert.ts';
import type { Prng } from '../../lib/prng.ts';
import type { Answer } from '../model/client-wire.ts';
import type { PartitionId } from '../model/ids.ts';
import { silentConnectionMs } from '../model/limits.ts';
import { isTransient } from '../model/status.ts';
import type { ClusterView } from '../model/view.ts';
import { type Call, isInDoubt, newCall, requestOf, resultOf, targetOf } from './call.ts';
import { CallList } from './call-list.ts';
import {
  type CallStatus,
  type ClientEffect,
  type ClientEvent,
  type ClientOptions,
  type ClientStatistics,
  newStatistics,
} from './contract.ts';
import { type Link, type LinkOwner, LinkTable } from './link.ts';
import { isReleased, neededEpoch, newOwnerOf } from './map-wait.ts';
import { OnceSequences } from './once.ts';
import { type AttemptEnd, decideRetry, RetryBudget } from './retry.ts';
import { type Timed, Timers } from './timers.ts';
import { routeOf, ViewCache } from './view-cache.ts';
import { ViewRefresh } from './view-refresh.ts';
import { WaitingRoom } from './waiting-room.ts';

type TimerOwner = Call | Link | ViewRefresh;

/** One client: one id, one map, one connection per node, any number of calls at once. */
export class ClientCore implements LinkOwner {
  readonly statistics: ClientStatistics = newStatistics();
  private readonly options: ClientOptions;
  private readonly random: Prng;
  private readonly cache = new ViewCache();
  private readonly timers = new Timers<Timed>();
  private readonly links: LinkTable;
  private readonly refresh: ViewRefresh;
  private readonly once: OnceSequences;
  private readonly waiting: WaitingRoom;
  private readonly calls = new CallList();
  private effects: ClientEffect[] = [];
  private announcedWakeMs = Infinity;
  private slowUntilMs = -Infinity;
  private isOpen = false;
  private ending: string | null = null;

  constructor(options: ClientOptions, random: Prng) {
    this.options = options;
    this.random = random.fork('retry');
    this.once = new OnceSequences(options.clientId);
    const { statistics, cache, timers } = this;
    this.waiting = new WaitingRoom({
      timers,
      budget: new RetryBudget(options.retryBurst, options.retriesPerSecond),
      isReleased: (call) => cache.isUsable && isReleased(call, this.partitionOfCall(call), cache, this.links),
      dispatch: (call, nowMs) => this.dispatch(call, nowMs),
    });
    const emit = (effect: ClientEffect): void => void this.effects.push(effect);
    const shared = { options, statistics, cache, timers, emit };
    this.links = new LinkTable({ ...shared, random: random.fork('links'), owner: this });
    const isWanted = (nowMs: number): boolean => this.isRefreshWanted(nowMs);
    this.refresh = new ViewRefresh({ ...shared, links: this.links, random: random.fork('refresh'), isWanted });
  }

  /** The newest known view with a map, or null. */
  get view(): ClusterView | null {
    return this.cache.current;
  }

  /** Why this client was refused for good (or that it was closed), or null while it works. */
  get refusal(): string | null {
    return this.ending;
  }

  /** Takes one event, returns what the world must do, in order. */
  step(event: ClientEvent, nowMs: number): ClientEffect[] {
    switch (event.kind) {
      case 'start':
        this.isOpen = true;
        this.refresh.pump(nowMs);
        break;
      case 'call':
        this.begin(event, nowMs);
        break;
      case 'cancel': {
        const call = this.calls.find(event.callId);
        if (call !== undefined) this.abandon(call, 'Cancelled', nowMs);
        break;
      }
      case 'connected':
        this.links.connected(event.connection);
        break;
      case 'disconnected':
        if (event.refused === true) this.refused(event.reason, nowMs);
        else this.links.disconnected(event.connection, event.reason, nowMs);
        break;
      case 'answers':
        this.links.answers(event.connection, event.answers, nowMs);
        break;
      case 'tick':
        this.announcedWakeMs = Infinity;
        this.runTimers(nowMs);
        break;
      case 'close':
        this.end('Closed', 'the client was closed', nowMs);
        break;
      default:
        unreachable(event);
    }
    return this.takeEffects();
  }

  private takeEffects(): ClientEffect[] {
    const { effects } = this;
    const next = this.timers.nextAtMs;
    if (next < this.announcedWakeMs) {
      this.announcedWakeMs = next;
      effects.push({ kind: 'wake', atMs: next });
    }
    this.effects = [];
    return effects;
  }

  private runTimers(nowMs: number): void {
    for (;;) {
      const due = this.timers.popDue(nowMs) as TimerOwner | null;
      if (due === null) return;
      if (due.kind === 'call') this.callTimer(due, nowMs);
      else if (due.kind === 'link') this.links.timer(due, nowMs);
      else due.pump(nowMs);
    }
  }

  // ---- calls -------------------------------------------------------------------------------------------------------

  private begin(event: Extract<ClientEvent, { kind: 'call' }>, nowMs: number): void {
    const { options } = this;
    const deadlineMs = nowMs + (event.timeoutMs ?? options.requestTimeoutMs);
    const maxAttempts = event.maxAttempts ?? options.retry.maxAttempts;
    const call = newCall(event.callId, event.operation, nowMs, { deadlineMs, maxAttempts });
    this.statistics.calls++;
    const isFull = this.calls.size >= options.maxCalls;
    this.calls.add(call);
    if (this.ending !== null) return this.settle(call, this.isOpen ? 'Unauthorized' : 'Closed', nowMs, this.ending);
    if (isFull) return this.settle(call, 'Overloaded', nowMs, `over ${options.maxCalls} calls at once`);
    if (nowMs >= deadlineMs) return this.settle(call, 'DeadlineExceeded', nowMs);
    this.timers.arm(call, deadlineMs);
    this.dispatch(call, nowMs);
  }

  /** Starts an attempt now, or waits until somebody can be asked. */
  private dispatch(call: Call, nowMs: number): void {
    const { operation } = call;
    const target = targetOf(operation);
    if (target !== null) {
      const link = this.links.to(target);
      if (link === null) return this.settle(call, 'TransportError', nowMs, 'the map names no such node');
      call.attempts++;
      this.statistics.attempts++;
      return this.links.submit(call, link, nowMs);
    }
    if (!this.cache.isUsable) return this.ride(call, 0, call.deadlineMs, nowMs);
    const partition = this.partitionOfCall(call);
    const view = this.cache.partition(partition);
    if (view === undefined) return this.settle(call, 'InvalidInput', nowMs, `there is no partition ${partition}`);
    if (call.sequence > 0 && nowMs - call.firstSentAtMs > silentConnectionMs) {
      return this.settle(call, call.lastEnd ?? 'DeadlineExceeded', nowMs, 'too late to be repeated safely');
    }
    const route = routeOf(view);
    const link = route === null ? null : this.links.to({ nodeId: route.nodeId });
    if ((route === null || link === null) && !call.hasWaitedForOwner) {
      call.hasWaitedForOwner = true;
      return this.ride(call, 0, nowMs + this.options.mapRefreshWaitMs, nowMs);
    }
    this.countAttempt(call, route === null ? null : route.nodeId);
    call.sentTo = route?.member ?? null;
    call.sentEpoch = view.epoch;
    if (link === null) return this.endAttempt(call, 'Unavailable', nowMs, 'no owner is known');
    this.links.submit(call, link, nowMs);
  }

  private partitionOfCall(call: Call): PartitionId {
    if (call.partition === null) {
      const { operation } = call;
      assert(
        operation.kind === 'get' || operation.kind === 'mutate' || operation.kind === 'scan',
        'a routed operation',
      );
      if (operation.kind === 'scan') call.partition = operation.partition;
      else
        call.partition = this.cache.partitionOfKey(operation.kind === 'get' ? operation.key : operation.mutation.key);
    }
    return call.partition;
  }

  private countAttempt(call: Call, nodeId: string | null): void {
    if (call.attempts > 0) this.statistics.retries++;
    if (call.sentTo !== null && nodeId !== null && nodeId !== call.sentTo.nodeId) this.statistics.redirects++;
    call.attempts++;
    call.hasToken = false;
    this.statistics.attempts++;
  }

  /** Writes a call's request to a ready link. */
  transmit(call: Call, link: Link, nowMs: number): void {
    const isMutation = call.operation.kind === 'mutate';
    const partition = call.partition as PartitionId;
    if (isMutation && call.sequence === 0) {
      call.sequence = this.once.open(partition);
      call.firstSentAtMs = nowMs;
    }
    call.sends++;
    call.state = 'inFlight';
    call.sentAtMs = nowMs;
    call.requestId = link.inFlight.add(call);
    const envelope = isMutation ? this.once.envelope(partition, call.sequence) : null;
    this.effects.push({ kind: 'send', connection: link.connection, request: requestOf(call, partition, envelope) });
  }

  callAnswered(call: Call, answer: Answer, nowMs: number): void {
    call.lastAnswer = answer;
    const { status } = answer;
    if (answer.view !== undefined) this.takeView(answer.view, nowMs);
    if (!isTransient(status)) {
      this.count(this.statistics.attemptEnds, status);
      return this.settle(call, status, nowMs, answer.reason);
    }
    if (answer.outcome !== 'NotExecuted') call.doubts++;
    if (this.cache.learnEpoch(answer)) this.refresh.provenOlder();
    this.endAttempt(call, status, nowMs, answer.reason);
  }

  /** An answer to an attempt that had already been given up: a final one settles the call, a clear refusal ends a doubt. */
  lateAnswer(call: Call, answer: Answer, nowMs: number): void {
    if (call.state === 'settled') return;
    if (isTransient(answer.status)) {
      if (answer.outcome === 'NotExecuted') call.doubts--;
      return;
    }
    call.lastAnswer = answer;
    call.reason = answer.reason;
    this.abandon(call, answer.status, nowMs);
  }

  private endAttempt(call: Call, end: AttemptEnd, nowMs: number, reason: string | undefined): void {
    const { options } = this;
    this.count(this.statistics.attemptEnds, end);
    if (end === 'TransportError') this.statistics.transportErrors++;
    call.inARow = end === call.lastEnd ? call.inARow + 1 : 1;
    call.lastEnd = end;
    call.reason = reason;
    call.endedAtMs = nowMs;
    call.link = null;
    call.hasWaitedForOwner = false;
    const { attempts: attempt, inARow, deadlineMs, maxAttempts } = call;
    const question = { end, attempt, inARow, nowMs, deadlineMs, chance: this.random.float() };
    const decision =
      targetOf(call.operation) === null
        ? decideRetry(question, { ...options.retry, maxAttempts })
        : ({ kind: 'settle' } as const);
    if (decision.kind === 'settle') return this.settle(call, end, nowMs, reason);
    call.notBeforeMs = decision.notBeforeMs;
    if (decision.refreshFirst) return this.ride(call, neededEpoch(call, end), nowMs + options.mapRefreshWaitMs, nowMs);
    this.waiting.backOff(call, nowMs);
  }

  /** Waits for the map, and sees to it that somebody is asked for it. */
  private ride(call: Call, needEpoch: number, untilMs: number, nowMs: number): void {
    this.waiting.ride(call, needEpoch, untilMs, nowMs);
    if (call.rides && call.state === 'waiting') this.refresh.pump(nowMs);
  }

  private callTimer(call: Call, nowMs: number): void {
    if (nowMs < call.deadlineMs) {
      assert(call.state === 'waiting', 'only a waiting call has a timer before its deadline');
      return this.waiting.advance(call, nowMs);
    }
    if (call.state === 'waiting' && call.lastEnd !== null) this.settle(call, call.lastEnd, nowMs, call.reason);
    else this.abandon(call, 'DeadlineExceeded', nowMs);
  }

  /** Settles a call whose attempt may be under way; that attempt stays in doubt. */
  private abandon(call: Call, status: CallStatus, nowMs: number): void {
    if (call.state === 'inFlight') {
      call.doubts++;
      this.links.retire(call);
    }
    this.settle(call, status, nowMs, call.reason);
  }

  private settle(call: Call, status: CallStatus, nowMs: number, reason?: string): void {
    assert(call.state !== 'settled', 'a call is settled once');
    const inDoubt = isInDoubt(call, status);
    call.state = 'settled';
    this.calls.remove(call);
    this.waiting.leave(call);
    this.timers.disarm(call);
    if (call.sequence > 0) this.once.settle(call.partition as PartitionId, call.sequence);
    if (inDoubt) this.statistics.inDoubt++;
    this.count(this.statistics.callEnds, status);
    const result = resultOf(call, { status, inDoubt, elapsedMs: nowMs - call.startedAtMs }, reason);
    this.effects.push({ kind: 'settle', callId: call.callId, result });
  }

  private count(counts: Record<string, number>, name: string): void {
    counts[name] = (counts[name] ?? 0) + 1;
  }

  // ---- links -------------------------------------------------------------------------------------------------------

  linkReady(_link: Link, nowMs: number): void {
    this.waiting.release(nowMs);
    this.refresh.pump(nowMs);
  }

  linkLost(link: Link, sent: readonly Call[], unsent: readonly Call[], reason: string, nowMs: number): void {
    this.refresh.linkLost(link);
    for (const call of sent) {
      call.doubts++;
      this.endAttempt(call, 'TransportError', nowMs, reason);
    }
    for (const call of unsent) this.endAttempt(call, 'TransportError', nowMs, reason);
    this.refresh.pump(nowMs);
  }

  pollAnswered(link: Link, answer: Answer, nowMs: number): void {
    const isNews = answer.view !== undefined && this.takeView(answer.view, nowMs);
    this.refresh.answered(link, answer, isNews, nowMs);
  }

  slowAttempt(nowMs: number): void {
    this.slowUntilMs = nowMs + 2 * this.options.keepAliveMs;
    this.refresh.pump(nowMs);
  }

  wants(_link: Link): boolean {
    return this.calls.size > 0;
  }

  private isRefreshWanted(nowMs: number): boolean {
    if (!this.isOpen || this.ending !== null) return false;
    return !this.cache.isUsable || this.waiting.hasRiders || nowMs < this.slowUntilMs;
  }

  /** Who we are was refused: one clear error for everybody, and never another try. */
  refused(reason: string, nowMs: number): void {
    this.end('Unauthorized', reason, nowMs);
    this.isOpen = true;
  }

  private end(status: 'Closed' | 'Unauthorized', reason: string, nowMs: number): void {
    this.isOpen = false;
    this.ending = reason;
    for (const call of this.calls.all()) {
      call.reason = reason;
      this.abandon(call, status, nowMs);
    }
    this.links.closeAll();
    this.timers.disarm(this.refresh);
  }

  // ---- map ---------------------------------------------------------------------------------------------------------

  /** True when the view was news. */
  private takeView(view: ClusterView, nowMs: number): boolean {
    const news = this.cache.apply(view);
    if (news === 'none' || news === 'other-cluster') return false;
    if (news === 'first') this.effects.push({ kind: 'ready', view });
    this.endMovedAttempts(nowMs);
    this.waiting.release(nowMs);
    return true;
  }

  /** Attempts whose owner is no longer the map's end here: the old one may hold them for ever. */
  private endMovedAttempts(nowMs: number): void {
    for (const call of this.calls.all()) {
      const primary = newOwnerOf(call, this.cache);
      if (primary === null) continue;
      if (call.state === 'queued') {
        // Never sent: no attempt was spent.
        call.attempts--;
        this.statistics.attempts--;
        call.link = null;
        this.dispatch(call, nowMs);
        continue;
      }
      this.links.retire(call);
      call.doubts++;
      this.endAttempt(call, 'TransportError', nowMs, `${primary.nodeId} owns partition ${call.partition} now`);
    }
  }
}
