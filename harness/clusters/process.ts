/**
 * A cluster of local processes: for machines without an engine and for tests. It can kill, stop, pause and restart nodes and
 * take their disks away; links between processes of one host cannot be cut here, and it says so.
 *
 * Nothing outlives the run: every child is killed on disposal, also after a start that failed half-way; and when the harness
 * itself is killed, its nodes see their channel to it close and end (a frozen one is ended by the reaper).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createWriteStream, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { EnvironmentError } from '../../docker/errors.ts';
import type { Cluster, NodeState, ProbeResult } from '../../chaos/ports.ts';
import type { NodeAddress, NodeEndpoints } from '../systems/system.ts';
import type { OpenClusterOptions, RunCluster } from './run-cluster.ts';

const projectDir = fileURLToPath(new URL('../..', import.meta.url));
const defaultEntry = 'zaris/server/main.ts';
const parentWatch = new URL('./parent-watch.mjs', import.meta.url);
const reaperProgram = fileURLToPath(new URL('./reaper.mjs', import.meta.url));
const host = '127.0.0.1';
const probeTimeoutMs = 1_000;
const logTailChars = 4_000;

interface Ports {
  readonly client: number;
  readonly cluster: number;
  readonly http: number;
}

interface LocalNode {
  readonly nodeId: string;
  readonly index: number;
  readonly ports: Ports;
  child: ChildProcess | null;
  state: NodeState;
  starts: number;
}

/** Starts one process per node. */
export async function openProcessCluster(options: OpenClusterOptions): Promise<RunCluster> {
  if (options.adopt === true) {
    throw new EnvironmentError(
      `The local processes of run ${options.runId} ended with the harness, so the run cannot go on; "certify verify ${options.runId}" judges what there is.`,
    );
  }
  const cluster = new ProcessCluster(options);
  try {
    for (let index = 0; index < options.nodeCount; index++) await cluster.createNode(index);
    await Promise.all(cluster.nodeIds().map((nodeId) => cluster.startNode(nodeId)));
  } catch (error) {
    await cluster.dispose();
    throw error;
  }
  return {
    cluster,
    addresses: () => cluster.addresses(),
    build: `${process.execPath} ${options.nodeEntry ?? defaultEntry}`,
    engine: null,
    versions: [],
    logTail: async (nodeId) => cluster.logTail(nodeId),
    keep: async () => cluster.keep(),
    dispose: () => cluster.dispose(),
  };
}

class ProcessCluster implements Cluster {
  readonly kind = 'process';
  private readonly options: OpenClusterOptions;
  private readonly nodes = new Map<string, LocalNode>();
  private readonly reaper: ChildProcess;

  constructor(options: OpenClusterOptions) {
    this.options = options;
    this.reaper = spawn(process.execPath, [reaperProgram], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    // A reaper that died only leaves frozen nodes behind, and only when the harness dies too.
    this.reaper.on('error', () => undefined);
    this.reaper.stdin?.on('error', () => undefined);
    this.reaper.unref();
  }

  async createNode(index: number): Promise<string> {
    const nodeId = `n${index + 1}`;
    const [client = 0, cluster = 0, http = 0] = await freePorts(3);
    this.nodes.set(nodeId, {
      nodeId,
      index,
      ports: { client, cluster, http },
      child: null,
      state: { kind: 'absent' },
      starts: 0,
    });
    return nodeId;
  }

  nodeIds(): readonly string[] {
    return [...this.nodes.keys()];
  }

  addresses(): NodeAddress[] {
    return [...this.nodes.values()].map(({ nodeId, ports }) => ({
      nodeId,
      host,
      clientPort: ports.client,
      httpPort: ports.http,
    }));
  }

  processIds(): number[] {
    return [...this.nodes.values()].flatMap(({ child }) => (child?.pid === undefined ? [] : [child.pid]));
  }

  async startNode(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state.kind === 'running' || node.state.kind === 'paused') return;
    mkdirSync(this.diskOf(node), { recursive: true });
    node.starts++;
    const log = createWriteStream(this.logOf(node), { flags: 'a' });
    const program = join(projectDir, this.options.nodeEntry ?? defaultEntry);
    const child = spawn(process.execPath, ['--import', parentWatch.href, program], {
      cwd: projectDir,
      env: { ...process.env, ...this.environmentOf(node) },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    child.stdio[3]?.on('error', () => undefined);
    const instance = `${nodeId}-${node.starts}`;
    node.child = child;
    child.once('exit', (code, signal) => {
      log.end();
      this.tellReaper(`-${child.pid}`);
      if (node.child !== child) return;
      node.child = null;
      node.state = { kind: 'exited', instance, exitCode: code ?? (signal === 'SIGKILL' ? 137 : 143), oomKilled: false };
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    node.state = { kind: 'running', since: this.options.clock.nowMs(), instance };
  }

  async addNode(): Promise<string> {
    const nodeId = await this.createNode(this.nodes.size);
    await this.startNode(nodeId);
    return nodeId;
  }

  async removeNode(nodeId: string): Promise<void> {
    if (!this.nodes.has(nodeId)) return;
    await this.kill(nodeId);
    this.nodes.delete(nodeId);
  }

  kill(nodeId: string): Promise<void> {
    return this.end(this.node(nodeId), 'SIGKILL', 0);
  }

  stop(nodeId: string, graceMs: number): Promise<void> {
    return this.end(this.node(nodeId), 'SIGTERM', graceMs);
  }

  async pause(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state.kind !== 'running') return;
    // First the word, then the deed: the harness may be killed between the two.
    this.tellReaper(`+${node.child?.pid}`);
    node.child?.kill('SIGSTOP');
    node.state = { kind: 'paused', instance: node.state.instance };
  }

  async resume(nodeId: string): Promise<void> {
    const node = this.node(nodeId);
    if (node.state.kind !== 'paused') return;
    node.child?.kill('SIGCONT');
    this.tellReaper(`-${node.child?.pid}`);
    node.state = { kind: 'running', since: this.options.clock.nowMs(), instance: node.state.instance };
  }

  async wipe(nodeId: string): Promise<void> {
    await this.kill(nodeId);
    rmSync(this.diskOf(this.node(nodeId)), { recursive: true, force: true });
  }

  async setCuts(cuts: readonly unknown[]): Promise<void> {
    if (cuts.length > 0) throw new Error('Links between local processes cannot be cut.');
  }

  async state(nodeId: string): Promise<NodeState> {
    return this.nodes.get(nodeId)?.state ?? { kind: 'absent' };
  }

  async probeLink(_from: string, to: string): Promise<ProbeResult> {
    if (!this.nodes.has(to))
      return { outcome: 'unknown', atMs: this.options.clock.nowMs(), evidence: `${to} is no node` };
    return this.probeNode(to);
  }

  async probeNode(nodeId: string): Promise<ProbeResult> {
    const { ports } = this.node(nodeId);
    try {
      const response = await fetch(`http://${host}:${ports.http}/health`, {
        signal: AbortSignal.timeout(probeTimeoutMs),
      });
      await response.arrayBuffer();
      return {
        outcome: response.ok ? 'reachable' : 'unreachable',
        atMs: this.options.clock.nowMs(),
        evidence: `HTTP ${response.status}`,
      };
    } catch (error) {
      return {
        outcome: 'unreachable',
        atMs: this.options.clock.nowMs(),
        evidence: error instanceof Error ? error.message : String(error),
      };
    }
  }

  async unsupported(): Promise<ReadonlyMap<string, string>> {
    const why = 'local processes share one network, which cannot be cut';
    return new Map(
      ['partition', 'client-partition', 'reset', 'loss', 'latency', 'bandwidth', 'clock', 'oom'].map((kind) => [
        kind,
        kind === 'clock' || kind === 'oom' ? "local processes share the host's clock and memory" : why,
      ]),
    );
  }

  logTail(nodeId: string): string {
    try {
      return readFileSync(this.logOf(this.node(nodeId)), 'utf8').slice(-logTailChars);
    } catch {
      return '';
    }
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.nodes.values()].map((node) => this.end(node, 'SIGKILL', 0)));
    this.reaper.stdin?.end();
  }

  /** Lets every node outlive the harness; returns how to remove them. */
  async keep(): Promise<string> {
    this.tellReaper('keep');
    for (const { child } of this.nodes.values()) (child?.stdio[3] as Writable | null | undefined)?.write('k');
    return `kill -9 ${this.processIds().join(' ')}`;
  }

  private tellReaper(line: string): void {
    this.reaper.stdin?.write(`${line}\n`);
  }

  private async end(node: LocalNode, signal: 'SIGKILL' | 'SIGTERM', graceMs: number): Promise<void> {
    const { child } = node;
    if (child === null) return;
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    if (signal === 'SIGTERM' && node.state.kind === 'paused') child.kill('SIGCONT');
    child.kill(signal);
    if (signal === 'SIGTERM') {
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(timer);
    } else await exited;
  }

  private node(nodeId: string): LocalNode {
    const node = this.nodes.get(nodeId);
    if (node === undefined) throw new Error(`There is no node ${nodeId} in this cluster.`);
    return node;
  }

  private environmentOf(node: LocalNode): Record<string, string> {
    const endpoints = [...this.nodes.values()].map(endpointsOf);
    return {
      ...this.options.environment(node.nodeId, node.index, endpoints),
      ZARIS_DATA_DIR: this.diskOf(node),
      ZARIS_HOST: host,
      ZARIS_CLIENT_PORT: String(node.ports.client),
      ZARIS_CLUSTER_PORT: String(node.ports.cluster),
      ZARIS_HTTP_PORT: String(node.ports.http),
    };
  }

  private diskOf(node: LocalNode): string {
    return join(this.options.logsDir, '..', 'nodes', node.nodeId);
  }

  private logOf(node: LocalNode): string {
    return join(this.options.logsDir, `${node.nodeId}-${node.starts}.log`);
  }
}

const endpointsOf = ({ nodeId, ports }: LocalNode): NodeEndpoints => ({
  nodeId,
  clusterAddress: `${host}:${ports.cluster}`,
  clientAddress: `${host}:${ports.client}`,
  httpAddress: `${host}:${ports.http}`,
});

/** Below the range from which systems draw the ports of outgoing connections. */
const lowestPort = 20_000;
const highestPort = 31_999;
const portTries = 200;

/** Ports that were free a moment ago, and that no outgoing connection will take. */
async function freePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  for (let tries = 0; found.length < count && tries < portTries; tries++) {
    const port = randomInt(lowestPort, highestPort + 1);
    if (!found.includes(port) && (await isFree(port))) found.push(port);
  }
  if (found.length < count) throw new Error(`No free ports were found between ${lowestPort} and ${highestPort}.`);
  return found;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
