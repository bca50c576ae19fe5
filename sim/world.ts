/**
 * A cluster on virtual time: the shipped Node class, a seeded network, disks that lose what was not synced, and the power to
 * kill, pause, cut and restart. Carries out effects as the node contract demands: in order, nothing past a `persist` before it is
 * durable. If the world were kinder than a real one, it would prove nothing; if it broke the contract, it would accuse the store.
 */
import type { LinkRule } from '../chaos/ports.ts';
import { assert, present, unreachable } from '../lib/assert.ts';
import { Prng } from '../lib/prng.ts';
import type { Answer, ClientRequest, ClusterSettings } from '../zaris/model/client-wire.ts';
import { type NodeId, nodeId as asNodeId } from '../zaris/model/ids.ts';
import { foldDiskWrite } from '../zaris/control/raft-disk.ts';
import type { PeerMessage } from '../zaris/model/peer-wire.ts';
import { emptyDisk } from '../zaris/model/raft-wire.ts';
import { type Effect, type NodeEvent, type Notice, isOrdered } from '../zaris/node/contract.ts';
import { Node } from '../zaris/node/node.ts';
import { type NodeOptions, soundParts } from '../zaris/node/options.ts';
import { EventHeap } from './event-heap.ts';
import { LateRequests } from './late-requests.ts';
import { Network } from './network.ts';
import { TraceHash } from './trace-hash.ts';
import type { Running, SimNode, WorldOptions } from './world-node.ts';

type Agenda =
  | { readonly kind: 'wake'; readonly node: SimNode; readonly instance: number; readonly atMs: number }
  | {
      readonly kind: 'persisted';
      readonly node: SimNode;
      readonly instance: number;
      readonly effect: Effect & { kind: 'persist' };
    }
  | {
      readonly kind: 'deliver';
      readonly node: SimNode;
      readonly instance: number | null;
      readonly event: NodeEvent;
      readonly from: NodeId | null;
    }
  | { readonly kind: 'answer'; readonly from: NodeId; readonly connection: number; readonly answer: Answer }
  | { readonly kind: 'call'; readonly call: () => void };

/** How long a peer takes to notice a closed connection, ms. */
const closeNoticeMs = 1;

export class World {
  readonly options: WorldOptions;
  readonly nodes = new Map<NodeId, SimNode>();
  readonly random: Prng;
  readonly network: Network;
  nowMs = 0;
  /** Called for every answer to a client, at delivery time. */
  onAnswer: (from: NodeId, connection: number, answer: Answer) => void = () => {};
  onNotice: (from: NodeId, notice: Notice) => void = () => {};
  /** A node's process ended: its connections are closed. */
  onStopped: (nodeId: NodeId, instance: number) => void = () => {};
  /** False: the message is held back. */
  onSend: (from: NodeId, to: NodeId, message: PeerMessage) => boolean = () => true;
  /** After every step of a node, before its effects are carried out; for checkers and traces. */
  onStep: ((node: SimNode, event: NodeEvent, effects: readonly Effect[]) => void) | null = null;
  /** Refused or reset connections of clients with a node. */
  onReset: (nodeId: NodeId) => void = () => {};
  /** A client's connection hung for a while, and breaks. */
  onStalled: (connection: number) => void = () => {};
  onCrash: (nodeId: NodeId, error: Error) => void = (_, error) => {
    throw error;
  };
  private readonly agenda = new EventHeap<Agenda>();
  private readonly fsync: Prng;
  private readonly trace = new TraceHash();
  /** Null: what outlives its connection is not late. */
  private readonly late: LateRequests | null;

  constructor(options: WorldOptions) {
    this.options = options;
    this.random = new Prng(options.seed);
    this.network = new Network(options.network, this.random.fork('network'));
    this.fsync = this.random.fork('fsync');
    this.late =
      options.network.lateRequestMs > 0
        ? new LateRequests(this, (to, instance, event) =>
            this.deliver({ kind: 'deliver', node: this.node(to), instance, event, from: null }),
          )
        : null;
    for (let index = 1; index <= options.nodeCount; index++) this.addNode(asNodeId(`n${index}`));
  }

  /** Digest of everything that was delivered, in order: equal for equal seeds. */
  get traceHash(): string {
    return this.trace.text;
  }

  /** Events that nodes have taken. */
  get delivered(): number {
    return this.trace.delivered;
  }

  addNode(nodeId: NodeId): SimNode {
    const node: SimNode = {
      nodeId,
      index: this.nodes.size,
      serviceMs: this.options.serviceMs?.[nodeId] ?? 0,
      disk: emptyDisk,
      running: null,
      paused: false,
      parked: [],
      starts: 0,
      removed: false,
    };
    this.nodes.set(nodeId, node);
    return node;
  }

  node(nodeId: NodeId): SimNode {
    return this.nodes.get(nodeId) ?? present<never>(null, `node ${nodeId}`);
  }

  at(atMs: number, call: () => void): void {
    this.agenda.push(Math.max(atMs, this.nowMs), { kind: 'call', call });
  }

  // Life and death.

  start(nodeId: NodeId): void {
    const node = this.node(nodeId);
    if (node.running !== null || node.removed) return;
    node.starts += 1;
    const random = this.random.fork(`${nodeId} start ${node.starts}`);
    const options: NodeOptions = {
      nodeId,
      clientAddress: `${nodeId}:7861`,
      clusterAddress: `${nodeId}:7811`,
      peers: [...this.nodes.keys()].filter((other) => other !== nodeId),
      newDiskId: `disk-${nodeId}-${node.starts}`,
      nonce: `${nodeId}-${node.starts}`,
      ...this.options.node,
    };
    const make = this.options.makeNode ?? ((...args) => new Node(...args));
    node.paused = false;
    node.parked = [];
    node.running = {
      node: make(options, node.disk, random, this.options.parts ?? soundParts),
      instance: node.starts,
      queue: [],
      persisting: false,
      wakeAtMs: Number.POSITIVE_INFINITY,
      busyUntilMs: 0,
    };
    this.feed(node, { kind: 'start' });
    for (const other of this.nodes.values()) {
      if (other !== node && other.running !== null)
        this.schedule(other, { kind: 'linkUp', nodeId }, closeNoticeMs, null);
    }
  }

  /** SIGKILL: memory and unsynced writes are gone, connections close. */
  kill(nodeId: NodeId): void {
    const node = this.node(nodeId);
    if (node.running === null) return;
    const { instance } = node.running;
    node.running = null;
    node.paused = false;
    node.parked = [];
    this.late?.died(nodeId);
    this.onStopped(nodeId, instance);
    for (const other of this.nodes.values()) {
      if (other === node || other.running === null || this.network.isCut(nodeId, other.nodeId)) continue;
      this.schedule(other, { kind: 'linkDown', nodeId }, closeNoticeMs, null);
    }
  }

  wipe(nodeId: NodeId): void {
    assert(this.node(nodeId).running === null, 'only a stopped node is wiped');
    this.node(nodeId).disk = emptyDisk;
  }

  /** Removes a stopped node for good; it can never be started again. */
  remove(nodeId: NodeId): void {
    assert(this.node(nodeId).running === null, 'only a stopped node is removed');
    this.node(nodeId).removed = true;
  }

  pause(nodeId: NodeId): void {
    const node = this.node(nodeId);
    if (node.running !== null) node.paused = true;
  }

  resume(nodeId: NodeId): void {
    const node = this.node(nodeId);
    if (!node.paused) return;
    node.paused = false;
    const { running, parked } = node;
    node.parked = [];
    if (running === null) return;
    // Timers fire before sockets are read, as in an event loop that slept.
    this.agenda.push(this.nowMs, { kind: 'wake', node, instance: running.instance, atMs: running.wakeAtMs });
    for (const event of parked) this.schedule(node, event, 0.01, running.instance);
  }

  cut(from: string, to: string): void {
    this.network.cut(from, to);
  }
  heal(from: string, to: string): void {
    this.network.heal(from, to);
  }
  healAll(): void {
    this.network.healAll();
  }
  isCut(from: string, to: string): boolean {
    return this.network.isCut(from, to);
  }

  /** The complete set of link rules. Connections over a link that is reset from now on break at once. */
  setLinkRules(rules: readonly LinkRule[]): void {
    for (const { from, to } of this.network.setRules(rules)) {
      // Those between nodes are watched by whoever keeps them (peer-connections.ts).
      if (from === 'client') this.onReset(to as NodeId);
      if (to === 'client') this.onReset(from as NodeId);
    }
  }

  /** Tells a node that its connection to a peer broke, or stands again. */
  link(nodeId: NodeId, peer: NodeId, isUp: boolean): void {
    const node = this.node(nodeId);
    if (node.running !== null)
      this.schedule(node, { kind: isUp ? 'linkUp' : 'linkDown', nodeId: peer }, closeNoticeMs, node.running.instance);
  }

  // Clients.

  /** A request on a connection, delivered after a network delay to the process that accepted it, in the order sent. */
  request(to: NodeId, connection: number, request: ClientRequest, instance: number | null = null): void {
    const event: NodeEvent = { kind: 'request', connection, request };
    if (this.late === null || instance === null) this.fromClient(to, connection, event, instance);
    else this.late.send(to, connection, event, instance);
  }

  /** The client's end of a connection is closed. */
  closeConnection(to: NodeId, connection: number, instance: number): void {
    const event: NodeEvent = { kind: 'connectionClosed', connection };
    const isLate = this.late?.close(connection, this.unread(to, connection, instance), event) ?? false;
    if (!isLate) this.fromClient(to, connection, event, instance);
    this.network.forgetStream('client', connection);
  }

  /** Takes what lies unread in a paused node's socket. */
  private unread(to: NodeId, connection: number, instance: number): NodeEvent[] {
    const node = this.node(to);
    if (node.running?.instance !== instance) return [];
    const isOfIt = (event: NodeEvent): boolean => event.kind === 'request' && event.connection === connection;
    const unread = node.parked.filter(isOfIt);
    if (unread.length > 0) node.parked = node.parked.filter((event) => !isOfIt(event));
    return unread;
  }

  private fromClient(to: NodeId, connection: number, event: NodeEvent, instance: number | null): void {
    if (this.network.isCut('client', to)) return;
    const atMs = this.network.streamArrivalMs('client', to, connection, this.nowMs);
    this.agenda.push(atMs, { kind: 'deliver', node: this.node(to), instance, event, from: null });
  }

  /** The process that runs on a node now, or null. */
  instance(nodeId: NodeId): number | null {
    return this.nodes.get(nodeId)?.running?.instance ?? null;
  }

  bootstrap(settings: ClusterSettings): void {
    this.request(asNodeId('n1'), 0, { op: 'admin', id: 1, command: { kind: 'bootstrap', settings } });
  }

  // The run.

  /** Runs until `untilMs`, or until `done` holds after an event. */
  run(untilMs: number, done?: () => boolean): void {
    const { agenda } = this;
    for (let nextMs = agenda.nextMs; nextMs <= untilMs; nextMs = agenda.nextMs) {
      if (nextMs > this.nowMs) this.nowMs = nextMs;
      this.happen(agenda.pop() as Agenda);
      if (done?.() === true) return;
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
  }

  private happen(item: Agenda): void {
    switch (item.kind) {
      case 'call':
        item.call();
        return;
      case 'answer':
        this.onAnswer(item.from, item.connection, item.answer);
        return;
      case 'wake': {
        const { node } = item;
        if (node.running?.instance !== item.instance || node.paused) return;
        if (node.running.wakeAtMs !== item.atMs) return;
        this.feed(node, { kind: 'tick' });
        return;
      }
      case 'persisted': {
        const { node, effect } = item;
        if (node.running?.instance !== item.instance) return;
        node.disk = effect.writes.reduce(foldDiskWrite, node.disk);
        // By way of the node's queue, as all news: one that overtook an earlier one there would tell of writes in the wrong order.
        this.deliver({
          kind: 'deliver',
          node,
          instance: item.instance,
          event: { kind: 'persisted', ticket: effect.ticket },
          from: null,
        });
        return;
      }
      case 'deliver':
        this.deliver(item);
        return;
      default:
        unreachable(item);
    }
  }

  private deliver(item: Agenda & { kind: 'deliver' }): void {
    const { node, instance, event, from } = item;
    const { running } = node;
    if (running === null) return;
    if (instance !== null && running.instance !== instance) return;
    if (from !== null && (this.network.isCut(from, node.nodeId) || this.network.isReset(from, node.nodeId))) return;
    if (node.paused) {
      node.parked.push(event);
      return;
    }
    if (node.serviceMs > 0) {
      if (running.busyUntilMs > this.nowMs) {
        this.agenda.push(running.busyUntilMs, { ...item, from: null, instance: running.instance });
        return;
      }
      running.busyUntilMs = this.nowMs + node.serviceMs;
    }
    this.feed(node, event);
  }

  private feed(node: SimNode, event: NodeEvent): void {
    const running = present(node.running, 'a running node');
    if (event.kind === 'persisted') running.persisting = false;
    this.trace.mix(event, node.index, event.kind === 'message' ? this.node(event.from).index : 0, this.nowMs);
    let effects: Effect[];
    try {
      effects = running.node.step(event, this.nowMs);
    } catch (error) {
      this.kill(node.nodeId);
      this.onCrash(node.nodeId, error as Error);
      return;
    }
    this.onStep?.(node, event, effects);
    const isFree = !running.persisting && running.queue.length > 0;
    this.release(node, running, isFree ? [...running.queue.splice(0), ...effects] : effects);
  }

  /** Carries out effects in order; behind a persist the ordered ones wait for it, the others pass. */
  private release(node: SimNode, running: Running, effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (running.persisting && isOrdered(effect)) {
        running.queue.push(effect);
        continue;
      }
      this.carryOut(node, running, effect);
      if (node.running !== running) return;
    }
  }

  private carryOut(node: SimNode, running: Running, effect: Effect): void {
    const { nodeId } = node;
    const { instance } = running;
    switch (effect.kind) {
      case 'persist': {
        running.persisting = true;
        const afterMs = this.options.fsyncMs + this.fsync.exponential(this.options.meanFsyncExtraMs);
        this.agenda.push(this.nowMs + afterMs, { kind: 'persisted', node, instance, effect });
        return;
      }
      case 'send':
        this.send(nodeId, effect.to, effect.message);
        return;
      case 'reply': {
        const { connection, answer } = effect;
        if (this.network.isCut(nodeId, 'client')) return;
        const atMs = this.network.streamArrivalMs(nodeId, 'client', connection, this.nowMs);
        this.agenda.push(atMs, { kind: 'answer', from: nodeId, connection, answer });
        return;
      }
      case 'wake':
        running.wakeAtMs = effect.atMs;
        if (effect.atMs !== Number.POSITIVE_INFINITY) {
          this.agenda.push(Math.max(effect.atMs, this.nowMs), { kind: 'wake', node, instance, atMs: effect.atMs });
        }
        return;
      case 'notice':
        this.onNotice(nodeId, effect.notice);
        return;
      case 'address':
        return;
      case 'exit':
        this.kill(nodeId);
        return;
      default:
        unreachable(effect);
    }
  }

  /** Delivers a peer message that was held back, now. */
  inject(from: NodeId, to: NodeId, message: PeerMessage): void {
    this.schedule(this.node(to), { kind: 'message', from, message }, this.network.latency(), null);
  }

  /** SIGTERM. */
  shutdown(nodeId: NodeId): void {
    this.schedule(this.node(nodeId), { kind: 'shutdown' }, 0, this.instance(nodeId));
  }

  private send(from: NodeId, to: NodeId, message: PeerMessage): void {
    const node = this.nodes.get(to);
    if (node === undefined || !this.onSend(from, to, message)) return;
    const atMs = this.network.arrivalMs(from, to, this.nowMs);
    if (atMs === null) return;
    const event: NodeEvent = { kind: 'message', from, message };
    this.agenda.push(atMs, { kind: 'deliver', node, instance: null, event, from });
    const againMs = this.network.repeatMs(atMs);
    if (againMs !== null) this.agenda.push(againMs, { kind: 'deliver', node, instance: null, event, from });
  }

  private schedule(node: SimNode, event: NodeEvent, afterMs: number, instance: number | null): void {
    this.agenda.push(this.nowMs + afterMs, { kind: 'deliver', node, instance, event, from: null });
  }
}
