/**
 * The real cluster: one container per node on a Docker engine, in a network of its own.
 *
 * Owns everything that a run creates on the engine, from the first network to the last volume, and removes it on
 * disposal, also after a start that failed half-way. Invariant: nothing that heals a fault relies on a node being
 * able to run anything.
 */
import { present } from '../lib/assert.ts';
import type { ClockProbe, Cluster, EffectProbe, Endpoint, LinkRule, NodeState, ProbeResult } from '../chaos/ports.ts';
import { findRun, takeOwnership } from './adoption.ts';
import type { FoundRun } from './adoption.ts';
import { clockOffsets, readClocks } from './clock-fault.ts';
import type { DockerClusterOptions, NodeAddress } from './cluster-options.ts';
import type { CommandResult } from './command.ts';
import { SeatContainer, zarisPorts } from './containers.ts';
import { examineHost, unsupportedFaults } from './doctor.ts';
import { EnvironmentError, messageOf } from './errors.ts';
import { freeHostPorts, isPortTaken } from './host-ports.ts';
import { currentOwner, labelsOf } from './labels.ts';
import type { Owner } from './labels.ts';
import type { Cut } from './link-rules.ts';
import { Links } from './links.ts';
import type { LinkedSeat } from './links.ts';
import { createNetwork, nodeAddress } from './network.ts';
import type { RunNetwork } from './network.ts';
import { execInContainer } from './netns.ts';
import type { NetnsMethod, Seat } from './netns.ts';
import { NodeLife, removeContainer } from './node-life.ts';
import { outOfMemoryObstacle } from './out-of-memory.ts';
import { probeHealth } from './probes.ts';
import { cleanRun } from './sweep.ts';

const portTries = 5;
const maxNodes = 200;

/** A cluster on a Docker engine; make it with {@link DockerCluster.start}. */
export class DockerCluster implements Cluster, AsyncDisposable {
  readonly kind = 'docker';
  private readonly options: DockerClusterOptions;
  private readonly owner: Owner = currentOwner();
  private readonly lives = new Map<string, NodeLife>();
  /** Nodes that are being removed for good. */
  private readonly leaving = new Set<string>();
  private readonly known = new Map<string, NodeAddress>();
  private network: RunNetwork | null = null;
  private links: Links | null = null;
  private nextIndex = 0;
  private limits: Promise<ReadonlyMap<string, string>> | null = null;

  private constructor(options: DockerClusterOptions) {
    this.options = options;
  }

  /** Creates the network and all nodes, and starts them. On failure nothing is left. Throws EnvironmentError. */
  static async start(options: DockerClusterOptions): Promise<DockerCluster> {
    // The library's own reaper needs an image that cannot be pulled everywhere; clean-up is ours.
    process.env['TESTCONTAINERS_RYUK_DISABLED'] = 'true';
    const cluster = new DockerCluster(options);
    try {
      await cluster.open(options.nodeCount ?? 5);
      return cluster;
    } catch (error) {
      await cluster.dispose();
      if (error instanceof EnvironmentError) throw error;
      throw new EnvironmentError(
        `The cluster could not be started on the engine (${messageOf(error)}): see the engine's log.`,
      );
    }
  }

  /**
   * Takes over what a dead harness left of this run: its seats, containers and disks as they stand, faults and all; the caller
   * heals them. Nothing is removed when this fails. Throws EnvironmentError when there is not enough left.
   */
  static async adopt(options: Omit<DockerClusterOptions, 'image' | 'base' | 'nodeCount'>): Promise<DockerCluster> {
    process.env['TESTCONTAINERS_RYUK_DISABLED'] = 'true';
    const { docker } = options.engine;
    const found = await findRun(docker, options.runId, options.ports ?? zarisPorts);
    if (found.kind === 'impossible')
      throw new EnvironmentError(
        `Run ${options.runId} cannot go on (${found.why}); "certify verify" judges what there is.`,
      );
    await takeOwnership(docker, options.runId);
    const { run } = found;
    const cluster = new DockerCluster({
      ...options,
      image: run.image,
      base: run.base,
      nodeCount: run.nodes.length,
      ...(run.memoryBytes > 0 ? { memoryBytes: run.memoryBytes } : {}),
    });
    await cluster.reopen(run);
    return cluster;
  }

  private async reopen(run: FoundRun): Promise<void> {
    const ports = this.options.ports ?? zarisPorts;
    this.network = run.network;
    for (const { nodeId, index, seat, ip, hostClientPort, hostHttpPort, containerId } of run.nodes) {
      this.known.set(nodeId, { nodeId, ip, ports, hostClientPort, hostHttpPort });
      const life = this.createLife(nodeId, index, seat, { containerId });
      this.lives.set(nodeId, life);
      await life.watchAdopted();
      this.nextIndex = Math.max(this.nextIndex, index + 1);
    }
    this.links = await this.openLinksOf(run.network);
  }

  private async open(nodeCount: number): Promise<void> {
    const labels = labelsOf(this.options.runId, this.owner, 'network');
    this.network = await createNetwork(this.options.engine.docker, this.name('net'), labels);
    const indexes = Array.from({ length: nodeCount }, () => this.nextIndex++);
    const results = await Promise.allSettled(indexes.map((index) => this.createSeat(index)));
    throwFirst(results);
    this.links = await this.openLinksOf(this.network);
    await this.links.setRules([]);
    throwFirst(await Promise.allSettled([...this.lives.values()].map((life) => life.start())));
  }

  private openLinksOf(network: RunNetwork): Promise<Links> {
    return Links.open({
      engine: this.options.engine,
      clock: this.options.clock,
      seats: () => this.linkedSeats(),
      gateway: network.gateway,
      listenPort: (this.options.ports ?? zarisPorts).http,
      onSet: (nodeId, via) => this.options.onEffect?.({ kind: 'links', nodeId, atMs: this.options.clock.nowMs(), via }),
    });
  }

  private linkedSeats(): ReadonlyMap<string, LinkedSeat> {
    const seats = new Map<string, LinkedSeat>();
    for (const [nodeId, life] of this.lives) {
      seats.set(nodeId, { seat: life.seat, ip: present(this.known.get(nodeId), `address of ${nodeId}`).ip });
    }
    return seats;
  }

  private name(suffix: string): string {
    return `zaris-${this.options.runId}-${suffix}`;
  }

  private async createSeat(index: number): Promise<void> {
    const nodeId = nodeIdOf(index);
    const network = present(this.network, 'network of the run');
    const ports = this.options.ports ?? zarisPorts;
    for (let attempt = 1; ; attempt++) {
      const [hostClientPort = 0, hostHttpPort = 0] = await freeHostPorts(2);
      const ip = nodeAddress(network.subnet, index);
      const name = this.name(`${nodeId}-seat`);
      try {
        const started = await new SeatContainer({
          image: this.options.base,
          name,
          hostname: nodeId,
          network: network.name,
          address: ip,
          published: new Map([
            [ports.client, hostClientPort],
            [ports.http, hostHttpPort],
          ]),
          labels: labelsOf(this.options.runId, this.owner, 'seat', nodeId),
        }).start();
        const about = await this.options.engine.docker.getContainer(started.getId()).inspect();
        this.known.set(nodeId, { nodeId, ip, ports, hostClientPort, hostHttpPort });
        this.lives.set(nodeId, this.createLife(nodeId, index, { containerId: about.Id, pid: about.State.Pid }));
        return;
      } catch (error) {
        await removeContainer(this.options.engine.docker, name);
        if (attempt === portTries || !isPortTaken(messageOf(error))) throw error;
      }
    }
  }

  private createLife(
    nodeId: string,
    index: number,
    seat: Seat,
    adopted?: { readonly containerId: string | null },
  ): NodeLife {
    const { options } = this;
    return new NodeLife({
      ...(adopted === undefined ? {} : { adopted }),
      engine: options.engine,
      clock: options.clock,
      nodeId,
      seat,
      spec: () => ({
        image: options.image,
        name: this.name(nodeId),
        seatId: seat.containerId,
        volume: this.name(`${nodeId}-disk`),
        environment: options.environment(nodeId, index, this.known),
        labels: labelsOf(options.runId, this.owner, 'node', nodeId),
        ...this.commandOf(nodeId, index),
        ...(options.memoryBytes === undefined ? {} : { memoryBytes: options.memoryBytes }),
      }),
      clockFaults: this.options.clockFaults ?? false,
      volumeLabels: labelsOf(options.runId, this.owner, 'disk', nodeId),
      logsDir: options.logsDir,
      onEffect: (effect) => options.onEffect?.(effect),
      onLogLost: (reason) => options.say?.(reason),
    });
  }

  private commandOf(nodeId: string, index: number): { readonly command?: readonly string[] } {
    const { command } = this.options;
    if (command === undefined) return {};
    return { command: typeof command === 'function' ? command(nodeId, index, this.known) : command };
  }

  private life(nodeId: string): NodeLife {
    const life = this.lives.get(nodeId);
    if (life === undefined) throw new Error(`There is no node ${nodeId} in this cluster.`);
    return life;
  }

  /** The image that its nodes run. */
  get image(): string {
    return this.options.image;
  }

  get runId(): string {
    return this.options.runId;
  }

  nodeIds(): readonly string[] {
    return [...this.lives.keys()].sort((a, b) => Number(a.slice(1)) - Number(b.slice(1)));
  }

  /** Addresses of all nodes; they hold over restart, kill, pause and wipe. */
  addresses(): ReadonlyMap<string, NodeAddress> {
    return this.known;
  }

  /** How packet rules are set: from the host, or by exec in a node's seat. */
  get netnsMethod(): NetnsMethod {
    return this.openLinks().method;
  }

  startNode(nodeId: string): Promise<void> {
    return this.life(nodeId).start();
  }

  async addNode(): Promise<string> {
    if (this.nextIndex >= maxNodes) throw new Error(`This cluster's network has room for ${maxNodes} nodes only.`);
    const index = this.nextIndex++;
    await this.createSeat(index);
    const nodeId = nodeIdOf(index);
    await this.openLinks().reconcile();
    await this.life(nodeId).start();
    return nodeId;
  }

  async removeNode(nodeId: string): Promise<void> {
    const life = this.lives.get(nodeId);
    if (life === undefined) return;
    this.leaving.add(nodeId);
    await life.remove();
    this.lives.delete(nodeId);
    this.known.delete(nodeId);
    await this.openLinks().reconcile();
  }

  /** Seats are never touched by a fault: where one has ended, the engine was restarted, or somebody else was at work. */
  async foundation(): Promise<string | null> {
    const looks = [...this.lives].map(async ([nodeId, life]) => ((await life.seatRuns()) ? null : nodeId));
    const fallen = (await Promise.all(looks)).filter((nodeId) => nodeId !== null && !this.leaving.has(nodeId));
    if (fallen.length === 0) return null;
    return `The containers that hold the network of ${fallen.join(', ')} have ended, which no fault does: the engine was restarted, or somebody removed them.`;
  }

  kill(nodeId: string): Promise<void> {
    return this.life(nodeId).kill();
  }

  stop(nodeId: string, graceMs: number): Promise<void> {
    return this.life(nodeId).stop(graceMs);
  }

  pause(nodeId: string): Promise<void> {
    return this.life(nodeId).pause();
  }

  resume(nodeId: string): Promise<void> {
    return this.life(nodeId).resume();
  }

  /** As the port says; afterwards the node's state is `absent` until it is started. */
  wipe(nodeId: string): Promise<void> {
    return this.life(nodeId).wipe();
  }

  state(nodeId: string): Promise<NodeState> {
    const life = this.lives.get(nodeId);
    return life === undefined ? Promise.resolve({ kind: 'absent' }) : life.state();
  }

  setCuts(cuts: readonly Cut[]): Promise<void> {
    return this.setLinkRules(cuts.map(({ from, to }) => ({ kind: 'drop', from, to })));
  }

  async setLinkRules(rules: readonly LinkRule[]): Promise<void> {
    await this.openLinks().setRules(rules);
  }

  probeLink(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    return this.openLinks().probeLink(from, to);
  }

  probePacket(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    return this.openLinks().probePacket(from, to);
  }

  probeRule(rule: LinkRule): Promise<EffectProbe> {
    return this.openLinks().probeRule(rule);
  }

  private openLinks(): Links {
    return present(this.links, 'links of the cluster');
  }

  async setClockOffset(nodeId: string, offsetMs: number): Promise<void> {
    await this.life(nodeId).setClockOffset(offsetMs);
  }

  /** Reads the clocks from a process beside the node's, under the same environment and offset. */
  async probeClock(nodeId: string): Promise<ClockProbe> {
    const id = this.life(nodeId).container;
    if (id === null) throw new Error(`${nodeId} has no container whose clock could be read.`);
    const reading = await readClocks(this.options.engine.docker, id, nodeId);
    return { ...clockOffsets(reading), atMs: this.options.clock.nowMs() };
  }

  oom(nodeId: string): Promise<void> {
    return this.life(nodeId).oom();
  }

  probeNode(nodeId: string): Promise<ProbeResult> {
    const address = this.known.get(nodeId);
    if (address === undefined) {
      return Promise.resolve({
        outcome: 'unreachable',
        evidence: `${nodeId} is not in this cluster`,
        atMs: this.options.clock.nowMs(),
      });
    }
    const { probe } = this.options;
    if (probe !== undefined) return probe(address);
    return probeHealth(this.options.clock, address.hostHttpPort, this.options.healthPath ?? '/health', nodeId);
  }

  unsupported(): Promise<ReadonlyMap<string, string>> {
    this.limits ??= examineHost(this.options.engine, this.options.base).then((capabilities) => {
      const reasons = new Map(unsupportedFaults(capabilities));
      if (!reasons.has('latency')) reasons.set('latency', 'the Docker cluster has no rule that delays packets');
      if (this.options.clockFaults !== true) reasons.set('clock', 'this cluster was started without clock faults');
      const obstacle = outOfMemoryObstacle(this.options.engine.local);
      if (obstacle !== null) reasons.set('oom', obstacle);
      for (const [kind, reason] of this.options.unsupportedFaults ?? []) reasons.set(kind, reason);
      return reasons;
    });
    return this.limits;
  }

  /** Runs a command in a running node; exit code -1 when it could not run (paused, dead, too late). */
  async exec(nodeId: string, command: readonly string[], timeoutMs?: number): Promise<CommandResult> {
    const id = this.life(nodeId).container;
    if (id === null) return { exitCode: -1, stdout: '', stderr: `${nodeId} has no container`, timedOut: false };
    return await execInContainer(this.options.engine.docker, id, command, timeoutMs);
  }

  /** What the node's current incarnation wrote so far, bounded. */
  logs(nodeId: string): Promise<string> {
    return this.life(nodeId).readLog();
  }

  /** Removes everything of this run from the engine, logs saved first. May be called again. */
  async dispose(): Promise<void> {
    const removed = await Promise.allSettled([...this.lives.values()].map((life) => life.remove()));
    this.lives.clear();
    this.links?.close();
    // By label, so that what a failed step left behind goes too.
    await cleanRun(this.options.engine.docker, this.options.runId);
    throwFirst(removed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }
}

const nodeIdOf = (index: number): string => `n${index + 1}`;

function throwFirst(results: readonly PromiseSettledResult<unknown>[]): void {
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
