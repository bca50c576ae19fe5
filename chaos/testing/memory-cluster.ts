/**
 * A replicated store's nodes in memory, as far as chaos can tell: processes with incarnations, links, and in-sync sets that
 * shrink and grow by the rules of DESIGN §4. For tests of chaos; it keeps no data, but it knows when data would be gone.
 *
 * Invariant: a partition is Lost exactly when every incarnation that was in sync (or eligible) has ended.
 */
import { assert } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { clientEndpoint } from '../partitions.ts';
import type {
  Cluster,
  ClockProbe,
  EffectProbe,
  Endpoint,
  LinkRule,
  NodeState,
  ProbeResult,
  Sleeper,
  StatusSource,
  SystemStatus,
} from '../ports.ts';

interface MemoryNode {
  state: NodeState;
  incarnation: number;
  disk: number;
  /** When it was last heard by a majority; 0 while it never was in this life. */
  heardMs: number;
  clockOffsetMs: number;
}

interface MemoryPartition {
  readonly replicas: readonly string[];
  epoch: number;
  primary: string | null;
  /** nodeId → incarnation. */
  inSync: Map<string, number>;
  /** nodeId → since when it has been catching up. */
  joining: Map<string, number>;
  isLost: boolean;
}

export interface MemoryClusterOptions {
  readonly nodeCount: number;
  readonly partitionCount: number;
  readonly replicationFactor: number;
  readonly clock: Clock;
  readonly sleeper: Sleeper;
  /** How long a new member takes to come in sync. */
  readonly catchUpMs: number;
}

/** Time that an action on a process or on links takes. */
const actionMs = { kill: 200, stop: 300, start: 800, pause: 40, links: 60, probe: 20, status: 10 };
const silentReplicaMs = 1_000;
const silentPrimaryMs = 10_000;

/** The cluster and its own status. Call `tick` every 100 ms or so. */
export class MemoryCluster implements Cluster, StatusSource {
  readonly kind = 'sim';
  readonly nodes = new Map<string, MemoryNode>();
  readonly partitions: MemoryPartition[] = [];
  rules: readonly LinkRule[] = [];
  failovers = 0;
  voters: string[];
  private lastNumber: number;
  protected readonly options: MemoryClusterOptions;

  constructor(options: MemoryClusterOptions) {
    this.options = options;
    this.lastNumber = options.nodeCount;
    for (let index = 1; index <= options.nodeCount; index++) this.create(`n${index}`);
    this.voters = [...this.nodes.keys()].slice(0, 5);
    const nodeIds = this.nodeIds();
    for (let partition = 0; partition < options.partitionCount; partition++) {
      const replicas = Array.from(
        { length: options.replicationFactor },
        (_, offset) => nodeIds[(partition + offset) % nodeIds.length] as string,
      );
      this.partitions.push({
        replicas,
        epoch: 1,
        primary: replicas[0] ?? null,
        inSync: new Map(replicas.map((nodeId) => [nodeId, 1])),
        joining: new Map(),
        isLost: false,
      });
    }
  }

  private create(nodeId: string): void {
    const now = this.options.clock.nowMs();
    const state: NodeState = { kind: 'running', since: now, instance: `${nodeId}#1` };
    this.nodes.set(nodeId, { state, incarnation: 1, disk: 1, heardMs: now, clockOffsetMs: 0 });
  }

  protected node(nodeId: string): MemoryNode {
    const node = this.nodes.get(nodeId);
    if (node === undefined) throw new Error(`there is no node ${nodeId}`);
    return node;
  }

  nodeIds(): readonly string[] {
    return [...this.nodes.keys()];
  }

  async startNode(nodeId: string): Promise<void> {
    await this.options.sleeper.sleep(actionMs.start);
    const node = this.node(nodeId);
    if (node.state.kind === 'running' || node.state.kind === 'paused') return;
    node.incarnation += 1;
    node.heardMs = 0;
    node.state = { kind: 'running', since: this.options.clock.nowMs(), instance: `${nodeId}#${node.incarnation}` };
  }

  async addNode(): Promise<string> {
    await this.options.sleeper.sleep(actionMs.start);
    const nodeId = `n${++this.lastNumber}`;
    this.create(nodeId);
    return nodeId;
  }

  async removeNode(nodeId: string): Promise<void> {
    await this.options.sleeper.sleep(actionMs.kill);
    this.end(nodeId, 0, false);
    this.nodes.delete(nodeId);
    this.voters = this.voters.filter((voter) => voter !== nodeId);
  }

  async kill(nodeId: string): Promise<void> {
    await this.options.sleeper.sleep(actionMs.kill);
    this.end(nodeId, 137, false);
  }

  async stop(nodeId: string, graceMs: number): Promise<void> {
    await this.options.sleeper.sleep(Math.min(graceMs, actionMs.stop));
    this.end(nodeId, 0, false);
  }

  async oom(nodeId: string): Promise<void> {
    await this.options.sleeper.sleep(actionMs.kill);
    this.end(nodeId, 137, true);
  }

  protected end(nodeId: string, exitCode: number, oomKilled: boolean): void {
    const node = this.node(nodeId);
    if (node.state.kind !== 'running' && node.state.kind !== 'paused') return;
    node.state = { kind: 'exited', instance: node.state.instance, exitCode, oomKilled };
  }

  async pause(nodeId: string): Promise<void> {
    await this.options.sleeper.sleep(actionMs.pause);
    const node = this.node(nodeId);
    if (node.state.kind === 'paused') return;
    if (node.state.kind !== 'running') throw new Error(`${nodeId} is ${node.state.kind} and cannot be paused`);
    node.state = { kind: 'paused', instance: node.state.instance };
  }

  async resume(nodeId: string): Promise<void> {
    await this.options.sleeper.sleep(actionMs.pause);
    const node = this.node(nodeId);
    if (node.state.kind !== 'paused') return;
    node.state = { kind: 'running', since: this.options.clock.nowMs(), instance: node.state.instance };
  }

  async wipe(nodeId: string): Promise<void> {
    await this.options.sleeper.sleep(actionMs.kill);
    this.node(nodeId).disk += 1;
  }

  async setCuts(cuts: readonly { readonly from: Endpoint; readonly to: Endpoint }[]): Promise<void> {
    await this.setLinkRules(cuts.map((cut) => ({ kind: 'drop', ...cut })));
  }

  async setLinkRules(rules: readonly LinkRule[]): Promise<void> {
    await this.options.sleeper.sleep(actionMs.links);
    // As the real ones do.
    const gone = rules
      .flatMap(({ from, to }) => [from, to])
      .find((end) => end !== 'client' && !this.nodeIds().includes(end));
    if (gone !== undefined) throw new Error(`There is no node ${gone} in this cluster.`);
    this.rules = rules;
  }

  async setClockOffset(nodeId: string, offsetMs: number): Promise<void> {
    await this.options.sleeper.sleep(actionMs.links);
    this.node(nodeId).clockOffsetMs = offsetMs;
  }

  async state(nodeId: string): Promise<NodeState> {
    await this.options.sleeper.sleep(actionMs.probe);
    return this.nodes.get(nodeId)?.state ?? { kind: 'absent' };
  }

  /** Packets from one end to the other arrive (losses aside). */
  private passes(from: Endpoint, to: Endpoint): boolean {
    return !this.rules.some(
      (rule) => (rule.kind === 'drop' || rule.kind === 'reset') && rule.from === from && rule.to === to,
    );
  }

  private answers(end: Endpoint): boolean {
    return end === clientEndpoint || this.nodes.get(end)?.state.kind === 'running';
  }

  private connects(from: Endpoint, to: Endpoint): boolean {
    return this.answers(from) && this.answers(to) && this.passes(from, to) && this.passes(to, from);
  }

  private async probed(isThere: () => boolean): Promise<ProbeResult> {
    await this.options.sleeper.sleep(actionMs.probe);
    const reached = isThere();
    return {
      outcome: reached ? 'reachable' : 'unreachable',
      atMs: this.options.clock.nowMs(),
      evidence: reached ? 'connected' : 'timed out',
    };
  }

  probeLink(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    return this.probed(() => this.connects(from, to));
  }

  probePacket(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    return this.probed(() => this.answers(from) && this.answers(to) && this.passes(from, to));
  }

  probeNode(nodeId: string): Promise<ProbeResult> {
    return this.probed(() => this.connects(clientEndpoint, nodeId));
  }

  async probeRule(rule: LinkRule): Promise<EffectProbe> {
    await this.options.sleeper.sleep(actionMs.probe);
    const stands = this.rules.some((one) => one.kind === rule.kind && one.from === rule.from && one.to === rule.to);
    return { effect: stands ? 'seen' : 'absent', atMs: this.options.clock.nowMs(), evidence: 'measured' };
  }

  async probeClock(nodeId: string): Promise<ClockProbe> {
    await this.options.sleeper.sleep(actionMs.probe);
    return { wallOffsetMs: this.node(nodeId).clockOffsetMs, monotonicOffsetMs: 0, atMs: this.options.clock.nowMs() };
  }

  unsupported(): Promise<ReadonlyMap<string, string>> {
    return Promise.resolve(new Map());
  }

  /** The voters that a node hears both ways, itself included, are a majority. */
  private isHeard(nodeId: string): boolean {
    if (!this.answers(nodeId)) return false;
    const heard = this.voters.filter((voter) => (voter === nodeId ? true : this.connects(nodeId, voter)));
    return heard.length > this.voters.length / 2;
  }

  private leader(): string | null {
    return this.voters.find((voter) => this.isHeard(voter)) ?? null;
  }

  async status(): Promise<SystemStatus | null> {
    await this.options.sleeper.sleep(actionMs.status);
    const leader = this.leader();
    if (leader === null) return null;
    const now = this.options.clock.nowMs();
    return {
      atMs: now,
      leader,
      voters: [...this.voters],
      voterDisks: Object.fromEntries(this.voters.map((voter) => [voter, String(this.nodes.get(voter)?.disk ?? 0)])),
      nodes: [...this.nodes].map(([nodeId, node]) => ({
        nodeId,
        incarnation: node.incarnation,
        alive: now - node.heardMs <= silentPrimaryMs && node.state.kind !== 'exited',
      })),
      minInSync: this.options.replicationFactor >= 3 ? 2 : 1,
      partitions: this.partitions.map((one, partition) => {
        const current = [...one.inSync].filter(([nodeId, member]) => this.nodes.get(nodeId)?.incarnation === member);
        const inSync = current.map(([nodeId]) => nodeId);
        const isFull = one.replicas.every((nodeId) => inSync.includes(nodeId) && this.answers(nodeId));
        return {
          partition,
          epoch: one.epoch,
          term: one.epoch,
          primary: one.primary,
          preferredPrimary: one.replicas[0] ?? null,
          replicas: one.replicas,
          inSync,
          eligible: [],
          joining: [...one.joining.keys()],
          health: one.isLost ? 'Lost' : one.primary === null ? 'Unavailable' : isFull ? 'Healthy' : 'Degraded',
          serving: one.primary !== null,
        };
      }),
    };
  }

  /** Lets the cluster notice what has happened since the last tick. */
  tick(): void {
    const now = this.options.clock.nowMs();
    for (const [nodeId, node] of this.nodes) if (this.isHeard(nodeId)) node.heardMs = now;
    for (const partition of this.partitions) this.tickPartition(partition, now);
  }

  private isAlive(nodeId: string, member: number): boolean {
    const node = this.nodes.get(nodeId);
    return node !== undefined && node.incarnation === member && node.state.kind !== 'exited';
  }

  private tickPartition(partition: MemoryPartition, now: number): void {
    const { inSync } = partition;
    // Memory is gone with its incarnation, whatever the control plane knows.
    if (inSync.size > 0 && [...inSync].every(([nodeId, member]) => !this.isAlive(nodeId, member)))
      partition.isLost = true;
    if (this.leader() === null || partition.isLost) return;
    const healthy = [...inSync].filter(([nodeId, member]) => this.isAlive(nodeId, member) && this.isHeard(nodeId));
    for (const [nodeId, member] of [...inSync]) {
      const silentMs = now - (this.nodes.get(nodeId)?.heardMs ?? 0);
      const limitMs = nodeId === partition.primary ? silentPrimaryMs : silentReplicaMs;
      const isDead = !this.isAlive(nodeId, member);
      if (!isDead && silentMs <= limitMs) continue;
      // The last known set is kept when nobody could take over.
      if (!healthy.some(([other]) => other !== nodeId)) continue;
      inSync.delete(nodeId);
      partition.epoch += 1;
      if (nodeId === partition.primary) partition.primary = null;
    }
    if (partition.primary === null || !inSync.has(partition.primary)) {
      const next = [...inSync].find(([nodeId, member]) => this.isAlive(nodeId, member) && this.isHeard(nodeId));
      partition.primary = next?.[0] ?? null;
      if (next !== undefined) {
        partition.epoch += 1;
        this.failovers += 1;
      }
    }
    for (const nodeId of partition.replicas) {
      const node = this.nodes.get(nodeId);
      if (node === undefined || !this.isHeard(nodeId) || inSync.has(nodeId) || partition.primary === null) {
        partition.joining.delete(nodeId);
        continue;
      }
      const since = partition.joining.get(nodeId) ?? now;
      partition.joining.set(nodeId, since);
      if (now - since < this.options.catchUpMs) continue;
      partition.joining.delete(nodeId);
      inSync.set(nodeId, node.incarnation);
      partition.epoch += 1;
    }
    assert(inSync.size > 0, 'an in-sync set is never empty');
  }

  lostPartitions(): readonly number[] {
    return this.partitions.flatMap((one, partition) => (one.isLost ? [partition] : []));
  }

  /** Nothing of ours stands: all run, no rule, clocks right. */
  isUnhurt(): boolean {
    return (
      this.rules.length === 0 &&
      [...this.nodes.values()].every((node) => node.state.kind === 'running' && node.clockOffsetMs === 0)
    );
  }
}
