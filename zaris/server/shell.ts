/**
 * Runs a node in the real world: listeners, links, one timer, the control disk, HTTP, logs. All input of a turn of the event loop
 * goes into one step, all output of it out in one write per connection. It owes the node the order of effects (see effect-queue.ts) and
 * decides nothing about data. Which node is run is an argument, so that a test of the verifier can run a broken one.
 */
import { randomInt, randomUUID } from 'node:crypto';
import type { Server } from 'node:net';
import { getHeapStatistics } from 'node:v8';
import { unreachable } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import { Prng } from '../../lib/prng.ts';
import { incarnation, type NodeId } from '../model/ids.ts';
import type { DiskState } from '../model/raft-wire.ts';
import type { ClusterView } from '../model/view.ts';
import type { Effect, NodeEvent, Notice } from '../node/contract.ts';
import type { NodeOptions } from '../node/options.ts';
import { ClientServer } from './client-server.ts';
import { defaultAdvertise, type ServerConfig } from './config.ts';
import { ControlDisk } from './control-disk.ts';
import { EffectQueue } from './effect-queue.ts';
import { EventRing } from './event-ring.ts';
import { createHttpServer } from './http-endpoints.ts';
import { createMetrics } from './metrics.ts';
import { PeerLinks } from './peer-links.ts';

/** What a shell needs of a node. */
export interface RunnableNode {
  stepAll(events: readonly NodeEvent[], nowMs: number): Effect[];
  view(): ClusterView;
  partitionsReport(): readonly object[];
  identity(): {
    readonly nodeId: NodeId;
    readonly incarnation: number | null;
    readonly controlLeader: NodeId | null;
    readonly ready: boolean;
  };
  metrics(): Record<string, number>;
}

export type CreateNode = (options: NodeOptions, disk: DiskState, random: Prng) => RunnableNode;

export interface ShellParts {
  readonly config: ServerConfig;
  readonly createNode: CreateNode;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly seed: number;
  /** The node has asked to end, or its disk has failed. */
  readonly onExit: (code: number) => void;
}

/** Effects that wait for the disk before clients are no longer read from. */
const maxWaitingEffects = 50_000;
const eventCapacity = 10_000;
const memoryCheckMs = 100;
/** A tick that brought no new wake is repeated after this, ms. */
const repeatTickMs = 20;

/** Real clock of a process. */
export const systemClock: Clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };
/** A seed that nobody can guess. */
export const randomSeed = (): number => randomInt(2 ** 32);

/** A running node. */
export class NodeShell {
  private readonly parts: ShellParts;
  private readonly disk: ControlDisk;
  private readonly clients: ClientServer;
  private readonly peers: PeerLinks;
  private readonly queue: EffectQueue;
  private readonly events = new EventRing(eventCapacity);
  private readonly servers: readonly { readonly server: Server; readonly port: number }[];
  private node: RunnableNode | null = null;
  private pending: NodeEvent[] = [];
  private isTurnPlanned = false;
  private timer: NodeJS.Timeout | null = null;
  private wakeAtMs = Infinity;
  /** When the armed timer goes off; it may be earlier than the wake, never later. */
  private timerAtMs = Infinity;
  private heapBytes = 0;
  private heapReadMs = -Infinity;
  private isEnded = false;
  private readonly startedMs: number;

  private constructor(parts: ShellParts, disk: ControlDisk) {
    const { config, logger, clock } = parts;
    const nowMs = (): number => clock.nowMs();
    this.parts = parts;
    this.disk = disk;
    this.startedMs = clock.nowMs();
    this.clients = new ClientServer({
      token: config.token,
      tls: config.tls,
      maxConnections: config.maxConnections,
      silentMs: config.silentConnectionMs,
      nowMs,
      member: () => this.member(),
      refuseWrites: (nowMs) => this.refuseWrites(nowMs),
      onRequest: (connection, request) => this.feed({ kind: 'request', connection, request }),
      onClosed: (connection) => this.feed({ kind: 'connectionClosed', connection }),
    });
    this.peers = new PeerLinks({
      nodeId: config.nodeId,
      token: config.token,
      tls: config.tls,
      logger,
      nowMs,
      onMessages: (from, messages) => {
        for (const message of messages) this.feed({ kind: 'message', from, message });
      },
      onLinkUp: (peer) => this.feed({ kind: 'linkUp', nodeId: peer }),
      onLinkDown: (peer) => this.feed({ kind: 'linkDown', nodeId: peer }),
    });
    this.queue = new EffectQueue({
      persist: (writes) => disk.write(writes),
      failed: (error) => this.diskFailed(error),
      persisted: (ticket) => this.step([{ kind: 'persisted', ticket }]),
      execute: (effect) => this.execute(effect),
      released: () => this.flush(),
    });
    const http = createHttpServer({
      health: () => this.health(),
      cluster: () => (this.node as RunnableNode).view(),
      partitions: () => (this.node as RunnableNode).partitionsReport(),
      events: this.events,
      metrics: createMetrics(config.nodeId, () => this.metrics()),
    });
    this.servers = [
      { server: this.clients.server, port: config.clientPort },
      { server: this.peers.server, port: config.clusterPort },
      { server: http, port: config.httpPort },
    ];
  }

  /** Opens the disk, listens, starts the node. Rejects when the disk cannot be trusted or a port is taken. */
  static async start(parts: ShellParts): Promise<NodeShell> {
    const { config, logger } = parts;
    const { disk, state, cutBytes } = await ControlDisk.open(config.dataDirectory);
    if (cutBytes > 0) logger.warn({ cutBytes }, 'the last record of the control log was torn and has been cut');
    for (const name of config.unknown) logger.warn({ name }, 'a setting that nobody reads; is it misspelt?');
    const shell = new NodeShell(parts, disk);
    for (const { server, port } of shell.servers) await listen(server, port, config.host);
    shell.startNode(state);
    return shell;
  }

  /** Ports in use: clients, cluster, HTTP. */
  get ports(): { readonly client: number; readonly cluster: number; readonly http: number } {
    const [client, cluster, http] = this.servers.map(({ server }) => portOf(server));
    return { client: client as number, cluster: cluster as number, http: http as number };
  }

  private startNode(disk: DiskState): void {
    const { config, createNode, logger, seed } = this.parts;
    const { ports } = this;
    const options: NodeOptions = {
      nodeId: config.nodeId,
      clientAddress: config.advertiseClient ?? defaultAdvertise(ports.client),
      clusterAddress: config.advertiseCluster ?? defaultAdvertise(ports.cluster),
      peers: config.peers.map((peer) => peer.nodeId).filter((peer) => peer !== config.nodeId),
      newDiskId: randomUUID(),
      nonce: randomUUID(),
      timings: config.timings,
      control: config.control,
    };
    this.node = createNode(options, disk, new Prng(seed));
    for (const peer of config.peers) this.peers.setAddress(peer.nodeId, peer.address);
    const { clientAddress, clusterAddress } = options;
    logger.info(
      { nodeId: config.nodeId, clientAddress, clusterAddress, ports, diskId: disk.diskId, seed },
      'a node starts',
    );
    this.feed({ kind: 'start' });
  }

  /** Asks the node to hand everything over and end. */
  shutdown(): void {
    this.feed({ kind: 'shutdown' });
  }

  /** Closes everything at once, without asking the node. */
  async close(): Promise<void> {
    if (this.isEnded) return;
    this.isEnded = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.clients.close();
    this.peers.close();
    for (const { server } of this.servers) server.close();
    await this.disk.close().catch(() => undefined);
  }

  // ---- turns -------------------------------------------------------------------------------------------------------

  private feed(event: NodeEvent): void {
    if (this.node === null || this.isEnded) return;
    this.pending.push(event);
    if (this.isTurnPlanned) return;
    this.isTurnPlanned = true;
    setImmediate(() => this.turn());
  }

  private turn(): void {
    this.isTurnPlanned = false;
    const events = this.pending;
    this.pending = [];
    if (this.isEnded) return;
    const effects = this.step(events);
    this.queue.push(effects);
    this.clients.setPaused(this.queue.length > maxWaitingEffects);
    if (this.wakeAtMs === Infinity) this.arm(this.parts.clock.nowMs() + repeatTickMs);
  }

  private step(events: readonly NodeEvent[]): Effect[] {
    return (this.node as RunnableNode).stepAll(events, this.parts.clock.nowMs());
  }

  private execute(effect: Exclude<Effect, { kind: 'persist' }>): void {
    switch (effect.kind) {
      case 'send':
        return this.peers.send(effect.to, effect.message);
      case 'reply':
        return this.clients.reply(effect.connection, effect.answer);
      case 'wake':
        return this.arm(effect.atMs);
      case 'address':
        return this.peers.setAddress(effect.nodeId, effect.clusterAddress);
      case 'notice':
        return this.notice(effect.notice);
      case 'exit':
        this.flush();
        return this.parts.onExit(effect.code);
      default:
        unreachable(effect);
    }
  }

  private flush(): void {
    this.peers.flush();
    this.clients.flush();
  }

  private arm(atMs: number): void {
    this.wakeAtMs = atMs;
    if (this.isEnded || this.timerAtMs <= atMs) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timerAtMs = atMs;
    const delayMs = Math.ceil(atMs - this.parts.clock.nowMs());
    this.timer = setTimeout(() => this.wake(), Math.min(Math.max(delayMs, 0), 2 ** 31 - 1));
  }

  private wake(): void {
    this.timerAtMs = Infinity;
    if (this.parts.clock.nowMs() < this.wakeAtMs) return this.arm(this.wakeAtMs);
    this.wakeAtMs = Infinity;
    this.feed({ kind: 'tick' });
  }

  private notice(notice: Notice): void {
    const { clock, logger } = this.parts;
    this.events.add(notice, clock.nowMs(), clock.wallMs());
    logger[notice.level](notice.fields, notice.name);
  }

  private diskFailed(error: unknown): void {
    this.parts.logger.error(
      { error: String(error) },
      'the control disk failed; what it holds is unknown, so this node ends',
    );
    this.parts.onExit(1);
  }

  // ---- looks -------------------------------------------------------------------------------------------------------

  private member(): { readonly nodeId: NodeId; readonly incarnation: ReturnType<typeof incarnation> } | null {
    const identity = this.node?.identity();
    return identity === undefined || identity.incarnation === null
      ? null
      : { nodeId: identity.nodeId, incarnation: incarnation(identity.incarnation) };
  }

  /** Refuses before the heap is full: a typed refusal instead of a crash that would lose this copy. */
  private refuseWrites(nowMs: number): string | null {
    if (nowMs - this.heapReadMs >= memoryCheckMs) {
      this.heapReadMs = nowMs;
      this.heapBytes = getHeapStatistics().used_heap_size;
    }
    const limit = this.parts.config.memoryLimitBytes;
    if (this.heapBytes <= limit) return null;
    return `this node is over its memory limit of ${Math.round(limit / 1024 / 1024)} MiB`;
  }

  private health(): object {
    const identity = (this.node as RunnableNode).identity();
    return { ...identity, pid: process.pid, uptimeMs: Math.round(this.parts.clock.nowMs() - this.startedMs) };
  }

  private metrics(): Record<string, number> {
    const { counts } = this.clients;
    return {
      ...this.node?.metrics(),
      client_connections: this.clients.connectionCount,
      client_connections_accepted: counts.accepted,
      client_connections_refused: counts.refusedConnections,
      client_connections_closed_unread: counts.closedUnread,
      client_requests: counts.requests,
      client_frames_malformed: counts.malformed,
      client_unauthorized: counts.unauthorized,
      peer_bytes_dropped: this.peers.droppedBytes,
      effects_waiting: this.queue.length,
    };
  }
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
