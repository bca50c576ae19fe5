/** Zaris as a system to certify. */
import type { SystemStatus } from '../../chaos/ports.ts';
import type { StoreClient } from '../../workloads/port.ts';
import { defaultClientOptions } from '../../zaris/client/contract.ts';
import { ZarisClient } from '../../zaris/client/client.ts';
import type { AdminCommand, ClusterSettings } from '../../zaris/model/client-wire.ts';
import { partitionOf } from '../../zaris/model/segments.ts';
import type { ClusterView } from '../../zaris/model/view.ts';
import type {
  ClusterPlan,
  ConnectOptions,
  Contract,
  NodeAddress,
  NodeEndpoints,
  Peeked,
  RunningSystem,
  System,
  SystemFacts,
} from './system.ts';
import { callWith, completionOf, definiteRefusals } from './zaris-completions.ts';
import { ZarisEvents } from './zaris-events.ts';
import { newestView } from './zaris-http.ts';
import { ZarisMoves } from './zaris-moves.ts';
import { statusOfView } from './zaris-status.ts';

/** Clients that the sessions share; each keeps one connection per node. */
const clientCount = 4;
const pollMs = 150;
const peekTimeoutMs = 2_000;
const adminTimeoutMs = 5_000;

function contractOf(plan: ClusterPlan): Contract {
  if (plan.replicationFactor === 1) {
    return {
      acknowledgement: 'An acknowledged write is in the memory of one node, and is lost with its process.',
      durable: false,
      permittedLoss: 'any restart of the node',
    };
  }
  return {
    acknowledgement: `An acknowledged write is in the memory of every in-sync copy, at least ${plan.minInSync}, and survives as long as one of them (or an eligible former one) keeps its process.`,
    durable: true,
    permittedLoss:
      'every in-sync and every eligible copy of a partition lost its process; the partition is then reported Lost',
    lossNeeds: 'reported-lost',
    permits: ['stale', 'non-monotone', 'not-linearizable', 'ttl'],
  };
}

function nodeEnvironment(
  _plan: ClusterPlan,
  nodeId: string,
  _index: number,
  nodes: readonly NodeEndpoints[],
): Record<string, string> {
  const own = nodes.find((node) => node.nodeId === nodeId);
  return {
    ZARIS_NODE_ID: nodeId,
    ZARIS_DATA_DIR: '/data',
    ZARIS_PEERS: nodes
      .filter((node) => node.nodeId !== nodeId)
      .map((node) => `${node.nodeId}=${node.clusterAddress}`)
      .join(','),
    ...(own === undefined
      ? {}
      : { ZARIS_ADVERTISE_CLIENT: own.clientAddress, ZARIS_ADVERTISE_CLUSTER: own.clusterAddress }),
  };
}

export const zaris: System = {
  name: 'zaris',
  contract: contractOf,
  capabilities: { versions: true, compareAndSet: true, create: true, counters: true, ttl: true, peek: true },
  clientPromises: {
    maxAttempts: defaultClientOptions.retry.maxAttempts,
    deadlineMs: defaultClientOptions.requestTimeoutMs,
  },
  definiteRefusals,
  defaultMinInSync: (replicationFactor) => (replicationFactor >= 3 ? 2 : 1),
  nodeEnvironment,
  connect: (options) => new RunningZaris(options),
};

class RunningZaris implements RunningSystem {
  private readonly plan: ClusterPlan;
  private readonly nowMs: () => number;
  private readonly addresses: NodeAddress[];
  private readonly clients: Promise<ZarisClient>[] = [];
  private readonly notices: ZarisEvents;
  private readonly moves: ZarisMoves;
  readonly status = { status: (): Promise<SystemStatus | null> => this.readStatus() };

  constructor({ plan, addresses, nowMs }: ConnectOptions) {
    this.plan = plan;
    this.nowMs = nowMs;
    this.addresses = [...addresses];
    this.notices = new ZarisEvents(this.addresses, nowMs);
    this.moves = new ZarisMoves({
      view: () => newestView(this.addresses),
      admin: (command) => this.askLeader(command),
      nowMs,
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref()),
    });
  }

  client(session: number): StoreClient {
    const opening = this.shared(session % clientCount);
    return {
      execute: async (operation) => completionOf(operation, await callWith(await opening, operation)),
      close: async () => undefined,
    };
  }

  partitionOf(key: string): number {
    return partitionOf(key, this.plan.partitionCount);
  }

  async bootstrap(deadlineMs: number, signal: AbortSignal): Promise<void> {
    const untilMs = this.nowMs() + deadlineMs;
    const { clusterId, replicationFactor, minInSync, partitionCount, nodeCount } = this.plan;
    const settings = { clusterId, replicationFactor, minInSync, partitionCount, initialNodes: nodeCount };
    let last = 'no node answered';
    let isBootstrapped = false;
    while (this.nowMs() < untilMs && !signal.aborted) {
      const view = await newestView(this.addresses);
      if (view !== null && view.clusterId !== '') {
        if (view.clusterId !== clusterId)
          throw new Error(`another cluster, ${view.clusterId}, answers at these addresses`);
        const unwell = view.partitions.filter(
          (partition) => partition.health !== 'Healthy' || !partition.serving,
        ).length;
        if (view.partitions.length === partitionCount && unwell === 0) return;
        last = `${view.nodes.length} of ${nodeCount} nodes registered, ${unwell} of ${view.partitions.length} partitions not healthy`;
      } else if (!isBootstrapped) {
        const result = await this.askToBootstrap(settings);
        isBootstrapped = result.status === 'Ok';
        last = `bootstrap: ${result.status}${result.reason === undefined ? '' : ` (${result.reason})`}`;
      }
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
    throw new Error(`${last} after ${Math.round(deadlineMs / 1_000)} s`);
  }

  async facts(): Promise<SystemFacts> {
    const view = await this.view();
    return {
      build: '',
      replicationFactor: view.replicationFactor,
      minInSync: view.minInSync,
      partitions: view.partitionCount,
      versions: [],
    };
  }

  async peek(nodeId: string, partition: number, keys: readonly string[]): Promise<Peeked | null> {
    const client = await this.shared(0);
    const { copy, status } = await client.peek(nodeId, partition, keys, { timeoutMs: peekTimeoutMs, maxAttempts: 1 });
    if (status !== 'Ok' || copy === undefined) return null;
    return {
      nodeId,
      incarnation: null,
      role: copy.role,
      applied: [copy.applied.term, copy.applied.seq],
      commitSeq: copy.commitSeq,
      digest: copy.digest,
      keyCount: copy.keyCount,
      keys: copy.values.map(({ key, value, version }) => ({
        key,
        value: value ?? null,
        version: version === undefined ? null : [version.term, version.seq],
      })),
    };
  }

  events(): ReturnType<ZarisEvents['poll']> {
    return this.notices.poll();
  }

  nodeAdded(address: NodeAddress): void {
    this.addresses.push(address);
    this.moves.added(address.nodeId);
  }

  nodeRemoved(nodeId: string): void {
    const at = this.addresses.findIndex((address) => address.nodeId === nodeId);
    // In place: the notices are collected from the same list.
    if (at >= 0) this.addresses.splice(at, 1);
    this.moves.removed(nodeId);
  }

  async close(): Promise<void> {
    this.moves.close();
    const clients = await Promise.allSettled(this.clients.splice(0));
    for (const each of clients) if (each.status === 'fulfilled') await each.value.close();
  }

  /** One of the clients that the sessions share; opened without waiting for a map, which a new cluster does not have. */
  private shared(index: number): Promise<ZarisClient> {
    const seeds = this.addresses.map((address) => `${address.host}:${address.clientPort}`).join(',');
    return (this.clients[index] ??= ZarisClient.connect(`zaris://${seeds}/`, { connectTimeoutMs: 0 }));
  }

  private async askToBootstrap(
    settings: ClusterSettings,
  ): Promise<{ readonly status: string; readonly reason?: string }> {
    const [first] = this.addresses;
    if (first === undefined) throw new Error('the cluster has no nodes');
    const client = await this.shared(0);
    return client.admin({ kind: 'bootstrap', settings }, `${first.host}:${first.clientPort}`, {
      timeoutMs: adminTimeoutMs,
      maxAttempts: 1,
    });
  }

  /** To any node, and on to the control leader; whether it was done the next view tells. */
  private async askLeader(command: AdminCommand): Promise<void> {
    const client = await this.shared(0);
    for (const { host, clientPort } of this.addresses) {
      const result = await client.admin(command, `${host}:${clientPort}`, {
        timeoutMs: adminTimeoutMs,
        maxAttempts: 1,
      });
      if (result.isSuccess) return;
    }
  }

  private async view(): Promise<ClusterView> {
    const view = await newestView(this.addresses);
    if (view === null) throw new Error('no node gave a confirmed view of the cluster');
    return view;
  }

  private async readStatus(): Promise<SystemStatus | null> {
    const view = await newestView(this.addresses);
    if (view === null || view.partitions.length === 0) return null;
    for (const node of view.nodes) this.notices.incarnation(node.nodeId, node.incarnation);
    return statusOfView(view, this.nowMs());
  }
}
