/**
 * A simulated cluster to be scripted step by step: for tests that need one exact interleaving. Waits are on conditions in virtual
 * time, with a bound, and fail with the name of what was waited for.
 */
import { Prng } from '../../lib/prng.ts';
import type { CallOperation, CallResult, ClientOptions } from '../../zaris/client/contract.ts';
import type { Answer, ClientRequest } from '../../zaris/model/client-wire.ts';
import { type NodeId, type PartitionId, nodeId as asNodeId, partitionId } from '../../zaris/model/ids.ts';
import type { PeerMessage } from '../../zaris/model/peer-wire.ts';
import { partitionOf } from '../../zaris/model/segments.ts';
import type { ClusterView, PartitionView } from '../../zaris/model/view.ts';
import type { Notice } from '../../zaris/node/contract.ts';
import { ClientHost, type SimClient } from '../client-host.ts';
import { calmNetwork } from '../network.ts';
import { World } from '../world.ts';
import type { WorldOptions } from '../world-node.ts';

export interface ScriptOptions {
  readonly seed?: number;
  readonly nodeCount?: number;
  readonly rf?: number;
  readonly minInSync?: number;
  readonly partitionCount?: number;
  /**
   * The node that bootstraps, hence the first control leader; n1 by default, which also leads partition 0. What a primary proposes
   * crosses the network, and can be held back, only where another node is the control leader.
   */
  readonly controlAt?: string;
  readonly world?: Partial<WorldOptions>;
}

/** Peer messages that were kept from arriving. */
export interface HeldMessages {
  readonly messages: readonly { readonly from: NodeId; readonly to: NodeId; readonly message: PeerMessage }[];
  /** Holds nothing further. */
  readonly stop: () => void;
  /** Delivers what is held, or the first `count` of it, in the order it was sent. */
  readonly deliver: (count?: number) => void;
}

type MessageMatch = (from: NodeId, to: NodeId, message: PeerMessage) => boolean;

/** A bound on every wait, virtual ms. */
const waitBoundMs = 120_000;
/** Connections of {@link Script.ask} are numbered from here on, far above those of clients. */
const firstAskConnection = 1_000_000;

export class Script {
  readonly world: World;
  readonly host: ClientHost;
  readonly client: SimClient;
  readonly notices: { readonly atMs: number; readonly nodeId: NodeId; readonly notice: Notice }[] = [];
  readonly partitionCount: number;
  private readonly drops = new Set<MessageMatch>();
  private readonly asked = new Map<number, { answer: Answer | null }>();

  constructor(options: ScriptOptions = {}) {
    const { seed = 1, nodeCount = 3, rf = 3, partitionCount = 1 } = options;
    this.partitionCount = partitionCount;
    this.world = new World({
      seed,
      nodeCount,
      network: calmNetwork,
      fsyncMs: 1,
      meanFsyncExtraMs: 1,
      ...options.world,
    });
    this.world.onNotice = (nodeId, notice) => void this.notices.push({ atMs: this.world.nowMs, nodeId, notice });
    this.host = new ClientHost(this.world);
    const toClients = this.world.onAnswer;
    this.world.onAnswer = (from, connection, answer) => {
      const box = this.asked.get(connection);
      if (box === undefined) toClients(from, connection, answer);
      else box.answer = answer;
    };
    for (const id of this.world.nodes.keys()) this.world.start(id);
    const minInSync = options.minInSync ?? (rf >= 3 ? 2 : 1);
    const settings = {
      clusterId: 'test',
      replicationFactor: rf,
      minInSync,
      partitionCount,
      initialNodes: nodeCount,
    };
    this.world.request(asNodeId(options.controlAt ?? 'n1'), 0, {
      op: 'admin',
      id: 1,
      command: { kind: 'bootstrap', settings },
    });
    this.waitHealthy();
    this.client = this.newClient('main');
  }

  newClient(name: string, options: Partial<ClientOptions> = {}): SimClient {
    return this.host.client(name, new Prng(this.world.options.seed).fork(`client ${name}`), options);
  }

  /** The newest committed view that any running node has. */
  view(): ClusterView {
    let newest: ClusterView | null = null;
    for (const node of this.world.nodes.values()) {
      const view = node.running?.node.view();
      if (view !== undefined && (newest === null || view.revision > newest.revision)) newest = view;
    }
    if (newest === null) throw new Error('no node runs');
    return newest;
  }

  partition(index = 0): PartitionView {
    const view = this.view().partitions[index];
    if (view === undefined) throw new Error(`no partition ${index}`);
    return view;
  }

  primary(index = 0): NodeId {
    const { primary } = this.partition(index);
    if (primary === null) throw new Error(`partition ${index} has no primary`);
    return primary.nodeId;
  }

  /** Nodes in the in-sync set other than the primary. */
  replicas(index = 0): NodeId[] {
    const { primary, inSync } = this.partition(index);
    return inSync.map((member) => member.nodeId).filter((id) => id !== primary?.nodeId);
  }

  /** Runs on until `condition` holds. */
  until(what: string, condition: () => boolean, boundMs = waitBoundMs): void {
    const endMs = this.world.nowMs + boundMs;
    let met = condition();
    if (met) return;
    this.world.run(endMs, () => {
      met = condition();
      return met;
    });
    if (!met) throw new Error(`waited ${boundMs} ms of virtual time for: ${what}`);
  }

  run(forMs: number): void {
    this.world.run(this.world.nowMs + forMs);
  }

  waitHealthy(): void {
    this.until('every partition healthy', () => {
      const { partitions } = this.view();
      return partitions.length > 0 && partitions.every((partition) => partition.health === 'Healthy');
    });
  }

  waitServing(index = 0): void {
    this.until(`partition ${index} serving`, () => this.partition(index).serving);
  }

  /** Waits until a member other than `old` leads and serves. */
  untilAnotherLeads(old: NodeId, index = 0): void {
    this.until('another leads', () => {
      const { primary, serving } = this.partition(index);
      return primary !== null && primary.nodeId !== old && serving;
    });
  }

  /** Sends one request straight to a node, past every client; the box fills with its answer. */
  ask(to: NodeId, request: ClientRequest): { answer: Answer | null } {
    const box: { answer: Answer | null } = { answer: null };
    const connection = firstAskConnection + this.asked.size;
    this.asked.set(connection, box);
    this.world.request(to, connection, request);
    return box;
  }

  /** Starts a call; the box fills when it settles. */
  call(operation: CallOperation, client = this.client, timeoutMs?: number): { result: CallResult | null } {
    const box: { result: CallResult | null } = { result: null };
    client.call(operation, (result) => void (box.result = result), timeoutMs);
    return box;
  }

  /** Calls and waits. */
  do(operation: CallOperation, client = this.client): CallResult {
    const box = this.call(operation, client);
    this.until('the call to settle', () => box.result !== null);
    if (box.result === null) throw new Error('unreachable');
    return box.result;
  }

  put(key: string, value: string, client = this.client): CallResult {
    return this.do({ kind: 'mutate', mutation: { kind: 'put', key, value } }, client);
  }

  delete(key: string): CallResult {
    return this.do({ kind: 'mutate', mutation: { kind: 'delete', key } });
  }

  add(key: string, delta = 1): CallResult {
    return this.do({ kind: 'mutate', mutation: { kind: 'add', key, delta } });
  }

  /** The value, or null when absent; throws for any other end. */
  get(key: string, client = this.client): string | null {
    const result = this.do({ kind: 'get', key }, client);
    if (result.status === 'Ok') return result.answer?.value ?? null;
    if (result.status === 'NotFound') return null;
    throw new Error(`get ${key}: ${result.status} ${result.reason ?? ''}`);
  }

  isolate(nodeId: NodeId, from: readonly string[] = [...this.world.nodes.keys()]): void {
    for (const other of from) {
      if (other === nodeId) continue;
      this.world.cut(nodeId, other);
      this.world.cut(other, nodeId);
    }
  }

  /** Mends every link of one node. */
  rejoin(nodeId: NodeId): void {
    for (const other of [...this.world.nodes.keys(), 'client']) {
      this.world.heal(nodeId, other);
      this.world.heal(other, nodeId);
    }
  }

  /** Holds peer messages that `match` says, to be delivered late. */
  hold(match: MessageMatch): HeldMessages {
    const messages: { from: NodeId; to: NodeId; message: PeerMessage }[] = [];
    const stop = this.drop((from, to, message) => {
      if (!match(from, to, message)) return false;
      messages.push({ from, to, message });
      return true;
    });
    return {
      messages,
      stop,
      deliver: (count = messages.length) => {
        for (const { from, to, message } of messages.splice(0, count)) this.world.inject(from, to, message);
      },
    };
  }

  /** Drops peer messages that `match` says; returns a function that ends it. */
  drop(match: MessageMatch): () => void {
    this.drops.add(match);
    this.world.onSend = (from, to, message) => ![...this.drops].some((dropped) => dropped(from, to, message));
    return () => void this.drops.delete(match);
  }

  partitionOf(key: string): PartitionId {
    return partitionOf(key, this.partitionCount);
  }

  copy(
    nodeId: string,
    index = 0,
  ): { role: string; lastSeq: number; commitSeq: number; keyCount: number; digest: string } | undefined {
    const report = this.world.node(asNodeId(nodeId)).running?.node.partitionsReport();
    return report?.find((copy) => copy.partition === partitionId(index));
  }

  restart(nodeId: NodeId, options: { readonly wipe?: boolean } = {}): void {
    this.world.kill(nodeId);
    if (options.wipe === true) this.world.wipe(nodeId);
    this.world.start(nodeId);
  }

  /** Copies that serve or are in sync have applied the same and agree. */
  digestsAgree(index = 0): boolean {
    const digests = new Set<string>();
    for (const member of this.partition(index).inSync) {
      const copy = this.copy(member.nodeId, index);
      if (copy !== undefined) digests.add(`${copy.commitSeq} ${copy.digest}`);
    }
    return digests.size === 1;
  }
}
