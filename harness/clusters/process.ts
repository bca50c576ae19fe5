/**
 * A cluster of local processes: for machines without an engine and for tests. Nodes are killed, stopped, paused and wiped as
 * processes; every link between them, and between them and the clients, goes through a proxy in a process of its own, which
 * holds back, refuses, delays, throttles and loses per direction (links/link-proxy.ts says what that means for TCP).
 *
 * Nothing outlives the run: every process is killed on disposal, also after a start that failed half-way; when the harness is
 * killed, the warden and the nodes notice, and the next run sweeps what even they left.
 */
import { join } from 'node:path';
import type { Cluster, EffectProbe, Endpoint, LinkRule, NodeState, ProbeResult } from '../../chaos/ports.ts';
import { EnvironmentError, messageOf } from '../../docker/errors.ts';
import { currentOwner } from '../../docker/labels.ts';
import { probeExchange, probeHealth } from '../../docker/probes.ts';
import { present } from '../../lib/assert.ts';
import type { NodeAddress, NodeEndpoints } from '../systems/system.ts';
import { freePorts, isFree } from './free-ports.ts';
import { patienceMs, probeEcho } from './link-probes.ts';
import type { NodePorts, ProcessName } from './links/commands.ts';
import { WardenClient } from './links/warden-client.ts';
import { ProcessNode, projectDir } from './process-node.ts';
import { foldersOf, removeRecord, sweepProcesses, writeRecord } from './process-record.ts';
import type { OpenClusterOptions, RunCluster } from './run-cluster.ts';

const defaultEntry = 'zaris/server/main.ts';
const host = '127.0.0.1';
const healthPath = '/health';
/** Looks of the warden at a slow link take their time. */
const effectTimeoutMs = 25_000;
const maxNodes = 250;
/** Source address of the nodes' connections: one loopback address each, of a block that nobody else uses. */
const sourceAddressOf = (index: number): string => `127.77.0.${index + 1}`;

/** Starts one process per node. */
export async function openProcessCluster(options: OpenClusterOptions): Promise<RunCluster> {
  if (options.adopt === true) {
    throw new EnvironmentError(
      `The local processes of run ${options.runId} ended with the harness, so the run cannot go on; "certify verify ${options.runId}" judges what there is.`,
    );
  }
  const folders = foldersOf(options.logsDir);
  for (const swept of sweepProcesses(folders.results))
    options.say(
      `Ended ${swept.ended} processes that run ${swept.runId} had left behind (${swept.proof ?? 'by name'}).`,
    );
  const cluster = new ProcessCluster(options);
  try {
    await cluster.open();
  } catch (error) {
    await cluster.dispose();
    if (error instanceof EnvironmentError) throw error;
    throw new EnvironmentError(`The local processes could not be started (${messageOf(error)}).`);
  }
  return {
    cluster,
    addresses: () => cluster.addresses(),
    build: cluster.build,
    engine: null,
    versions: [],
    logTail: async (nodeId) => cluster.logTail(nodeId),
    keep: async () => {
      await cluster.keep();
      return `npm run certify -- clean ${options.runId} --results ${folders.results}`;
    },
    dispose: () => cluster.dispose(),
  };
}

class ProcessCluster implements Cluster {
  readonly kind = 'process';
  private readonly options: OpenClusterOptions;
  private readonly warden: WardenClient;
  private readonly runFolder: string;
  private readonly nodes = new Map<string, ProcessNode>();
  private readonly takenPorts = new Set<number>();
  private nextIndex = 0;
  private clientProbePort = 0;
  private hasSourceAddresses = false;
  private rules: readonly LinkRule[] = [];
  private isKept = false;

  constructor(options: OpenClusterOptions) {
    this.options = options;
    this.runFolder = foldersOf(options.logsDir).run;
    this.warden = new WardenClient(options.clock.wallMs() >>> 0, join(options.logsDir, 'proxy.log'));
  }

  async open(): Promise<void> {
    this.hasSourceAddresses = await isFree(0, sourceAddressOf(0));
    this.clientProbePort = (await this.warden.ask({ kind: 'add-client' })).probePort;
    for (let count = 0; count < this.options.nodeCount; count++) await this.createNode();
    await Promise.all(this.nodeIds().map((nodeId) => this.startNode(nodeId)));
  }

  private async createNode(): Promise<string> {
    const index = this.nextIndex++;
    if (index >= maxNodes) throw new Error(`This cluster has room for ${maxNodes} nodes only.`);
    const nodeId = `n${index + 1}`;
    const [client = 0, cluster = 0, http = 0] = await freePorts(3, this.takenPorts);
    const ports: NodePorts = { client, cluster, http };
    for (const port of [client, cluster, http]) this.takenPorts.add(port);
    const sourceAddress = this.hasSourceAddresses ? sourceAddressOf(index) : '';
    const proxied = await this.warden.ask({ kind: 'add-node', nodeId, sourceAddress, ports });
    const node = new ProcessNode({
      nodeId,
      index,
      ports,
      proxied: proxied.ports,
      probePort: proxied.probePort,
      sourceAddress,
      program: join(projectDir, this.options.nodeEntry ?? defaultEntry),
      ...(this.options.program === undefined ? {} : { command: () => this.commandOf(node) }),
      workingDirectory: projectDir,
      disk: join(this.runFolder, 'nodes', nodeId),
      logsDir: this.options.logsDir,
      environment: () => this.environmentOf(node),
      nowMs: () => this.options.clock.nowMs(),
    });
    this.nodes.set(nodeId, node);
    return nodeId;
  }

  nodeIds(): readonly string[] {
    return [...this.nodes.keys()];
  }

  addresses(): NodeAddress[] {
    return [...this.nodes.values()].map((node) => {
      const { client, http } = this.reachedAt(node);
      return { nodeId: node.options.nodeId, host, clientPort: client, httpPort: http };
    });
  }

  /** What runs, for the report. */
  get build(): string {
    const [first] = this.nodes.values();
    return first === undefined || this.options.program === undefined
      ? `${process.execPath} ${this.options.nodeEntry ?? defaultEntry}`
      : this.commandOf(first).slice(0, 1).join(' ');
  }

  /** A program that is not ours does not say which node calls, so its links cannot go through the proxy. */
  private reachedAt({ options }: ProcessNode): NodePorts {
    return this.options.program === undefined ? options.proxied : options.ports;
  }

  private commandOf({ options: { nodeId, index, ports, disk } }: ProcessNode): readonly string[] {
    const foreign = present(this.options.program, 'a program to run');
    const { source } = foreign.program;
    return foreign.program.command({
      plan: foreign.plan,
      nodeId,
      index,
      nodes: this.endpoints(),
      host,
      ports,
      dataDir: disk,
      folder: source.kind === 'folder' ? source.path : projectDir,
    });
  }

  private endpoints(): NodeEndpoints[] {
    return [...this.nodes.values()].map((node) => endpointsOf(node.options.nodeId, this.reachedAt(node)));
  }

  async startNode(nodeId: string): Promise<void> {
    await this.node(nodeId).start();
    await this.guard();
  }

  async addNode(): Promise<string> {
    const nodeId = await this.createNode();
    await this.startNode(nodeId);
    return nodeId;
  }

  async removeNode(nodeId: string): Promise<void> {
    if (!this.nodes.has(nodeId)) return;
    await this.kill(nodeId);
    await this.warden.ask({ kind: 'remove-node', nodeId });
    this.node(nodeId).wipe();
    this.nodes.delete(nodeId);
  }

  async kill(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.process === null) return;
    await node.end('SIGKILL', 0);
    this.options.onDeath?.(nodeId, this.options.clock.nowMs());
  }

  async stop(nodeId: string, graceMs: number): Promise<void> {
    await this.node(nodeId).end('SIGTERM', graceMs);
  }

  async pause(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state().kind === 'running') await node.pause();
  }

  async resume(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state().kind === 'paused') await node.resume();
  }

  async wipe(nodeId: string): Promise<void> {
    await this.kill(nodeId);
    this.node(nodeId).wipe();
  }

  async state(nodeId: string): Promise<NodeState> {
    return this.nodes.get(nodeId)?.state() ?? { kind: 'absent' };
  }

  setCuts(cuts: readonly { readonly from: Endpoint; readonly to: Endpoint }[]): Promise<void> {
    return this.setLinkRules(cuts.map(({ from, to }) => ({ kind: 'drop', from, to })));
  }

  async setLinkRules(rules: readonly LinkRule[]): Promise<void> {
    await this.warden.ask({ kind: 'set-rules', rules });
    this.rules = rules;
  }

  async probeLink(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    const caller = this.nodes.get(from);
    const port = to === 'client' ? this.clientProbePort : this.nodes.get(to)?.options.probePort;
    const atMs = (): number => this.options.clock.nowMs();
    if (port === undefined || (caller === undefined && from !== 'client'))
      return { outcome: 'unknown', atMs: atMs(), evidence: `${from}→${to}: not both are in this cluster` };
    const result = await probeEcho(
      port,
      caller === undefined ? null : caller.options.sourceAddress,
      patienceMs(this.rules, from, to),
    );
    return { ...result, evidence: `${from}→${to}: ${result.evidence}`, atMs: atMs() };
  }

  async probePacket(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    const { tookMs } = await this.warden.ask({ kind: 'packet', from, to });
    return {
      outcome: tookMs === null ? 'unreachable' : 'reachable',
      atMs: this.options.clock.nowMs(),
      evidence: tookMs === null ? 'a byte was held back' : `a byte passed in ${tookMs.toFixed(1)} ms`,
    };
  }

  async probeRule(rule: LinkRule): Promise<EffectProbe> {
    const effect = await this.warden.ask({ kind: 'rule', rule }, effectTimeoutMs);
    return { ...effect, atMs: this.options.clock.nowMs() };
  }

  probeNode(nodeId: string): Promise<ProbeResult> {
    const { http, client } = this.reachedAt(this.node(nodeId));
    const readiness = this.options.program?.program.readiness ?? { kind: 'http', path: healthPath };
    return readiness.kind === 'http'
      ? probeHealth(this.options.clock, http, readiness.path, nodeId)
      : probeExchange(this.options.clock, { host, port: client, ...readiness }, nodeId);
  }

  async unsupported(): Promise<ReadonlyMap<string, string>> {
    const reasons = new Map([
      ['clock', "local processes share the host's clock"],
      ['oom', "local processes share the host's memory"],
    ]);
    if (!this.hasSourceAddresses || this.options.program !== undefined) {
      const why =
        this.options.program === undefined
          ? 'this host has one loopback address only, so the proxy cannot tell which node calls'
          : 'a program that is not ours does not tell the proxy which node calls; the Docker cluster can cut its links';
      for (const kind of ['partition', 'client-partition', 'reset', 'loss', 'latency', 'bandwidth'])
        reasons.set(kind, why);
    }
    for (const [kind, reason] of this.options.program?.unsupportedFaults ?? []) reasons.set(kind, reason);
    return reasons;
  }

  logTail(nodeId: string): string {
    return this.node(nodeId).logTail();
  }

  /** Leaves everything running, also when this process ends. */
  async keep(): Promise<void> {
    this.isKept = true;
    await this.guard();
    await this.warden.ask({ kind: 'keep' });
    for (const node of this.nodes.values()) node.keep();
    this.warden.release();
  }

  async dispose(): Promise<void> {
    if (this.isKept) return;
    await Promise.all([...this.nodes.values()].map((node) => node.end('SIGKILL', 0)));
    await this.warden.close();
    removeRecord(this.runFolder);
  }

  /** Tells the warden, and whoever comes after us, which processes are ours. */
  private async guard(): Promise<void> {
    const processes = [...this.nodes.values()].flatMap(({ process: each }): ProcessName[] =>
      each === null ? [] : [each],
    );
    const { name } = this.warden;
    writeRecord(this.runFolder, {
      runId: this.options.runId,
      owner: currentOwner(),
      kept: this.isKept,
      processes: name === null ? processes : [...processes, name],
    });
    await this.warden.ask({ kind: 'guard', processes });
  }

  private node(nodeId: string): ProcessNode {
    const node = this.nodes.get(nodeId);
    if (node === undefined) throw new Error(`There is no node ${nodeId} in this cluster.`);
    return node;
  }

  private environmentOf({ options }: ProcessNode): Record<string, string> {
    return {
      ...this.options.environment(options.nodeId, options.index, this.endpoints()),
      ZARIS_DATA_DIR: options.disk,
      ZARIS_HOST: host,
      ZARIS_CLIENT_PORT: String(options.ports.client),
      ZARIS_CLUSTER_PORT: String(options.ports.cluster),
      ZARIS_HTTP_PORT: String(options.ports.http),
    };
  }
}

const endpointsOf = (nodeId: string, { client, cluster, http }: NodePorts): NodeEndpoints => ({
  nodeId,
  clusterAddress: `${host}:${cluster}`,
  clientAddress: `${host}:${client}`,
  httpAddress: `${host}:${http}`,
  internalClientAddress: `${host}:${client}`,
  internalHttpAddress: `${host}:${http}`,
});
