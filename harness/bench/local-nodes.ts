/**
 * Zaris nodes as plain local processes: no proxy between them and nothing loaded beside them, unlike those of a run, because here the way
 * of a message is what is measured.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { present } from '../../lib/assert.ts';
import { freeHostPorts } from '../../docker/host-ports.ts';
import type { NodeAddress, System } from '../systems/system.ts';
import { type BenchContext, type RunningProgram, startProgram } from './bench-context.ts';

const host = '127.0.0.1';
const entry = fileURLToPath(new URL('../../zaris/server/main.ts', import.meta.url));

interface LocalNode {
  readonly address: NodeAddress;
  readonly clusterPort: number;
  program: RunningProgram | null;
}

type NodeEndpoints = Parameters<System['nodeEnvironment']>[3];
/** Environment of a node's process, given the addresses of all. */
export type NodeEnvironment = (nodeId: string, index: number, nodes: NodeEndpoints) => Readonly<Record<string, string>>;

/** A set of nodes; make it with {@link LocalNodes.start}. */
export class LocalNodes {
  private readonly context: BenchContext;
  private readonly folder: string;
  private readonly environment: NodeEnvironment;
  private readonly nodes = new Map<string, LocalNode>();
  private created = 0;

  private constructor(context: BenchContext, name: string, environment: NodeEnvironment) {
    this.context = context;
    this.folder = join(context.workDir, name);
    this.environment = environment;
  }

  /** Starts them all. What was started is gone when this rejects. */
  static async start(
    context: BenchContext,
    options: { readonly name: string; readonly nodeCount: number; readonly environment: NodeEnvironment },
  ): Promise<LocalNodes> {
    const local = new LocalNodes(context, options.name, options.environment);
    const ports = await freeHostPorts(3 * options.nodeCount);
    for (let index = 0; index < options.nodeCount; index++) local.create(ports.slice(3 * index));
    try {
      for (const nodeId of local.nodes.keys()) await local.startNode(nodeId);
    } catch (error) {
      await local.dispose();
      throw error;
    }
    return local;
  }

  private create(ports: readonly number[]): string {
    const [clientPort = 0, clusterPort = 0, httpPort = 0] = ports;
    this.created++;
    const nodeId = `n${this.created}`;
    this.nodes.set(nodeId, { address: { nodeId, host, clientPort, httpPort }, clusterPort, program: null });
    return nodeId;
  }

  async addNode(): Promise<string> {
    const nodeId = this.create(await freeHostPorts(3));
    await this.startNode(nodeId);
    return nodeId;
  }

  async removeNode(nodeId: string): Promise<void> {
    await this.kill(nodeId);
    this.nodes.delete(nodeId);
  }

  nodeIds(): readonly string[] {
    return [...this.nodes.keys()];
  }

  addresses(): readonly NodeAddress[] {
    return [...this.nodes.values()].map(({ address }) => address);
  }

  pids(): number[] {
    return [...this.nodes.values()].flatMap(({ program }) => (program === null ? [] : [program.pid]));
  }

  async startNode(nodeId: string): Promise<void> {
    const node = present(this.nodes.get(nodeId), nodeId);
    if (node.program !== null && node.program.exit() === null) return;
    const { address, clusterPort } = node;
    const disk = join(this.folder, 'disks', nodeId);
    mkdirSync(disk, { recursive: true });
    const endpoints = [...this.nodes.values()].map((each) => ({
      nodeId: each.address.nodeId,
      clusterAddress: `${host}:${each.clusterPort}`,
      clientAddress: `${host}:${each.address.clientPort}`,
      httpAddress: `${host}:${each.address.httpPort}`,
      internalClientAddress: `${host}:${each.address.clientPort}`,
      internalHttpAddress: `${host}:${each.address.httpPort}`,
    }));
    node.program = await startProgram(this.context, join(this.folder, nodeId), [process.execPath, entry], {
      ...this.environment(nodeId, Number(nodeId.slice(1)) - 1, endpoints),
      ZARIS_DATA_DIR: disk,
      ZARIS_HOST: host,
      ZARIS_CLIENT_PORT: String(address.clientPort),
      ZARIS_CLUSTER_PORT: String(clusterPort),
      ZARIS_HTTP_PORT: String(address.httpPort),
    });
  }

  /** SIGKILL. Resolves once it is dead. */
  async kill(nodeId: string): Promise<void> {
    await this.nodes.get(nodeId)?.program?.end('SIGKILL', 0);
  }

  async pause(nodeId: string): Promise<void> {
    this.signal(nodeId, 'SIGSTOP');
  }

  async resume(nodeId: string): Promise<void> {
    this.signal(nodeId, 'SIGCONT');
  }

  private signal(nodeId: string, signal: 'SIGSTOP' | 'SIGCONT'): void {
    const program = this.nodes.get(nodeId)?.program ?? null;
    if (program !== null && program.exit() === null) process.kill(program.pid, signal);
  }

  /** SIGTERM, then SIGKILL after `graceMs`. */
  async stop(nodeId: string, graceMs: number): Promise<void> {
    await this.nodes.get(nodeId)?.program?.end('SIGTERM', graceMs);
  }

  async dispose(): Promise<void> {
    await Promise.all(this.nodeIds().map((nodeId) => this.kill(nodeId)));
  }
}
