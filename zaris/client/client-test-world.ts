/**
 * A small cluster on virtual time for tests of the client core: real routing, epochs, exactly-once records and long polls; faults by
 * hand (kill, freeze, drop answers). It knows nothing of replication: committed state survives every failover by decree.
 */
import { assert, unreachable } from '../../lib/assert.ts';
import { Prng } from '../../lib/prng.ts';
import type { Answer, ClientRequest } from '../model/client-wire.ts';
import {
  type Epoch,
  epoch,
  incarnation,
  type NodeId,
  nodeId,
  partitionId,
  seq,
  term,
  type Version,
} from '../model/ids.ts';
import type { ClusterView, PartitionView } from '../model/view.ts';
import type { CallOperation, CallResult, ClientEffect, ClientEvent, ClientOptions } from './contract.ts';
import { defaultClientOptions } from './contract.ts';
import { ClientCore } from './core.ts';

interface FakeNode {
  readonly id: NodeId;
  /** `frozen`: connections stand and nothing moves. */
  state: 'up' | 'dead' | 'frozen';
  /** What the node believes; lags behind the truth while `isStale`. */
  view: ClusterView;
  isStale: boolean;
  requests: number;
}

interface Stored {
  value: string | null;
  version: Version;
}

interface Connection {
  readonly client: FakeClient;
  readonly node: FakeNode;
  isOpen: boolean;
  /** Answers wait here while the node is frozen. */
  readonly parked: ClientRequest[];
}

interface FakeClient {
  readonly core: ClientCore;
  readonly connections: Map<number, Connection>;
  wakeSerial: number;
}

export interface Settled {
  readonly result: CallResult;
  readonly atMs: number;
}

export type Rule = (request: ClientRequest, node: string) => Omit<Answer, 'id'> | 'ignore' | null;

export class ClientTestWorld {
  nowMs = 0;
  latencyMs = 0.5;
  /** Chance that an answer to a mutation never arrives; the connection then dies a moment later. */
  dropChance = 0;
  /** Overrides what a node would answer. */
  rule: Rule = () => null;
  /** View requests by client serial, with their times. */
  readonly viewRequests: number[] = [];
  readonly settled = new Map<number, Settled>();
  readonly sent: { readonly atMs: number; readonly node: string; readonly request: ClientRequest }[] = [];
  isRecording = false;
  readonly nodes = new Map<string, FakeNode>();
  private readonly random: Prng;
  private readonly heap: { atMs: number; serial: number; run: () => void }[] = [];
  private serial = 0;
  private truth: ClusterView;
  private readonly stored = new Map<string, Stored>();
  private readonly records = new Map<string, Answer>();
  private readonly watermarks = new Map<string, number>();
  private seqCounter = 0;
  private readonly onSettle = new Map<number, (result: CallResult) => void>();
  private waitingPolls: { connection: Connection; id: number; newerThan: number }[] = [];

  constructor(seed: number, nodeCount = 3, partitionCount = 12) {
    this.random = new Prng(seed);
    const ids = Array.from({ length: nodeCount }, (_, index) => nodeId(`n${index + 1}`));
    this.truth = {
      revision: 1,
      clusterId: 'c',
      mapVersion: 1,
      replicationFactor: 3,
      minInSync: 2,
      partitionCount,
      controlLeader: ids[0] as NodeId,
      voters: ids.map((id) => ({ nodeId: id, diskId: `disk of ${id}` })),
      nodes: ids.map((id) => ({
        nodeId: id,
        incarnation: 1,
        clientAddress: `${id}:7861`,
        alive: true,
        voter: true,
        leaving: false,
      })),
      partitions: Array.from({ length: partitionCount }, (_, index) => ({
        partition: partitionId(index),
        preferredPrimary: ids[index % nodeCount] as NodeId,
        replicas: ids,
        epoch: epoch(1),
        term: term(1),
        primary: { nodeId: ids[index % nodeCount] as NodeId, incarnation: incarnation(1) },
        inSync: [],
        eligible: [],
        health: 'Healthy',
        serving: true,
        dataLossNumber: 0,
      })),
    };
    for (const id of ids) this.nodes.set(id, { id, state: 'up', view: this.truth, isStale: false, requests: 0 });
  }

  // ---- time ------------------------------------------------------------------------------------------------------

  at(atMs: number, run: () => void): void {
    this.heap.push({ atMs, serial: ++this.serial, run });
    let index = this.heap.length - 1;
    while (index > 0) {
      const up = (index - 1) >> 1;
      if (!this.isBefore(index, up)) break;
      this.swap(index, up);
      index = up;
    }
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.nowMs + delayMs, run);
  }

  private isBefore(a: number, b: number): boolean {
    const left = this.heap[a] as { atMs: number; serial: number };
    const right = this.heap[b] as { atMs: number; serial: number };
    return left.atMs < right.atMs || (left.atMs === right.atMs && left.serial < right.serial);
  }

  private swap(a: number, b: number): void {
    const held = this.heap[a] as (typeof this.heap)[number];
    this.heap[a] = this.heap[b] as (typeof this.heap)[number];
    this.heap[b] = held;
  }

  private popNext(): { atMs: number; run: () => void } {
    const first = this.heap[0] as (typeof this.heap)[number];
    const last = this.heap.pop() as (typeof this.heap)[number];
    if (this.heap.length > 0) {
      this.heap[0] = last;
      let index = 0;
      for (;;) {
        let down = 2 * index + 1;
        if (down >= this.heap.length) break;
        if (down + 1 < this.heap.length && this.isBefore(down + 1, down)) down++;
        if (!this.isBefore(down, index)) break;
        this.swap(index, down);
        index = down;
      }
    }
    return first;
  }

  runUntil(untilMs: number): void {
    while (this.heap.length > 0 && (this.heap[0] as { atMs: number }).atMs <= untilMs) {
      const next = this.popNext();
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
  }

  // ---- clients ---------------------------------------------------------------------------------------------------

  client(name: string, options: Partial<ClientOptions> = {}): FakeClient {
    const full = { ...defaultClientOptions, clientId: name, seeds: ['n1:7861', 'n2:7861'], ...options };
    const client = { core: new ClientCore(full, this.random.fork(name)), connections: new Map(), wakeSerial: 0 };
    this.feed(client, { kind: 'start' });
    return client;
  }

  private lastCallId = 0;

  call(
    client: FakeClient,
    operation: CallOperation,
    options: { timeoutMs?: number; maxAttempts?: number; onSettled?: (result: CallResult) => void } = {},
  ): number {
    const { onSettled, ...bounds } = options;
    const callId = ++this.lastCallId;
    if (onSettled !== undefined) this.onSettle.set(callId, onSettled);
    this.feed(client, { kind: 'call', callId, operation, ...bounds });
    return callId;
  }

  feed(client: FakeClient, event: ClientEvent): void {
    for (const effect of client.core.step(event, this.nowMs)) this.execute(client, effect);
  }

  private execute(client: FakeClient, effect: ClientEffect): void {
    switch (effect.kind) {
      case 'connect':
        return this.connect(client, effect.connection, effect.address);
      case 'disconnect': {
        const connection = client.connections.get(effect.connection);
        if (connection !== undefined) connection.isOpen = false;
        client.connections.delete(effect.connection);
        return;
      }
      case 'send': {
        const connection = client.connections.get(effect.connection);
        assert(connection !== undefined, 'sends go to open connections');
        if (this.isRecording) this.sent.push({ atMs: this.nowMs, node: connection.node.id, request: effect.request });
        this.after(this.latencyMs, () => this.arrive(connection, effect.request));
        return;
      }
      case 'settle': {
        assert(!this.settled.has(effect.callId), 'a call is settled once');
        this.settled.set(effect.callId, { result: effect.result, atMs: this.nowMs });
        const then = this.onSettle.get(effect.callId);
        this.onSettle.delete(effect.callId);
        if (then !== undefined) this.after(0, () => then(effect.result));
        return;
      }
      case 'wake': {
        const serial = ++client.wakeSerial;
        this.at(Math.max(effect.atMs, this.nowMs), () => {
          if (serial === client.wakeSerial) this.feed(client, { kind: 'tick' });
        });
        return;
      }
      case 'ready':
        return;
      default:
        unreachable(effect);
    }
  }

  private connect(client: FakeClient, id: number, address: string): void {
    const node = this.nodes.get(address.split(':')[0] as string);
    assert(node !== undefined, 'dials only known addresses');
    const connection: Connection = { client, node, isOpen: true, parked: [] };
    client.connections.set(id, connection);
    this.after(this.latencyMs, () => {
      if (!connection.isOpen) return;
      if (node.state === 'dead') this.close(client, id, 'refused');
      else this.feed(client, { kind: 'connected', connection: id });
    });
  }

  private close(client: FakeClient, id: number, reason: string): void {
    const connection = client.connections.get(id);
    if (connection === undefined) return;
    connection.isOpen = false;
    client.connections.delete(id);
    this.feed(client, { kind: 'disconnected', connection: id, reason });
  }

  private idOf(connection: Connection): number {
    for (const [id, other] of connection.client.connections) if (other === connection) return id;
    return -1;
  }

  // ---- nodes -----------------------------------------------------------------------------------------------------

  get view(): ClusterView {
    return this.truth;
  }

  /** Everything the node had in its connections is gone; new ones are refused. */
  kill(name: string, clients: readonly FakeClient[]): void {
    (this.nodes.get(name) as FakeNode).state = 'dead';
    for (const client of clients) {
      for (const [id, connection] of [...client.connections]) {
        if (connection.node.id === name) this.after(this.latencyMs, () => this.close(client, id, 'reset by peer'));
      }
    }
  }

  setState(name: string, state: FakeNode['state']): void {
    const node = this.nodes.get(name) as FakeNode;
    node.state = state;
  }

  /** Resets every connection to a node that lives on. */
  reset(name: string, client: FakeClient): void {
    for (const [id, connection] of [...client.connections])
      if (connection.node.id === name) this.close(client, id, 'reset by peer');
  }

  /** Commits a change of partitions: epoch + 1 each, revision + 1; every node that is not stale learns it. */
  change(partitions: readonly number[], edit: (partition: PartitionView) => Partial<PartitionView>): void {
    const set = new Set(partitions);
    this.truth = {
      ...this.truth,
      revision: this.truth.revision + 1,
      partitions: this.truth.partitions.map((partition) =>
        set.has(partition.partition)
          ? { ...partition, epoch: (partition.epoch + 1) as Epoch, ...edit(partition) }
          : partition,
      ),
    };
    for (const node of this.nodes.values()) if (!node.isStale) node.view = this.truth;
    const polls = this.waitingPolls;
    this.waitingPolls = [];
    for (const poll of polls) this.answerView(poll.connection, poll.id, poll.newerThan);
  }

  partitionsOf(name: string): number[] {
    return this.truth.partitions
      .filter((partition) => partition.primary?.nodeId === name)
      .map((partition) => partition.partition);
  }

  moveAll(from: string, to: string): void {
    this.change(this.partitionsOf(from), (partition) => ({
      primary: { nodeId: nodeId(to), incarnation: incarnation(1) },
      term: term(partition.epoch + 1),
      serving: true,
    }));
  }

  valueOf(key: string): string | null {
    return this.stored.get(key)?.value ?? null;
  }

  private arrive(connection: Connection, request: ClientRequest): void {
    const { node } = connection;
    if (!connection.isOpen || node.state === 'dead') return;
    if (node.state === 'frozen') {
      connection.parked.push(request);
      return;
    }
    node.requests++;
    const ruled = this.rule(request, node.id);
    if (ruled === 'ignore') return;
    if (ruled !== null) return this.reply(connection, { ...ruled, id: request.id });
    const member = { nodeId: node.id, incarnation: incarnation(1) };
    switch (request.op) {
      case 'hello':
      case 'ping':
        return this.reply(connection, { id: request.id, status: 'Ok', member });
      case 'view':
        this.viewRequests.push(this.nowMs);
        this.answerView(connection, request.id, request.newerThan ?? -1);
        if (request.waitMs !== undefined) this.after(request.waitMs, () => this.endPoll(connection, request.id));
        return;
      case 'get':
      case 'mutate':
        return this.serve(connection, request);
      case 'scan':
      case 'peek':
      case 'admin':
        return this.reply(connection, { id: request.id, status: 'InvalidInput' });
      default:
        unreachable(request);
    }
  }

  private answerView(connection: Connection, id: number, newerThan: number): void {
    if (connection.node.view.revision > newerThan)
      this.reply(connection, { id, status: 'Ok', view: connection.node.view });
    else this.waitingPolls.push({ connection, id, newerThan });
  }

  private endPoll(connection: Connection, id: number): void {
    const index = this.waitingPolls.findIndex((poll) => poll.connection === connection && poll.id === id);
    if (index < 0) return;
    this.waitingPolls.splice(index, 1);
    if (connection.isOpen && connection.node.state === 'up')
      this.reply(connection, { id, status: 'Ok', view: connection.node.view });
  }

  private reply(connection: Connection, answer: Answer): void {
    this.after(this.latencyMs, () => {
      if (!connection.isOpen || connection.node.state !== 'up') return;
      this.feed(connection.client, { kind: 'answers', connection: this.idOf(connection), answers: [answer] });
    });
  }

  private serve(connection: Connection, request: Extract<ClientRequest, { op: 'get' | 'mutate' }>): void {
    const { node } = connection;
    const believed = node.view.partitions[request.partition] as PartitionView;
    const real = this.truth.partitions[request.partition] as PartitionView;
    const head = { id: request.id, partition: request.partition, epoch: believed.epoch };
    if (real.primary?.nodeId !== node.id || !real.serving) {
      const owner = believed.primary === null ? {} : { owner: believed.primary.nodeId };
      return this.reply(connection, { ...head, status: 'Moved', outcome: 'NotExecuted', ...owner });
    }
    const answer = request.op === 'get' ? this.read(request.key) : this.mutate(request);
    if (request.op === 'mutate' && this.random.chance(this.dropChance)) {
      this.after(this.latencyMs, () => this.close(connection.client, this.idOf(connection), 'reset by peer'));
      return;
    }
    this.reply(connection, { ...answer, ...head, member: { nodeId: node.id, incarnation: incarnation(1) } });
  }

  private read(key: string): Omit<Answer, 'id'> {
    const found = this.stored.get(key);
    if (found === undefined || found.value === null) return { status: 'NotFound' };
    return { status: 'Ok', value: found.value, version: found.version };
  }

  private mutate(request: Extract<ClientRequest, { op: 'mutate' }>): Omit<Answer, 'id'> {
    const { once } = request;
    const log = `${once.clientId}/${request.partition}`;
    const watermark = Math.max(this.watermarks.get(log) ?? 0, once.lowWatermark);
    this.watermarks.set(log, watermark);
    if (once.sequence < watermark) return { status: 'InvalidInput', reason: 'below the watermark' };
    const known = this.records.get(`${log}/${once.sequence}`);
    if (known !== undefined) return known;
    const answer = { id: 0, ...this.run(request) };
    this.records.set(`${log}/${once.sequence}`, answer);
    return answer;
  }

  private run(request: Extract<ClientRequest, { op: 'mutate' }>): Omit<Answer, 'id'> {
    const { mutation } = request;
    const found = this.stored.get(mutation.key);
    const isPresent = found !== undefined && found.value !== null;
    const version = {
      term: (this.truth.partitions[request.partition] as PartitionView).term,
      seq: seq(++this.seqCounter),
    };
    const write = (value: string | null): void => void this.stored.set(mutation.key, { value, version });
    if (mutation.kind === 'put') {
      if (mutation.ifAbsent === true && isPresent) return { status: 'Conflict', version: found.version };
      if (mutation.ifVersion !== undefined && (!isPresent || found.version.seq !== mutation.ifVersion.seq))
        return { status: 'Conflict' };
      write(mutation.value);
      return { status: 'Ok', version };
    }
    if (mutation.kind === 'delete') {
      if (!isPresent) return { status: 'NotFound' };
      write(null);
      return { status: 'Ok', version };
    }
    const sum = String(Number(isPresent ? found.value : 0) + mutation.delta);
    write(sum);
    return { status: 'Ok', value: sum, version };
  }
}
