/**
 * Connections of one client: at most one per node, dialled when needed, greeted before use, watched by keep-alives, dialled again
 * with backoff. Everything sent on a connection that ends is reported lost exactly once; forgetting one would hang its call until the
 * deadline.
 */
import { assert } from '../../lib/assert.ts';
import type { Prng } from '../../lib/prng.ts';
import type { Answer } from '../model/client-wire.ts';
import type { Member, NodeId } from '../model/ids.ts';
import type { Call } from './call.ts';
import type { CallTarget, ClientEffect, ClientOptions, ClientStatistics } from './contract.ts';
import { IdTable } from './id-table.ts';
import type { Timed, Timers } from './timers.ts';
import type { ViewCache } from './view-cache.ts';

export type LinkState = 'idle' | 'connecting' | 'greeting' | 'ready' | 'backoff';

/** The connection to one node (or to one configured address whose node is not known yet). */
export interface Link extends Timed {
  readonly kind: 'link';
  key: string;
  nodeId: NodeId | null;
  readonly address: string;
  state: LinkState;
  connection: number;
  /** Who answered the greeting. */
  member: Member | null;
  readyAtMs: number;
  lastReceivedMs: number;
  pingsUnanswered: number;
  failures: number;
  helloId: number;
  /** Calls in line; skip those that are no longer queued here. */
  queue: Call[];
  readonly inFlight: IdTable<Call>;
  /** Attempts that ended here without an answer while the connection lives: a late answer still counts. */
  readonly stale: Map<number, Call>;
  /** The view request under way here, or 0. */
  pollId: number;
}

/** What links tell the core. */
export interface LinkOwner {
  linkReady(link: Link, nowMs: number): void;
  linkLost(link: Link, sent: readonly Call[], unsent: readonly Call[], reason: string, nowMs: number): void;
  callAnswered(call: Call, answer: Answer, nowMs: number): void;
  lateAnswer(call: Call, answer: Answer, nowMs: number): void;
  pollAnswered(link: Link, answer: Answer, nowMs: number): void;
  transmit(call: Call, link: Link, nowMs: number): void;
  /** The oldest request of a connection has been under way for long. */
  slowAttempt(nowMs: number): void;
  refused(reason: string, nowMs: number): void;
  /** Whether anything could still need this connection. */
  wants(link: Link): boolean;
}

export interface LinkTableParts {
  readonly options: ClientOptions;
  readonly statistics: ClientStatistics;
  readonly cache: ViewCache;
  readonly timers: Timers<Timed>;
  readonly random: Prng;
  readonly emit: (effect: ClientEffect) => void;
  readonly owner: LinkOwner;
}

/** Late answers remembered per connection; the oldest go first. */
const maxStale = 4096;

/** All links of a client. */
export class LinkTable {
  private readonly parts: LinkTableParts;
  private readonly byKey = new Map<string, Link>();
  /** Those of `byKey` whose node is known. */
  private readonly byNode = new Map<NodeId, Link>();
  /** Addresses whose node is known by now. */
  private readonly adopted = new Map<string, Link>();
  private readonly byConnection = new Map<number, Link>();
  private lastConnection = 0;

  constructor(parts: LinkTableParts) {
    this.parts = parts;
  }

  get all(): Iterable<Link> {
    return this.byKey.values();
  }

  ofNode(nodeId: NodeId): Link | undefined {
    return this.byNode.get(nodeId);
  }

  /** The link to a target, made (not dialled) when there is none. Null for a node that no view names. */
  to(target: CallTarget): Link | null {
    if ('address' in target) return this.make(`address ${target.address}`, null, target.address);
    const known = this.ofNode(target.nodeId);
    if (known !== undefined) return known;
    const address = this.parts.cache.node(target.nodeId)?.clientAddress;
    return address === undefined ? null : this.make(`node ${target.nodeId}`, target.nodeId, address);
  }

  private make(key: string, nodeId: NodeId | null, address: string): Link {
    const known = this.byKey.get(key) ?? this.adopted.get(key);
    if (known !== undefined) return known;
    const link: Link = {
      kind: 'link',
      key,
      nodeId,
      address,
      timerAtMs: Infinity,
      heapIndex: -1,
      state: 'idle',
      connection: 0,
      member: null,
      readyAtMs: 0,
      lastReceivedMs: 0,
      pingsUnanswered: 0,
      failures: 0,
      helloId: 0,
      queue: [],
      inFlight: new IdTable(),
      stale: new Map(),
      pollId: 0,
    };
    this.byKey.set(key, link);
    if (nodeId !== null) this.byNode.set(nodeId, link);
    return link;
  }

  /** Dials an idle link; one in backoff dials when its time comes. */
  ensure(link: Link, nowMs: number): void {
    if (link.state === 'idle') this.dial(link, nowMs);
  }

  private dial(link: Link, nowMs: number): void {
    const { parts } = this;
    link.connection = ++this.lastConnection;
    link.state = 'connecting';
    this.byConnection.set(link.connection, link);
    parts.statistics.connects++;
    parts.timers.arm(link, nowMs + parts.options.deadPeerMs);
    const announced = link.nodeId === null ? undefined : parts.cache.node(link.nodeId)?.clientAddress;
    parts.emit({
      kind: 'connect',
      connection: link.connection,
      nodeId: link.nodeId,
      address: announced ?? link.address,
    });
  }

  connected(connection: number): void {
    const link = this.byConnection.get(connection);
    if (link === undefined) return;
    assert(link.state === 'connecting', 'a connection is made once');
    link.state = 'greeting';
    link.helloId = link.inFlight.reserve();
    const { clientId, token } = this.parts.options;
    const hello = { op: 'hello', id: link.helloId, clientId } as const;
    this.parts.emit({ kind: 'send', connection, request: token === undefined ? hello : { ...hello, token } });
  }

  disconnected(connection: number, reason: string, nowMs: number): void {
    const link = this.byConnection.get(connection);
    if (link !== undefined) this.lose(link, reason, nowMs);
  }

  answers(connection: number, answers: readonly Answer[], nowMs: number): void {
    const link = this.byConnection.get(connection);
    if (link === undefined) return;
    link.lastReceivedMs = nowMs;
    link.pingsUnanswered = 0;
    const { owner } = this.parts;
    for (const answer of answers) {
      const call = link.inFlight.take(answer.id);
      if (call !== undefined) owner.callAnswered(call, answer, nowMs);
      else if (answer.id === link.pollId && answer.id !== 0) {
        link.pollId = 0;
        owner.pollAnswered(link, answer, nowMs);
      } else if (answer.id === link.helloId && link.state === 'greeting') this.greeted(link, answer, nowMs);
      else {
        const late = link.stale.get(answer.id);
        if (late !== undefined) {
          link.stale.delete(answer.id);
          owner.lateAnswer(late, answer, nowMs);
        }
      }
      if (link.connection !== connection) return;
    }
    this.pump(link, nowMs);
  }

  private greeted(link: Link, answer: Answer, nowMs: number): void {
    const { owner, timers, options } = this.parts;
    if (answer.status === 'Unauthorized')
      return owner.refused(answer.reason ?? 'the cluster refused this client', nowMs);
    link.state = 'ready';
    link.readyAtMs = nowMs;
    link.failures = 0;
    link.member = answer.member ?? null;
    if (link.nodeId === null && answer.member !== undefined) this.adopt(link, answer.member.nodeId);
    timers.arm(link, nowMs + options.keepAliveMs);
    owner.linkReady(link, nowMs);
    this.pump(link, nowMs);
  }

  /** An address turned out to be this node: from now on it is the node's link, unless there is one. */
  private adopt(link: Link, nodeId: NodeId): void {
    const key = `node ${nodeId}`;
    if (this.byKey.has(key)) return;
    this.byKey.delete(link.key);
    this.adopted.set(link.key, link);
    link.key = key;
    link.nodeId = nodeId;
    this.byKey.set(key, link);
    this.byNode.set(nodeId, link);
  }

  /** Puts an attempt on the link, or in its line. */
  submit(call: Call, link: Link, nowMs: number): void {
    call.link = link;
    if (link.state === 'ready' && link.queue.length === 0 && link.inFlight.size < this.parts.options.maxInFlight) {
      this.parts.owner.transmit(call, link, nowMs);
      return;
    }
    call.state = 'queued';
    link.queue.push(call);
    this.ensure(link, nowMs);
  }

  /** Sends from the line while there is room. */
  pump(link: Link, nowMs: number): void {
    const { owner, options } = this.parts;
    if (link.queue.length === 0 || link.state !== 'ready') return;
    let taken = 0;
    while (taken < link.queue.length && link.inFlight.size < options.maxInFlight) {
      const call = link.queue[taken++] as Call;
      if (call.state === 'queued' && call.link === link) owner.transmit(call, link, nowMs);
    }
    link.queue = taken === link.queue.length ? [] : link.queue.slice(taken);
  }

  /** The attempt is over for its call, yet its answer may still come on this connection. */
  retire(call: Call): void {
    const { link } = call;
    if (link === null || link.inFlight.take(call.requestId) === undefined) return;
    link.stale.set(call.requestId, call);
    if (link.stale.size > maxStale) {
      const [oldest] = link.stale.keys();
      link.stale.delete(oldest as number);
    }
  }

  timer(link: Link, nowMs: number): void {
    const { options, owner, statistics } = this.parts;
    if (link.state === 'connecting' || link.state === 'greeting') {
      return this.drop(link, `no answer to a new connection within ${options.deadPeerMs} ms`, nowMs);
    }
    if (link.state === 'backoff') {
      link.state = 'idle';
      if (owner.wants(link)) this.dial(link, nowMs);
      return;
    }
    if (link.state !== 'ready') return;
    const silentMs = nowMs - link.lastReceivedMs;
    if (silentMs >= options.deadPeerMs - options.keepAliveMs / 2 && link.pingsUnanswered >= 2) {
      statistics.deadPeers++;
      return this.drop(link, `silent for ${Math.round(silentMs)} ms`, nowMs);
    }
    if (silentMs >= options.keepAliveMs / 2) {
      link.pingsUnanswered++;
      this.parts.emit({
        kind: 'send',
        connection: link.connection,
        request: { op: 'ping', id: link.inFlight.reserve() },
      });
    }
    this.parts.timers.arm(link, nowMs + options.keepAliveMs);
    const [oldest] = link.inFlight.all();
    if (oldest !== undefined && nowMs - oldest.sentAtMs >= options.slowAttemptMs) owner.slowAttempt(nowMs);
  }

  /** Closes a connection of ours and treats it as lost. */
  drop(link: Link, reason: string, nowMs: number): void {
    this.parts.emit({ kind: 'disconnect', connection: link.connection });
    this.lose(link, reason, nowMs);
  }

  private lose(link: Link, reason: string, nowMs: number): void {
    const { options, random, timers, owner } = this.parts;
    this.byConnection.delete(link.connection);
    link.connection = 0;
    link.member = null;
    link.state = 'backoff';
    const backoffMs = Math.min(options.reconnectMinMs * 2 ** Math.min(link.failures, 20), options.reconnectMaxMs);
    link.failures++;
    link.pingsUnanswered = 0;
    timers.arm(link, nowMs + backoffMs * (0.8 + 0.4 * random.float()));
    const sent = link.inFlight.all();
    // A call that left the line and came back stands in it twice; its attempt ends once.
    const unsent = [...new Set(link.queue)].filter((call) => call.state === 'queued' && call.link === link);
    link.inFlight.clear();
    link.stale.clear();
    link.pollId = 0;
    link.queue = [];
    owner.linkLost(link, sent, unsent, reason, nowMs);
  }

  /** Drops every connection without telling anyone; for the end of the client. */
  closeAll(): void {
    for (const link of this.byKey.values()) {
      this.parts.timers.disarm(link);
      if (link.connection !== 0) this.parts.emit({ kind: 'disconnect', connection: link.connection });
      link.connection = 0;
      link.state = 'idle';
    }
    this.byKey.clear();
    this.byNode.clear();
    this.byConnection.clear();
  }
}
