/** Redis with replicas and Sentinel as a system to certify, in three profiles. */
import type { StoreClient } from '../../../workloads/port.ts';
import type { SystemStatus } from '../../../chaos/ports.ts';
import type {
  ConnectOptions,
  Contract,
  Peeked,
  PermittedAnomaly,
  RunningSystem,
  System,
  SystemFacts,
} from '../system.ts';
import { definiteRefusals } from './redis-answers.ts';
import { operationLimitMs, RedisClient } from './redis-client.ts';
import { redisProgram } from './redis-node.ts';
import { RedisStatus } from './redis-status.ts';

const pollMs = 200;

/** How a profile writes, and what it may promise. */
interface Profile {
  readonly name: string;
  readonly waitReplicas: number;
  /** Lines of redis.conf on top of the common ones. */
  readonly config: readonly string[];
  readonly contract: Contract;
}

/** A lost write shows in these ways too: what it had replaced or deleted is back, what it created can be created again, what shall expire is gone before. */
const followsFromLoss: readonly PermittedAnomaly[] = [
  'stale',
  'non-monotone',
  'resurrected',
  'duplicated',
  'not-linearizable',
  'ttl',
];

const profiles: readonly Profile[] = [
  {
    name: 'async',
    waitReplicas: 0,
    config: [],
    contract: {
      acknowledgement: "An acknowledged write is in the primary's memory; replicas get it later.",
      durable: false,
      permittedLoss:
        'any failover may lose writes that the old primary had acknowledged and no promoted replica had received',
      permits: followsFromLoss,
    },
  },
  {
    name: 'wait-1',
    waitReplicas: 1,
    config: [],
    contract: {
      acknowledgement: 'An acknowledged write has been received by the primary and one replica (WAIT 1).',
      durable: false,
      permittedLoss:
        'a failover may promote a replica that is not the one which had received the write; WAIT makes Redis no strongly consistent store',
      permits: followsFromLoss,
    },
  },
  {
    name: 'min-replicas',
    waitReplicas: 0,
    config: ['min-replicas-to-write 1', 'min-replicas-max-lag 1'],
    contract: {
      acknowledgement:
        "An acknowledged write is in the primary's memory, and a replica had been heard of within the last second or two (min-replicas-to-write 1, min-replicas-max-lag 1).",
      durable: false,
      permittedLoss:
        'a failover may lose the writes of the last seconds before the old primary noticed that it was alone',
      permits: followsFromLoss,
    },
  },
];

/** Redis in the profile of this name; undefined when there is none. */
export function redis(profileName: string): System | undefined {
  const profile = profiles.find((each) => each.name === profileName);
  if (profile === undefined) return undefined;
  return {
    name: `redis ${profile.name}`,
    contract: () => profile.contract,
    capabilities: { versions: false, compareAndSet: false, create: true, counters: true, ttl: true, peek: true },
    clientPromises: { maxAttempts: 1, deadlineMs: operationLimitMs },
    shape: { nodes: 3, partitions: 1, everyNodeHoldsAll: true },
    definiteRefusals,
    unsupportedFaults: new Map([
      [
        'wipe',
        'a wiped Redis primary that starts again before Sentinel has noticed is still the primary, and empties its replicas',
      ],
      ['scale-out', 'the adapter adds no replicas to a running Sentinel group'],
      ['scale-in', 'the adapter takes no Sentinels out of a running group'],
    ]),
    program: redisProgram(profile.config),
    defaultMinInSync: () => 1 + profile.waitReplicas,
    nodeEnvironment: () => ({}),
    connect: (options) => new RunningRedis(options, profile),
  };
}

class RunningRedis implements RunningSystem {
  private readonly options: ConnectOptions;
  private readonly profile: Profile;
  private readonly looker: RedisStatus;
  private readonly clients: RedisClient[] = [];
  readonly status = { status: (): Promise<SystemStatus | null> => this.looker.status() };

  constructor(options: ConnectOptions, profile: Profile) {
    this.options = options;
    this.profile = profile;
    this.looker = new RedisStatus(options.addresses, options.nowMs);
  }

  client(session: number): StoreClient {
    const { addresses } = this.options;
    const client = new RedisClient({ addresses, session, waitReplicas: this.profile.waitReplicas });
    this.clients.push(client);
    return client;
  }

  partitionOf(): number {
    return 0;
  }

  async bootstrap(deadlineMs: number, signal: AbortSignal): Promise<void> {
    const { nowMs } = this.options;
    const untilMs = nowMs() + deadlineMs;
    let last = 'no majority of the Sentinels answered alike';
    while (nowMs() < untilMs && !signal.aborted) {
      const [partition] = (await this.looker.status())?.partitions ?? [];
      if (partition?.health === 'Healthy' && (await this.looker.sentinelsAreComplete())) return;
      if (partition !== undefined) {
        last = `${partition.inSync.length} of ${partition.replicas.length} servers follow ${partition.primary}, ${partition.health}`;
      }
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
    throw new Error(`${last} after ${Math.round(deadlineMs / 1_000)} s`);
  }

  async facts(): Promise<SystemFacts> {
    const status = await this.looker.status();
    if (status === null) throw new Error('no majority of the Sentinels answered alike');
    const versions = await this.looker.versions();
    return {
      build: '',
      replicationFactor: status.partitions[0]?.inSync.length ?? 0,
      minInSync: 1 + this.profile.waitReplicas,
      partitions: 1,
      versions: versions.map((value) => ({ name: 'Redis', value })),
    };
  }

  peek(nodeId: string, _partition: number, keys: readonly string[]): Promise<Peeked | null> {
    return this.looker.peek(nodeId, keys);
  }

  async events(): Promise<readonly never[]> {
    return [];
  }

  nodeAdded(): void {
    throw new Error('Redis nodes cannot be added to a running group here.');
  }

  async close(): Promise<void> {
    this.looker.close();
    await Promise.all(this.clients.map((client) => client.close()));
  }
}
