/**
 * For tests of the run loop: a replicated store in one Map and a cluster of objects. Failovers happen when the primary's node
 * is killed or paused; nothing is ever lost unless a test plants it.
 */
import type { Cluster, ClusterEvent, NodeState, ProbeResult, SystemStatus } from '../../chaos/ports.ts';
import type { StoreClient } from '../../workloads/port.ts';
import { MemoryStore } from '../../workloads/memory-store.ts';
import type { RunCluster } from '../clusters/run-cluster.ts';
import type { ClusterPlan, Peeked, RunningSystem, System } from '../systems/system.ts';

/** How long a partition answers nobody after its primary was lost, and how long a restarted node takes to be in sync, ms. */
const failoverMs = 60;
const catchUpMs = 150;

interface MemoryNode {
  state: NodeState;
  incarnation: number;
  /** When it has caught up after a start. */
  inSyncAtMs: number;
}

interface MemoryPartition {
  epoch: number;
  term: number;
  primary: string;
  servesFromMs: number;
  signature: string;
}

export function partitionOfKey(key: string, partitionCount: number): number {
  let hash = 7;
  for (let index = 0; index < key.length; index++) hash = (Math.imul(hash, 31) + key.charCodeAt(index)) >>> 0;
  return hash % partitionCount;
}

export class MemoryWorld implements Cluster {
  readonly kind = 'process';
  readonly store = new MemoryStore();
  readonly removed: string[] = [];
  disposed = 0;
  /** Answers of clients are lost with this probability; the operation has run. */
  lostAnswers = 0;
  private readonly nodes = new Map<string, MemoryNode>();
  private readonly partitions: MemoryPartition[] = [];
  private plan: ClusterPlan | null = null;
  private instances = 0;
  private pendingEvents: ClusterEvent[] = [];
  private readonly nowMs: () => number;

  constructor(nodeCount: number, nowMs: () => number = () => performance.now()) {
    this.nowMs = nowMs;
    for (let index = 1; index <= nodeCount; index++) this.nodes.set(`n${index}`, this.freshNode(0));
  }

  nodeIds(): readonly string[] {
    return [...this.nodes.keys()];
  }

  async startNode(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state.kind === 'running' || node.state.kind === 'paused') return;
    const fresh = this.freshNode(node.incarnation);
    this.nodes.set(nodeId, { ...fresh, inSyncAtMs: this.nowMs() + catchUpMs });
  }

  async addNode(): Promise<string> {
    const nodeId = `n${this.nodes.size + 1}`;
    this.nodes.set(nodeId, this.freshNode(0));
    return nodeId;
  }

  async removeNode(nodeId: string): Promise<void> {
    this.nodes.delete(nodeId);
  }

  async kill(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state.kind === 'running' || node.state.kind === 'paused')
      node.state = { kind: 'exited', instance: node.state.instance, exitCode: 137, oomKilled: false };
  }

  stop(nodeId: string): Promise<void> {
    return this.kill(nodeId);
  }

  async pause(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state.kind === 'running') node.state = { kind: 'paused', instance: node.state.instance };
  }

  async resume(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state.kind === 'paused') {
      node.state = { kind: 'running', since: this.nowMs(), instance: node.state.instance };
      node.inSyncAtMs = this.nowMs() + catchUpMs;
    }
  }

  async wipe(nodeId: string): Promise<void> {
    await this.kill(nodeId);
  }

  async setCuts(): Promise<void> {}

  async state(nodeId: string): Promise<NodeState> {
    return this.nodes.get(nodeId)?.state ?? { kind: 'absent' };
  }

  async probeLink(_from: string, to: string): Promise<ProbeResult> {
    return to === 'client' ? { outcome: 'reachable', atMs: this.nowMs(), evidence: 'client' } : this.probeNode(to);
  }

  async probeNode(nodeId: string): Promise<ProbeResult> {
    const { kind } = await this.state(nodeId);
    return { outcome: kind === 'running' ? 'reachable' : 'unreachable', atMs: this.nowMs(), evidence: kind };
  }

  async unsupported(): Promise<ReadonlyMap<string, string>> {
    return new Map([
      ['partition', 'there is no network'],
      ['client-partition', 'there is no network'],
    ]);
  }

  asRunCluster(): RunCluster {
    return {
      cluster: this,
      addresses: () => this.nodeIds().map((nodeId) => ({ nodeId, host: 'memory', clientPort: 0, httpPort: 0 })),
      build: 'memory',
      engine: null,
      versions: [],
      logTail: async () => '',
      keep: async () => 'nothing to remove',
      dispose: async () => {
        this.disposed++;
      },
    };
  }

  asSystem(): System {
    return {
      name: 'memory',
      contract: () => ({ acknowledgement: 'kept as long as the process lives', durable: true, permittedLoss: null }),
      capabilities: { versions: true, compareAndSet: true, create: true, counters: true, ttl: true, peek: true },
      clientPromises: { maxAttempts: null, deadlineMs: null },
      defaultMinInSync: (replicationFactor) => (replicationFactor >= 3 ? 2 : 1),
      nodeEnvironment: () => ({}),
      connect: ({ plan }) => this.running(plan),
    };
  }

  partitionOf(key: string): number {
    return partitionOfKey(key, this.plan?.partitionCount ?? 1);
  }

  private freshNode(incarnation: number): MemoryNode {
    return {
      state: { kind: 'running', since: this.nowMs(), instance: `i${++this.instances}` },
      incarnation: incarnation + 1,
      inSyncAtMs: 0,
    };
  }

  private node(nodeId: string): MemoryNode {
    const node = this.nodes.get(nodeId);
    if (node === undefined) throw new Error(`There is no node ${nodeId}.`);
    return node;
  }

  private running(plan: ClusterPlan): RunningSystem {
    this.plan = plan;
    const nodeIds = this.nodeIds();
    // Whoever takes the cluster over finds the partitions as they stand.
    for (let index = this.partitions.length; index < plan.partitionCount; index++) {
      this.partitions.push({
        epoch: 1,
        term: 1,
        primary: nodeIds[index % nodeIds.length] as string,
        servesFromMs: 0,
        signature: '',
      });
    }
    return {
      client: () => this.client(),
      status: { status: async () => this.look() },
      partitionOf: (key) => this.partitionOf(key),
      bootstrap: async () => undefined,
      facts: async () => ({
        build: 'memory',
        replicationFactor: plan.replicationFactor,
        minInSync: plan.minInSync,
        partitions: plan.partitionCount,
        versions: [],
      }),
      peek: async (nodeId, partition, keys) => this.peek(nodeId, partition, keys),
      events: async () => this.pendingEvents.splice(0),
      nodeAdded: () => undefined,
      close: async () => undefined,
    };
  }

  private client(): StoreClient {
    return {
      execute: async (operation) => {
        const partition = this.partitionOf(operation.key);
        for (let waited = 0; waited < 2_000; waited += 5) {
          const status = this.look().partitions[partition];
          if (status?.serving === true) {
            const completion = this.store.execute(operation, this.nowMs());
            await new Promise((resolve) => setImmediate(resolve));
            if (Math.random() < this.lostAnswers) return { kind: 'info', error: 'answer lost' };
            return {
              ...completion,
              partition,
              epoch: status.epoch,
              ...(status.primary === null ? {} : { node: status.primary }),
              attempts: 1,
            };
          }
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return { kind: 'info', error: 'timeout' };
      },
      close: async () => undefined,
    };
  }

  private peek(nodeId: string, partition: number, keys: readonly string[]): Peeked | null {
    const node = this.nodes.get(nodeId);
    if (node?.state.kind !== 'running') return null;
    return {
      nodeId,
      incarnation: node.incarnation,
      role: this.look().partitions[partition]?.primary === nodeId ? 'primary' : 'replica',
      applied: [1, 1],
      commitSeq: 1,
      digest: `d${partition}`,
      keyCount: keys.length,
      keys: keys.map((key) => ({ key, ...this.store.peek(key, this.nowMs()) })),
    };
  }

  /** The status now; takes note of every failover that the nodes' states imply. */
  private look(): SystemStatus {
    const nowMs = this.nowMs();
    const nodeIds = this.nodeIds();
    const isAlive = (nodeId: string): boolean => this.nodes.get(nodeId)?.state.kind === 'running';
    const isInSync = (nodeId: string): boolean => isAlive(nodeId) && (this.nodes.get(nodeId)?.inSyncAtMs ?? 0) <= nowMs;
    const copies = this.plan?.replicationFactor ?? 1;
    const partitions = this.partitions.map((partition, index) => {
      const replicas = Array.from(
        { length: copies },
        (_, offset) => nodeIds[(index + offset) % nodeIds.length] as string,
      );
      const inSync = replicas.filter(isInSync);
      if (!inSync.includes(partition.primary) && inSync.length > 0) {
        partition.epoch++;
        partition.term = partition.epoch;
        partition.primary = inSync[0] as string;
        partition.servesFromMs = nowMs + failoverMs;
      }
      const serving = inSync.includes(partition.primary) && partition.servesFromMs <= nowMs;
      const health = !serving ? 'Recovering' : inSync.length === copies ? 'Healthy' : 'Degraded';
      const signature = `${health} ${inSync.join()}`;
      if (partition.signature !== signature) partition.epoch++;
      partition.signature = signature;
      return {
        partition: index,
        epoch: partition.epoch,
        term: partition.term,
        primary: inSync.length > 0 ? partition.primary : null,
        preferredPrimary: replicas[0] as string,
        replicas,
        inSync,
        eligible: [],
        joining: [],
        health,
        serving,
      };
    });
    return {
      atMs: nowMs,
      leader: nodeIds.find(isAlive) ?? null,
      voters: nodeIds,
      minInSync: this.plan?.minInSync ?? 1,
      nodes: nodeIds.map((nodeId) => ({
        nodeId,
        incarnation: this.nodes.get(nodeId)?.incarnation ?? 0,
        alive: isAlive(nodeId),
      })),
      partitions,
    };
  }
}
