/**
 * The simulated cluster as chaos sees it: the same port that containers implement, so the same schedules, budget, probes and
 * journal play here. Probes look at the world itself; they can be neither late nor fooled.
 */
import type {
  ClockProbe,
  Cluster,
  ClusterEvent,
  EffectProbe,
  Endpoint,
  EventSource,
  LinkRule,
  NodeState,
  ProbeResult,
  StatusSource,
  SystemStatus,
} from '../chaos/ports.ts';
import { clientEndpoint } from '../chaos/partitions.ts';
import { statusOfView } from '../harness/systems/zaris-status.ts';
import type { AdminCommand } from '../zaris/model/client-wire.ts';
import { type NodeId, nodeId as asNodeId } from '../zaris/model/ids.ts';
import type { RaftConfig } from '../zaris/model/raft-wire.ts';
import type { Node } from '../zaris/node/node.ts';
import type { Turns } from './turns.ts';
import type { World } from './world.ts';
import type { SimNode } from './world-node.ts';

/** How often an administrative wish is asked for again, ms. */
const adminEveryMs = 1_000;
/** Asked this often at most. */
const adminTries = 240;

/** The ready control leader of the highest raft term, if any runs: what a quorum-confirmed read would reach. */
export function controlLeader(world: World): Node | null {
  let best: Node | null = null;
  for (const { running, paused } of world.nodes.values()) {
    if (running === null || paused || !running.node.planes.control.isLeader) continue;
    if (best === null || running.node.planes.control.raft.raftTerm > best.planes.control.raft.raftTerm)
      best = running.node;
  }
  return best;
}

interface KnownStatus {
  readonly revision: number;
  readonly config: RaftConfig;
  readonly leader: NodeId | null;
  readonly status: SystemStatus;
}

/** What a node's state said when it was asked last: chaos asks more often than anything changes. */
const knownStatuses = new WeakMap<Node, KnownStatus>();

/** Status by the control leader; null while there is none. */
export function statusOf(world: World): SystemStatus | null {
  const node = controlLeader(world);
  if (node === null || node.planes.control.state.mapVersion === 0) return null;
  const { state, raft, leader } = node.planes.control;
  const config = raft.committedConfig;
  const { revision } = state;
  const known = knownStatuses.get(node);
  if (known !== undefined && known.revision === revision && known.config === config && known.leader === leader)
    return { ...known.status, atMs: world.nowMs };
  const status = statusOfView(node.view(), world.nowMs);
  knownStatuses.set(node, { revision, config, leader, status });
  return status;
}

/** Hands events on to whoever subscribed, and tells that somebody may go on. */
export class EventHub implements EventSource {
  private readonly listeners = new Set<(event: ClusterEvent) => void>();
  private readonly turns: Turns;

  constructor(turns: Turns) {
    this.turns = turns;
  }

  subscribe(listener: (event: ClusterEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  publish(event: ClusterEvent): void {
    if (this.listeners.size === 0) return;
    for (const listener of this.listeners) listener(event);
    this.turns.news();
  }
}

export class SimCluster implements Cluster, StatusSource {
  readonly kind = 'sim';
  private readonly world: World;
  private readonly turns: Turns;
  private readonly exits = new Map<NodeId, { exitCode: number; oomKilled: boolean }>();
  private readonly clockOffsets = new Map<string, number>();
  private stopping: { readonly nodeId: NodeId; readonly instance: number; readonly resolve: () => void }[] = [];

  constructor(world: World, turns: Turns) {
    this.world = world;
    this.turns = turns;
    const before = world.onStopped;
    world.onStopped = (nodeId, instance) => {
      before(nodeId, instance);
      this.onStopped(nodeId, instance);
    };
  }

  nodeIds(): readonly string[] {
    return [...this.world.nodes.values()].filter((node) => !node.removed).map((node) => node.nodeId);
  }

  async startNode(nodeId: string): Promise<void> {
    this.world.start(asNodeId(nodeId));
  }

  async addNode(): Promise<string> {
    const nodeId = asNodeId(`n${this.world.nodes.size + 1}`);
    this.world.addNode(nodeId);
    this.world.start(nodeId);
    // It gets its share of the copies once it has registered.
    this.ask({ kind: 'rebalance', leaving: [] }, (leader) => {
      const { state } = leader.planes.control;
      return (
        state.current(nodeId) !== null && state.placements.some((placement) => placement.replicas.includes(nodeId))
      );
    });
    return nodeId;
  }

  async removeNode(nodeId: string): Promise<void> {
    const id = asNodeId(nodeId);
    this.world.kill(id);
    this.world.remove(id);
    this.ask({ kind: 'rebalance', leaving: [id] }, (leader) => leader.planes.control.state.node(id) === undefined);
  }

  /** Asks the control leader until `isDone` holds there, within a bound. */
  private ask(command: AdminCommand, isDone: (leader: Node) => boolean, tries = adminTries): void {
    const { world } = this;
    world.at(world.nowMs + adminEveryMs, () => {
      const leader = controlLeader(world);
      if (leader !== null && isDone(leader)) return;
      if (leader !== null) world.request(leader.identity().nodeId, 0, { op: 'admin', id: tries, command });
      if (tries > 0) this.ask(command, isDone, tries - 1);
    });
  }

  async kill(nodeId: string): Promise<void> {
    this.end(nodeId, 137, false);
  }

  async oom(nodeId: string): Promise<void> {
    this.end(nodeId, 137, true);
  }

  private end(nodeId: string, exitCode: number, oomKilled: boolean): void {
    this.world.kill(asNodeId(nodeId));
    this.exits.set(asNodeId(nodeId), { exitCode, oomKilled });
  }

  stop(nodeId: string, graceMs: number): Promise<void> {
    const { world } = this;
    const id = asNodeId(nodeId);
    const instance = world.instance(id);
    if (instance === null) return Promise.resolve();
    world.shutdown(id);
    world.at(world.nowMs + graceMs, () => {
      if (world.instance(id) === instance) this.end(id, 137, false);
    });
    return new Promise((resolve) => void this.stopping.push({ nodeId: id, instance, resolve }));
  }

  private onStopped(nodeId: NodeId, instance: number): void {
    this.exits.set(nodeId, { exitCode: 0, oomKilled: false });
    const ended = this.stopping.filter((one) => one.nodeId === nodeId && one.instance === instance);
    if (ended.length === 0) return;
    this.stopping = this.stopping.filter((one) => !ended.includes(one));
    for (const one of ended) one.resolve();
    this.turns.news();
  }

  async pause(nodeId: string): Promise<void> {
    this.world.pause(asNodeId(nodeId));
  }

  async resume(nodeId: string): Promise<void> {
    this.world.resume(asNodeId(nodeId));
  }

  async wipe(nodeId: string): Promise<void> {
    this.end(nodeId, 137, false);
    this.world.wipe(asNodeId(nodeId));
  }

  async setCuts(cuts: readonly { readonly from: Endpoint; readonly to: Endpoint }[]): Promise<void> {
    this.world.setLinkRules(cuts.map((cut) => ({ kind: 'drop', ...cut })));
  }

  async setLinkRules(rules: readonly LinkRule[]): Promise<void> {
    this.world.setLinkRules(rules);
  }

  async state(nodeId: string): Promise<NodeState> {
    const node = this.found(nodeId);
    if (node === undefined) return { kind: 'absent' };
    const instance = `${nodeId}-${node.starts}`;
    if (node.running === null) {
      const exit = this.exits.get(node.nodeId) ?? { exitCode: 0, oomKilled: false };
      return { kind: 'exited', instance, ...exit };
    }
    return node.paused ? { kind: 'paused', instance } : { kind: 'running', since: 0, instance };
  }

  private found(nodeId: string): SimNode | undefined {
    const node = this.world.nodes.get(asNodeId(nodeId));
    return node === undefined || node.removed ? undefined : node;
  }

  async probeLink(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    const atMs = this.world.nowMs;
    const { network } = this.world;
    for (const end of [from, to]) {
      if (end === clientEndpoint) continue;
      const node = this.found(end);
      if (node === undefined || node.running === null || node.paused)
        return { outcome: 'unreachable', atMs, evidence: `${end} does not run` };
    }
    if (network.isCut(from, to) || network.isCut(to, from)) return { outcome: 'unreachable', atMs, evidence: 'cut' };
    if (network.isReset(from, to)) return { outcome: 'unreachable', atMs, evidence: 'reset' };
    return { outcome: 'reachable', atMs, evidence: 'open' };
  }

  async probePacket(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    const isCut = this.world.network.isCut(from, to);
    return { outcome: isCut ? 'unreachable' : 'reachable', atMs: this.world.nowMs, evidence: isCut ? 'cut' : 'open' };
  }

  async probeRule(rule: LinkRule): Promise<EffectProbe> {
    const weakness = this.world.network.weakness(rule.from, rule.to);
    const holds =
      weakness !== null &&
      ((rule.kind === 'loss' && weakness.lossPercent > 0) ||
        (rule.kind === 'delay' && weakness.delayMs > 0) ||
        (rule.kind === 'rate' && weakness.bytesPerSecond > 0));
    return { effect: holds ? 'seen' : 'absent', atMs: this.world.nowMs, evidence: JSON.stringify(weakness) };
  }

  probeNode(nodeId: string): Promise<ProbeResult> {
    return this.probeLink(clientEndpoint, nodeId);
  }

  async setClockOffset(nodeId: string, offsetMs: number): Promise<void> {
    this.clockOffsets.set(nodeId, offsetMs);
  }

  /** Nodes are given monotonic time only, so a jump of the wall clock can change nothing; the probe says what was set. */
  async probeClock(nodeId: string): Promise<ClockProbe> {
    return { wallOffsetMs: this.clockOffsets.get(nodeId) ?? 0, monotonicOffsetMs: 0, atMs: this.world.nowMs };
  }

  async unsupported(): Promise<ReadonlyMap<string, string>> {
    return new Map();
  }

  async status(): Promise<SystemStatus | null> {
    return statusOf(this.world);
  }
}
