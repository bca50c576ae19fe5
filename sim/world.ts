/**
 * A cluster on virtual time: the shipped Node class, a seeded network, disks that lose what was not synced, and the power to
 * kill, pause, cut and restart. Carries out effects as the node contract demands: in order, nothing past a `persist` before it is
 * durable. If the world were kinder than a real one, it would prove nothing; if it broke the contract, it would accuse the store.
 */
import { assert, present, unreachable } from '../lib/assert.ts';
import { Prng } from '../lib/prng.ts';
import type { Answer, ClientRequest, ClusterSettings } from '../zaris/model/client-wire.ts';
import { type NodeId, nodeId as asNodeId } from '../zaris/model/ids.ts';
import { foldDiskWrite } from '../zaris/control/raft-disk.ts';
import type { PeerMessage } from '../zaris/model/peer-wire.ts';
import { type DiskState, emptyDisk } from '../zaris/model/raft-wire.ts';
import type { Effect, NodeEvent, Notice } from '../zaris/node/contract.ts';
import { Node } from '../zaris/node/node.ts';
import { type NodeOptions, type NodeParts, soundParts } from '../zaris/node/options.ts';
import { EventHeap } from './event-heap.ts';

/** Distribution of the network; times in ms, chances in [0, 1]. */
export interface NetworkOptions {
  readonly minLatencyMs: number;
  /** Mean of what comes on top, exponential. */
  readonly meanExtraMs: number;
  readonly lossChance: number;
  readonly duplicateChance: number;
  /** Chance that a message overtakes others (else links deliver in order, as TCP does). */
  readonly reorderChance: number;
}

export interface WorldOptions {
  readonly seed: number;
  readonly nodeCount: number;
  readonly network: NetworkOptions;
  /** Time of an fsync: minimum and mean extra, ms. */
  readonly fsyncMs: number;
  readonly meanFsyncExtraMs: number;
  readonly node?: Pick<NodeOptions, 'timings' | 'control'>;
  readonly parts?: NodeParts;
  /** Makes a node; broken stores bring their own. */
  readonly makeNode?: (options: NodeOptions, disk: DiskState, random: Prng, parts: NodeParts) => Node;
}

export const calmNetwork: NetworkOptions = {
  minLatencyMs: 0.2,
  meanExtraMs: 0.3,
  lossChance: 0,
  duplicateChance: 0,
  reorderChance: 0,
};

interface Running {
  readonly node: Node;
  readonly instance: number;
  /** Effects wait here while a persist is under way. */
  queue: Effect[];
  persisting: boolean;
  wakeAtMs: number;
}

export interface SimNode {
  readonly nodeId: NodeId;
  disk: DiskState;
  /** Written but not synced: lost by a crash. */
  running: Running | null;
  paused: boolean;
  /** What arrived while paused: it lies in the sockets. */
  parked: NodeEvent[];
  starts: number;
}

type Agenda =
  | { readonly kind: 'wake'; readonly nodeId: NodeId; readonly instance: number; readonly atMs: number }
  | { readonly kind: 'persisted'; readonly nodeId: NodeId; readonly instance: number; readonly effect: Effect & { kind: 'persist' } }
  | { readonly kind: 'deliver'; readonly to: NodeId; readonly instance: number | null; readonly event: NodeEvent; readonly from: NodeId | null }
  | { readonly kind: 'call'; readonly call: () => void };

/** How long a peer takes to notice a closed connection, ms. */
const closeNoticeMs = 1;

export class World {
  readonly options: WorldOptions;
  readonly nodes = new Map<NodeId, SimNode>();
  readonly random: Prng;
  nowMs = 0;
  /** Called for every answer to a client, at delivery time. */
  onAnswer: (from: NodeId, connection: number, answer: Answer) => void = () => {};
  onNotice: (from: NodeId, notice: Notice) => void = () => {};
  /** A node's process ended: its connections are closed. */
  onStopped: (nodeId: NodeId, instance: number) => void = () => {};
  onSend: (from: NodeId, to: NodeId, message: PeerMessage) => boolean = () => true;
  onCrash: (nodeId: NodeId, error: Error) => void = (_, error) => {
    throw error;
  };
  private readonly agenda = new EventHeap<Agenda>();
  private readonly lastDelivery = new Map<string, number>();
  private readonly cuts = new Set<string>();
  private readonly network: Prng;
  private hash = 0x811c9dc5;
  delivered = 0;

  constructor(options: WorldOptions) {
    this.options = options;
    this.random = new Prng(options.seed);
    this.network = this.random.fork('network');
    for (let index = 1; index <= options.nodeCount; index++) this.addNode(asNodeId(`n${index}`));
  }

  /** Digest of everything that was delivered, in order: equal for equal seeds. */
  get traceHash(): string {
    return (this.hash >>> 0).toString(16).padStart(8, '0');
  }

  private mix(text: string): void {
    let { hash } = this;
    for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
    this.hash = Math.imul(hash ^ ((this.nowMs * 1_000) | 0), 0x01000193);
  }

  addNode(nodeId: NodeId): SimNode {
    const node: SimNode = { nodeId, disk: emptyDisk, running: null, paused: false, parked: [], starts: 0 };
    this.nodes.set(nodeId, node);
    return node;
  }

  node(nodeId: NodeId): SimNode {
    return present(this.nodes.get(nodeId), `node ${nodeId}`);
  }

  at(atMs: number, call: () => void): void {
    this.agenda.push(Math.max(atMs, this.nowMs), { kind: 'call', call });
  }

  // Life and death.

  start(nodeId: NodeId): void {
    const node = this.node(nodeId);
    if (node.running !== null) return;
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
    };
    this.feed(node, { kind: 'start' });
    for (const other of this.nodes.values()) {
      if (other !== node && other.running !== null) this.schedule(other.nodeId, { kind: 'linkUp', nodeId }, closeNoticeMs, null);
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
    this.onStopped(nodeId, instance);
    for (const other of this.nodes.values()) {
      if (other === node || other.running === null || this.isCut(nodeId, other.nodeId)) continue;
      this.schedule(other.nodeId, { kind: 'linkDown', nodeId }, closeNoticeMs, null);
    }
  }

  wipe(nodeId: NodeId): void {
    assert(this.node(nodeId).running === null, 'only a stopped node is wiped');
    this.node(nodeId).disk = emptyDisk;
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
    this.agenda.push(this.nowMs, { kind: 'wake', nodeId, instance: running.instance, atMs: running.wakeAtMs });
    for (const event of parked) this.schedule(nodeId, event, 0.01, running.instance);
  }

  cut(from: string, to: string): void {
    this.cuts.add(`${from}>${to}`);
  }
  heal(from: string, to: string): void {
    this.cuts.delete(`${from}>${to}`);
  }
  healAll(): void {
    this.cuts.clear();
  }
  isCut(from: string, to: string): boolean {
    return this.cuts.has(`${from}>${to}`);
  }

  // Clients.

  /** A request on a connection, delivered after a network delay to the process that accepted it, in the order sent. */
  request(to: NodeId, connection: number, request: ClientRequest, instance: number | null = null): void {
    this.fromClient(to, connection, { kind: 'request', connection, request }, instance);
  }

  /** The client's end of a connection is closed. */
  closeConnection(to: NodeId, connection: number, instance: number): void {
    this.fromClient(to, connection, { kind: 'connectionClosed', connection }, instance);
  }

  private fromClient(to: NodeId, connection: number, event: NodeEvent, instance: number | null): void {
    if (this.isCut('client', to)) return;
    const link = `client ${connection}`;
    const atMs = Math.max(this.nowMs + this.latency(), this.lastDelivery.get(link) ?? 0);
    this.lastDelivery.set(link, atMs);
    this.agenda.push(atMs, { kind: 'deliver', to, instance, event, from: null });
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
    while (this.agenda.nextMs <= untilMs) {
      this.nowMs = Math.max(this.nowMs, this.agenda.nextMs);
      this.happen(present(this.agenda.pop(), 'event'));
      if (done?.() === true) return;
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
  }

  private happen(item: Agenda): void {
    switch (item.kind) {
      case 'call':
        item.call();
        return;
      case 'wake': {
        const node = this.node(item.nodeId);
        if (node.running?.instance !== item.instance || node.paused) return;
        if (node.running.wakeAtMs !== item.atMs) return;
        this.feed(node, { kind: 'tick' });
        return;
      }
      case 'persisted': {
        const node = this.node(item.nodeId);
        if (node.running?.instance !== item.instance) return;
        node.disk = item.effect.writes.reduce(foldDiskWrite, node.disk);
        node.running.persisting = false;
        if (node.paused) node.parked.push({ kind: 'persisted', ticket: item.effect.ticket });
        else this.feed(node, { kind: 'persisted', ticket: item.effect.ticket });
        return;
      }
      case 'deliver': {
        const node = this.node(item.to);
        if (node.running === null) return;
        if (item.instance !== null && node.running.instance !== item.instance) return;
        if (item.from !== null && this.isCut(item.from, item.to)) return;
        if (node.paused) node.parked.push(item.event);
        else this.feed(node, item.event);
        return;
      }
      default:
        unreachable(item);
    }
  }

  private feed(node: SimNode, event: NodeEvent): void {
    const running = present(node.running, 'a running node');
    this.delivered += 1;
    this.mix(`${node.nodeId} ${event.kind}${event.kind === 'message' ? ` ${event.from} ${event.message.kind}` : ''}`);
    let effects: Effect[];
    try {
      effects = running.node.step(event, this.nowMs);
    } catch (error) {
      this.kill(node.nodeId);
      this.onCrash(node.nodeId, error as Error);
      return;
    }
    running.queue.push(...effects);
    this.release(node, running);
  }

  private release(node: SimNode, running: Running): void {
    while (!running.persisting && running.queue.length > 0) {
      const effect = present(running.queue.shift(), 'effect');
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
        const afterMs = this.options.fsyncMs + this.network.exponential(this.options.meanFsyncExtraMs);
        this.agenda.push(this.nowMs + afterMs, { kind: 'persisted', nodeId, instance, effect });
        return;
      }
      case 'send':
        this.send(nodeId, effect.to, effect.message);
        return;
      case 'reply': {
        const { connection, answer } = effect;
        if (this.isCut(nodeId, 'client')) return;
        this.at(this.nowMs + this.latency(), () => this.onAnswer(nodeId, connection, answer));
        return;
      }
      case 'wake':
        running.wakeAtMs = effect.atMs;
        if (effect.atMs !== Number.POSITIVE_INFINITY) {
          this.agenda.push(Math.max(effect.atMs, this.nowMs), { kind: 'wake', nodeId, instance, atMs: effect.atMs });
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
    this.schedule(to, { kind: 'message', from, message }, this.latency(), null);
  }

  /** SIGTERM. */
  shutdown(nodeId: NodeId): void {
    this.schedule(nodeId, { kind: 'shutdown' }, 0, this.instance(nodeId));
  }

  /** One draw of a one-way delay, ms. */
  latency(): number {
    return this.options.network.minLatencyMs + this.network.exponential(this.options.network.meanExtraMs);
  }

  private send(from: NodeId, to: NodeId, message: PeerMessage): void {
    const { network } = this.options;
    if (!this.nodes.has(to) || !this.onSend(from, to, message)) return;
    if (network.lossChance > 0 && this.network.chance(network.lossChance)) return;
    const event: NodeEvent = { kind: 'message', from, message };
    let atMs = this.nowMs + this.latency();
    if (network.reorderChance === 0 || !this.network.chance(network.reorderChance)) {
      const link = `${from}>${to}`;
      atMs = Math.max(atMs, this.lastDelivery.get(link) ?? 0);
      this.lastDelivery.set(link, atMs);
    }
    this.agenda.push(atMs, { kind: 'deliver', to, instance: null, event, from });
    if (network.duplicateChance > 0 && this.network.chance(network.duplicateChance)) {
      const againMs = atMs + this.network.exponential(20);
      this.agenda.push(againMs, { kind: 'deliver', to, instance: null, event, from });
    }
  }

  private schedule(to: NodeId, event: NodeEvent, afterMs: number, instance: number | null): void {
    this.agenda.push(this.nowMs + afterMs, { kind: 'deliver', to, instance, event, from: null });
  }
}

