/**
 * The real cluster: one container per node on a Docker engine, in a network of its own.
 *
 * Owns everything that a run creates on the engine, from the first network to the last volume, and removes it on
 * disposal, also after a start that failed half-way. Invariant: `setCuts` reconciles to the complete wanted set in every
 * seat, whatever state the nodes are in; nothing here relies on a node being able to run anything.
 */
import { present } from '../lib/assert.ts';
import type { Clock } from '../lib/clock.ts';
import type { Cluster, Endpoint, NodeState, ProbeResult } from '../chaos/ports.ts';
import type { CommandResult } from './command.ts';
import { lastLine } from './command.ts';
import { SeatContainer, zarisPorts } from './containers.ts';
import type { NodePorts } from './containers.ts';
import { cutRules, installChainsScript } from './cut-rules.ts';
import type { Cut } from './cut-rules.ts';
import { examineHost, unsupportedFaults } from './doctor.ts';
import type { Engine } from './engine.ts';
import { EnvironmentError, messageOf } from './errors.ts';
import { freeHostPorts, isPortTaken } from './host-ports.ts';
import { currentOwner, labelsOf } from './labels.ts';
import type { Owner } from './labels.ts';
import { createNetwork, nodeAddress } from './network.ts';
import type { RunNetwork } from './network.ts';
import { chooseNetnsMethod, execInContainer, runInNetns } from './netns.ts';
import type { NetnsMethod, Seat } from './netns.ts';
import { NodeLife, removeContainer } from './node-life.ts';
import type { Effect } from './node-life.ts';
import {
  connectScript,
  datagramScript,
  datagramsWithoutListener,
  judgeConnect,
  probeConnect,
  probeHealth,
  probePort,
  sendDatagrams,
} from './probes.ts';
import { cleanRun } from './sweep.ts';

/** Where a node is reached: `ip` from the other nodes (and from this host), the host ports on 127.0.0.1. */
export interface NodeAddress {
  readonly nodeId: string;
  readonly ip: string;
  readonly ports: NodePorts;
  readonly hostClientPort: number;
  readonly hostHttpPort: number;
}

export interface DockerClusterOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Unique name of the run; lower-case letters, digits, `-` and `_`. */
  readonly runId: string;
  /** The node image, and the base that seats are made from. */
  readonly image: string;
  readonly base: string;
  /** Default 5. */
  readonly nodeCount?: number;
  readonly ports?: NodePorts;
  readonly healthPath?: string;
  readonly command?: readonly string[];
  readonly memoryBytes?: number;
  /** Environment of a node's process; asked again whenever its container is made anew. */
  readonly environment: (
    nodeId: string,
    index: number,
    addresses: ReadonlyMap<string, NodeAddress>,
  ) => Record<string, string>;
  /** Folder for the logs of every incarnation. */
  readonly logsDir: string;
  readonly onEffect?: (effect: Effect) => void;
  readonly say?: (line: string) => void;
}

const client: Endpoint = 'client';
const portTries = 5;
const maxNodes = 200;

/** A cluster on a Docker engine; make it with {@link DockerCluster.start}. */
export class DockerCluster implements Cluster, AsyncDisposable {
  readonly kind = 'docker';
  private readonly options: DockerClusterOptions;
  private readonly owner: Owner = currentOwner();
  private readonly lives = new Map<string, NodeLife>();
  private readonly known = new Map<string, NodeAddress>();
  private network: RunNetwork | null = null;
  private method: NetnsMethod = 'exec';
  private nextIndex = 0;
  private wantedCuts: readonly Cut[] = [];
  private cutQueue: Promise<unknown> = Promise.resolve();
  private clientAnswers: boolean | null = null;
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
      throw new EnvironmentError(`The cluster could not be started on the engine (${messageOf(error)}): see the engine's log.`);
    }
  }

  private async open(nodeCount: number): Promise<void> {
    const labels = labelsOf(this.options.runId, this.owner, 'network');
    this.network = await createNetwork(this.options.engine.docker, this.name('net'), labels);
    const indexes = Array.from({ length: nodeCount }, () => this.nextIndex++);
    const results = await Promise.allSettled(indexes.map((index) => this.createSeat(index)));
    throwFirst(results);
    for (const index of indexes) present(this.lives.get(nodeIdOf(index)), `seat of ${nodeIdOf(index)}`);
    this.method = await chooseNetnsMethod(this.options.engine, this.life(nodeIdOf(0)).seat);
    await this.setCuts([]);
    throwFirst(await Promise.allSettled([...this.lives.values()].map((life) => life.start())));
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

  private createLife(nodeId: string, index: number, seat: Seat): NodeLife {
    const { options } = this;
    return new NodeLife({
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
        ...(options.command === undefined ? {} : { command: options.command }),
        ...(options.memoryBytes === undefined ? {} : { memoryBytes: options.memoryBytes }),
      }),
      volumeLabels: labelsOf(options.runId, this.owner, 'disk', nodeId),
      logsDir: options.logsDir,
      onEffect: (effect) => options.onEffect?.(effect),
      onLogLost: (reason) => options.say?.(reason),
    });
  }

  private life(nodeId: string): NodeLife {
    const life = this.lives.get(nodeId);
    if (life === undefined) throw new Error(`There is no node ${nodeId} in this cluster.`);
    return life;
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
    return this.method;
  }

  startNode(nodeId: string): Promise<void> {
    return this.life(nodeId).start();
  }

  async addNode(): Promise<string> {
    if (this.nextIndex >= maxNodes) throw new Error(`This cluster's network has room for ${maxNodes} nodes only.`);
    const index = this.nextIndex++;
    await this.createSeat(index);
    const nodeId = nodeIdOf(index);
    await this.applyCuts();
    await this.life(nodeId).start();
    return nodeId;
  }

  async removeNode(nodeId: string): Promise<void> {
    const life = this.lives.get(nodeId);
    if (life === undefined) return;
    await life.remove();
    this.lives.delete(nodeId);
    this.known.delete(nodeId);
    this.wantedCuts = this.wantedCuts.filter((cut) => cut.from !== nodeId && cut.to !== nodeId);
    await this.applyCuts();
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

  async setCuts(cuts: readonly Cut[]): Promise<void> {
    for (const end of cuts.flatMap((cut) => [cut.from, cut.to])) {
      if (end !== client && !this.lives.has(end)) throw new Error(`There is no node ${end} to cut off in this cluster.`);
    }
    this.wantedCuts = [...cuts];
    await this.applyCuts();
  }

  private applyCuts(): Promise<void> {
    const next = this.cutQueue.then(() => this.reconcileCuts());
    this.cutQueue = next.catch(() => {});
    return next;
  }

  private async reconcileCuts(): Promise<void> {
    const addresses = new Map([...this.known].map(([nodeId, address]) => [nodeId, address.ip]));
    addresses.set(client, present(this.network, 'network of the run').gateway);
    const cuts = this.wantedCuts;
    const results = await Promise.allSettled(
      [...this.lives.values()].map(async (life) => {
        const rules = cutRules(life.nodeId, cuts, addresses);
        const script = `${installChainsScript}\niptables-restore -w 5 --noflush <<'END'\n${rules}END\n`;
        const result = await runInNetns(this.options.engine, this.method, life.seat, script);
        if (result.exitCode !== 0) {
          throw new Error(`The packet rules of ${life.nodeId} could not be set: ${lastLine(result)}.`);
        }
        this.options.onEffect?.({ kind: 'cuts', nodeId: life.nodeId, atMs: this.options.clock.nowMs(), via: this.method });
      }),
    );
    throwFirst(results);
  }

  /** Does a new TCP connection get through? From `client` it is tried from this process, without the published port. */
  async probeLink(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    const link = `${from} to ${to}`;
    if (to === client && !(await this.clientIsSeen())) {
      return this.probed('unknown', `${link}: this host answers no node, also without a cut`);
    }
    const address = this.ipOf(to);
    if (from === client) {
      const outcome = await probeConnect(address, probePort, link);
      return { ...outcome, atMs: this.options.clock.nowMs() };
    }
    const result = await runInNetns(this.options.engine, this.method, this.life(from).seat, connectScript(address));
    return { ...judgeConnect(result, link), atMs: this.options.clock.nowMs() };
  }

  /**
   * Do packets get through in this direction alone, whatever happens to answers? Datagrams to a port without listener
   * are counted by the receiver's kernel. Only where this host sees the engine's processes; else `unknown`.
   */
  async probePackets(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    const link = `packets ${from} to ${to}`;
    if (to === client || this.method !== 'nsenter') return this.probed('unknown', `${link}: cannot be counted here`);
    const { pid } = this.life(to).seat;
    const before = datagramsWithoutListener(pid);
    const sent =
      from === client
        ? await sendDatagrams(this.ipOf(to))
        : await runInNetns(this.options.engine, this.method, this.life(from).seat, datagramScript(this.ipOf(to)));
    if (sent.exitCode !== 0) return this.probed('unknown', `${link}: ${lastLine(sent)}`);
    const arrived = datagramsWithoutListener(pid) - before;
    if (Number.isNaN(arrived)) return this.probed('unknown', `${link}: the kernel does not count`);
    return this.probed(arrived > 0 ? 'reachable' : 'unreachable', `${link}: ${arrived} arrived`);
  }

  private probed(outcome: ProbeResult['outcome'], evidence: string): ProbeResult {
    return { outcome, evidence, atMs: this.options.clock.nowMs() };
  }

  private ipOf(end: Endpoint): string {
    if (end === client) return present(this.network, 'network of the run').gateway;
    const address = this.known.get(end);
    if (address === undefined) throw new Error(`There is no node ${end} in this cluster.`);
    return address.ip;
  }

  /** A host whose firewall answers nobody cannot prove a cut; found out from a node that no cut concerns. */
  private async clientIsSeen(): Promise<boolean> {
    if (this.clientAnswers !== null) return this.clientAnswers;
    const cut = new Set(this.wantedCuts.flatMap((item) => [item.from, item.to]));
    const free = this.nodeIds().find((nodeId) => !cut.has(nodeId));
    if (free === undefined) return true;
    const result = await runInNetns(this.options.engine, this.method, this.life(free).seat, connectScript(this.ipOf(client)));
    this.clientAnswers = judgeConnect(result, '').outcome === 'reachable';
    return this.clientAnswers;
  }

  probeNode(nodeId: string): Promise<ProbeResult> {
    const address = this.known.get(nodeId);
    if (address === undefined) return Promise.resolve(this.probed('unreachable', `${nodeId} is not in this cluster`));
    return probeHealth(this.options.clock, address.hostHttpPort, this.options.healthPath ?? '/health', nodeId);
  }

  unsupported(): Promise<ReadonlyMap<string, string>> {
    this.limits ??= examineHost(this.options.engine, this.options.base).then(unsupportedFaults);
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
