/**
 * Who is primary of a Sentinel group and which copies follow it, as a majority of the Sentinels says; and single copies for the autopsy.
 *
 * Invariant: without the same answer (primary and configuration epoch) of a majority there is no status; a replica counts as in sync
 * only while it follows that very primary. A budget read from the side of a cut-off primary would let the last good copy be taken.
 */
import { Redis } from 'ioredis';
import type { SystemStatus } from '../../../chaos/ports.ts';
import { IncarnationCounter, ObservedRuntime, OrderedLooks, within } from '../observed-runtime.ts';
import type { NodeAddress, Peeked } from '../system.ts';
import { internalOf } from './redis-client.ts';
import { masterName } from './redis-node.ts';

const answerTimeoutMs = 800;
const peekTimeoutMs = 3_000;
const reconnectMs = 200;
/** Bytes of the replication stream that a replica may be behind and still count as a copy: what is on its way. */
const lagBytes = 1_000_000;

/** What INFO says of one server. */
interface ServerInfo {
  readonly nodeId: string;
  readonly address: string;
  readonly runId: string;
  readonly version: string;
  readonly role: string;
  /** host:port of the primary that it follows; null for a primary. */
  readonly follows: string | null;
  readonly linkUp: boolean;
  readonly offset: number;
}

/** One Sentinel's word. */
interface SentinelWord {
  readonly address: string;
  readonly configEpoch: number;
  readonly otherSentinels: number;
  readonly replicas: number;
}

/** Fields of an INFO answer. */
export function infoFields(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0 && !line.startsWith('#')) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

/** The word that a majority of `sentinelCount` gives alike; null when none does. */
export function majorityWord(words: readonly (SentinelWord | null)[], sentinelCount: number): SentinelWord | null {
  const alike = Map.groupBy(
    words.filter((word) => word !== null),
    (word) => `${word.address}@${word.configEpoch}`,
  );
  for (const same of alike.values()) if (same.length > sentinelCount / 2) return same[0] ?? null;
  return null;
}

export class RedisStatus {
  private readonly addresses: NodeAddress[];
  private readonly nowMs: () => number;
  private readonly connections = new Map<string, Redis>();
  private readonly runtime = new ObservedRuntime();
  private readonly incarnations = new IncarnationCounter();
  private readonly looks = new OrderedLooks(() => this.look());

  constructor(addresses: readonly NodeAddress[], nowMs: () => number) {
    this.addresses = [...addresses];
    this.nowMs = nowMs;
  }

  /** Null when no majority of the Sentinels agrees. */
  status(): Promise<SystemStatus | null> {
    return this.looks.ask();
  }

  /** Each Sentinel knows all the others and all replicas: before that, a failover finds no majority, or nobody to promote. */
  async sentinelsAreComplete(): Promise<boolean> {
    const words = await Promise.all(this.addresses.map((address) => this.wordOf(address)));
    const others = this.addresses.length - 1;
    return words.every((word) => word?.otherSentinels === others && word.replicas === others);
  }

  /** Version of every server that answers, without repetition. */
  async versions(): Promise<readonly string[]> {
    const servers = await Promise.all(this.addresses.map((address) => this.infoOf(address)));
    return [...new Set(servers.flatMap((server) => (server === null ? [] : [server.version])))];
  }

  /** A server's own copy of keys; null when it does not answer. */
  async peek(nodeId: string, keys: readonly string[]): Promise<Peeked | null> {
    const address = this.addresses.find((each) => each.nodeId === nodeId);
    if (address === undefined) return null;
    // The position first: what it covers is in the values that follow.
    const server = await this.infoOf(address);
    if (server === null) return null;
    const redis = this.connection(address.host, address.clientPort);
    const values = keys.length === 0 ? [] : await within(peekTimeoutMs, redis.mget(...keys));
    const keyCount = await within(peekTimeoutMs, redis.dbsize());
    if (values === null || keyCount === null) return null;
    return {
      nodeId,
      incarnation: this.incarnations.of(nodeId, server.runId),
      role: server.role === 'master' ? 'primary' : 'replica',
      applied: [0, server.offset],
      commitSeq: server.offset,
      digest: '',
      keyCount,
      keys: keys.map((key, index) => ({ key, value: values[index] ?? null, version: null })),
    };
  }

  close(): void {
    for (const redis of this.connections.values()) redis.disconnect();
    this.connections.clear();
  }

  private async look(): Promise<SystemStatus | null> {
    const atMs = this.nowMs();
    const [words, servers] = await Promise.all([
      Promise.all(this.addresses.map((address) => this.wordOf(address))),
      Promise.all(this.addresses.map((address) => this.infoOf(address))),
    ]);
    const nodes = this.addresses.map(({ nodeId }, index) => {
      const server = servers[index] ?? null;
      return {
        nodeId,
        alive: server !== null,
        incarnation: server === null ? this.incarnations.last(nodeId) : this.incarnations.of(nodeId, server.runId),
      };
    });
    const word = majorityWord(words, this.addresses.length);
    const named = word === null ? undefined : this.addresses.find((address) => internalOf(address) === word.address);
    if (word === null || named === undefined) return null;
    const answering = servers.filter((server) => server !== null);
    const primary = answering.find((server) => server.nodeId === named.nodeId);
    const serving = primary?.role === 'master';
    const inSync = answering.filter((server) => isInSync(server, primary, word.address)).map((server) => server.nodeId);
    const replicas = this.addresses.map((address) => address.nodeId);
    const incarnation = nodes.find((node) => node.nodeId === named.nodeId)?.incarnation ?? 0;
    const partition = this.runtime.see({
      partition: 0,
      primary: named.nodeId,
      reign: `${named.nodeId}#${incarnation}@${word.configEpoch}`,
      replicas,
      inSync,
      joining: answering.filter((server) => !inSync.includes(server.nodeId)).map((server) => server.nodeId),
      health: !serving ? 'Unavailable' : inSync.length === replicas.length ? 'Healthy' : 'Degraded',
      serving,
    });
    return { atMs, leader: named.nodeId, voters: replicas, nodes, minInSync: 1, partitions: [partition] };
  }

  private async wordOf({ host, httpPort }: NodeAddress): Promise<SentinelWord | null> {
    const reply = await this.ask(host, httpPort, (redis) => redis.call('SENTINEL', 'MASTER', masterName));
    const fields = pairs(reply);
    const epoch = Number(fields.get('config-epoch'));
    if (!fields.has('ip') || !Number.isInteger(epoch)) return null;
    return {
      address: `${fields.get('ip')}:${fields.get('port')}`,
      configEpoch: epoch,
      otherSentinels: Number(fields.get('num-other-sentinels')),
      replicas: Number(fields.get('num-slaves')),
    };
  }

  private async infoOf(address: NodeAddress): Promise<ServerInfo | null> {
    const text = await this.ask(address.host, address.clientPort, (redis) => redis.info());
    if (typeof text !== 'string') return null;
    const fields = infoFields(text);
    const runId = fields.get('run_id');
    if (runId === undefined || fields.get('loading') === '1') return null;
    const follows = fields.get('master_host');
    return {
      nodeId: address.nodeId,
      address: internalOf(address),
      runId,
      version: fields.get('redis_version') ?? 'unknown',
      role: fields.get('role') ?? 'unknown',
      follows: follows === undefined ? null : `${follows}:${fields.get('master_port')}`,
      linkUp: fields.get('master_link_status') === 'up',
      offset: Number(fields.get('slave_repl_offset') ?? fields.get('master_repl_offset') ?? 0),
    };
  }

  /** One command on the connection kept for looking; a connection that does not answer is made anew for the next look. */
  private async ask(host: string, port: number, command: (redis: Redis) => Promise<unknown>): Promise<unknown> {
    const redis = this.connection(host, port);
    const reply = await within(answerTimeoutMs, command(redis));
    if (reply === null && redis.status === 'ready') redis.stream.destroy();
    return reply;
  }

  private connection(host: string, port: number): Redis {
    const name = `${host}:${port}`;
    const known = this.connections.get(name);
    if (known !== undefined) return known;
    const redis = new Redis({
      host,
      port,
      protocol: 2,
      // Sentinels know no HELLO-bound commands such as CLIENT SETINFO.
      disableClientInfo: true,
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: answerTimeoutMs,
      retryStrategy: () => reconnectMs,
    });
    redis.on('error', () => undefined);
    this.connections.set(name, redis);
    return redis;
  }
}

function isInSync(server: ServerInfo, primary: ServerInfo | undefined, primaryAddress: string): boolean {
  if (server === primary) return server.role === 'master';
  if (server.role !== 'slave' || server.follows !== primaryAddress || !server.linkUp) return false;
  return primary === undefined || primary.offset - server.offset <= lagBytes;
}

/** A flat list of names and values as fields. */
function pairs(reply: unknown): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  if (!Array.isArray(reply)) return fields;
  for (let at = 0; at + 1 < reply.length; at += 2) fields.set(String(reply[at]), String(reply[at + 1]));
  return fields;
}
