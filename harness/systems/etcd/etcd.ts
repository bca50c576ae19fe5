/** etcd as a system to certify: every member holds every key; a majority keeps a write on its disks before it is acknowledged. */
import type { SystemStatus } from '../../../chaos/ports.ts';
import type { StoreClient } from '../../../workloads/port.ts';
import type {
  ConnectOptions,
  NodeContext,
  NodeEndpoints,
  Peeked,
  RunningSystem,
  System,
  SystemFacts,
} from '../system.ts';
import { definiteRefusals } from './etcd-answers.ts';
import { EtcdClient, type Member } from './etcd-client.ts';
import { answerTimeoutMs, connectMember } from './etcd-connection.ts';
import { EtcdStatus } from './etcd-status.ts';

const pollMs = 200;
/** Old revisions are dropped after this, so that hours of overwriting fit the quota. */
const compactAfter = '5m';
const quotaBytes = 8 * 1024 ** 3;

const peerUrl = (node: NodeEndpoints): string => `http://${node.clusterAddress}`;

function commandOf({ plan, nodeId, index, nodes, host, ports, dataDir }: NodeContext): readonly string[] {
  const own = nodes[index];
  if (own === undefined) throw new Error('an etcd node is one of the nodes');
  return [
    'etcd',
    ...['--name', nodeId, '--data-dir', `${dataDir}/etcd`],
    ...['--listen-client-urls', `http://${host}:${ports.client}`],
    ...['--advertise-client-urls', `http://${own.internalClientAddress}`],
    ...['--listen-peer-urls', `http://${host}:${ports.cluster}`, '--initial-advertise-peer-urls', peerUrl(own)],
    ...['--listen-metrics-urls', `http://${host}:${ports.http}`],
    ...['--initial-cluster', nodes.map((node) => `${node.nodeId}=${peerUrl(node)}`).join(',')],
    ...['--initial-cluster-token', plan.clusterId, '--initial-cluster-state', 'new'],
    ...['--auto-compaction-retention', compactAfter, '--quota-backend-bytes', String(quotaBytes)],
    ...['--logger', 'zap', '--log-level', 'warn'],
  ];
}

export const etcd: System = {
  name: 'etcd',
  contract: ({ nodeCount }) => ({
    acknowledgement: `An acknowledged write is on the disks of a majority (${Math.floor(nodeCount / 2) + 1} of ${nodeCount} members), and every later read sees it.`,
    durable: true,
    permittedLoss: null,
  }),
  capabilities: { versions: true, compareAndSet: true, create: true, counters: false, ttl: false, peek: true },
  clientPromises: { maxAttempts: 1, deadlineMs: answerTimeoutMs },
  shape: { nodes: 3, partitions: 1, everyNodeHoldsAll: true },
  definiteRefusals,
  unsupportedFaults: new Map([
    ['wipe', 'an etcd member that lost its disk must be removed and added again by an operator'],
    ['scale-out', 'the adapter adds no members to a running cluster'],
    ['scale-in', 'the adapter removes no members from a running cluster'],
  ]),
  program: {
    source: {
      kind: 'packages',
      packages: ['etcd-server'],
      publicImage: 'quay.io/coreos/etcd:v3.4.34',
      program: 'etcd',
    },
    ports: { client: 2379, cluster: 2380, http: 2381 },
    readiness: { kind: 'http', path: '/health' },
    command: commandOf,
  },
  defaultMinInSync: (replicationFactor) => Math.floor(replicationFactor / 2) + 1,
  nodeEnvironment: () => ({}),
  connect: (options) => new RunningEtcd(options),
};

class RunningEtcd implements RunningSystem {
  private readonly options: ConnectOptions;
  private readonly members: readonly Member[];
  private readonly looker: EtcdStatus;
  readonly status = { status: (): Promise<SystemStatus | null> => this.looker.status() };

  constructor(options: ConnectOptions) {
    this.options = options;
    this.members = options.addresses.map(({ nodeId, host, clientPort }) => ({
      nodeId,
      etcd: connectMember(host, clientPort),
    }));
    this.looker = new EtcdStatus(options.addresses, this.members, options.nowMs);
  }

  client(session: number): StoreClient {
    return new EtcdClient(this.members, session);
  }

  partitionOf(): number {
    return 0;
  }

  async bootstrap(deadlineMs: number, signal: AbortSignal): Promise<void> {
    const { nowMs } = this.options;
    const untilMs = nowMs() + deadlineMs;
    let last = 'no majority of the members answered';
    while (nowMs() < untilMs && !signal.aborted) {
      const [partition] = (await this.looker.status())?.partitions ?? [];
      if (partition?.health === 'Healthy') return;
      if (partition !== undefined)
        last = `${partition.inSync.length} of ${partition.replicas.length} members in sync, ${partition.health}`;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
    throw new Error(`${last} after ${Math.round(deadlineMs / 1_000)} s`);
  }

  async facts(): Promise<SystemFacts> {
    const [first] = this.members;
    if (first === undefined) throw new Error('the cluster has no members');
    const { members } = await first.etcd.cluster.memberList({});
    const versions = await this.looker.versions();
    return {
      build: '',
      replicationFactor: members.length,
      minInSync: Math.floor(members.length / 2) + 1,
      partitions: 1,
      versions: versions.map((value) => ({ name: 'etcd', value })),
    };
  }

  peek(nodeId: string, _partition: number, keys: readonly string[]): Promise<Peeked | null> {
    return this.looker.peek(nodeId, keys);
  }

  async events(): Promise<readonly never[]> {
    return [];
  }

  nodeAdded(): void {
    throw new Error('etcd members cannot be added to a running cluster here.');
  }

  async close(): Promise<void> {
    for (const { etcd } of this.members) etcd.close();
  }
}
