/** A Zaris cluster for a bench: started, bootstrapped, whole, and gone at the end. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeAddress, RunningSystem } from '../systems/system.ts';
import { zaris } from '../systems/zaris.ts';
import { atExit, type BenchContext } from './bench-context.ts';
import { LocalNodes, type NodeEnvironment } from './local-nodes.ts';

export interface ZarisClusterOptions {
  readonly name: string;
  readonly nodeCount: number;
  readonly replicationFactor: number;
  readonly partitionCount: number;
  readonly isDocker?: boolean;
  /** Added to every node's environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Told when a node's process was seen dead, where the cluster can tell better than the caller of `kill`. */
  readonly onDeath?: (nodeId: string, atMs: number) => void;
}

/** What a bench does to nodes. */
interface BenchNodes {
  nodeIds(): readonly string[];
  startNode(nodeId: string): Promise<void>;
  kill(nodeId: string): Promise<void>;
  stop(nodeId: string, graceMs: number): Promise<void>;
  pause(nodeId: string): Promise<void>;
  resume(nodeId: string): Promise<void>;
  /** Cuts of the network; local processes have none. */
  setCuts?(cuts: readonly { readonly from: string; readonly to: string }[]): Promise<void>;
  /** Creates and starts one more; returns its id. */
  addNode(): Promise<string>;
  removeNode(nodeId: string): Promise<void>;
}

export interface ZarisCluster extends AsyncDisposable {
  readonly nodes: BenchNodes;
  readonly system: RunningSystem;
  /** For `ZarisClient.connect`. */
  readonly url: string;
  /** A client address of the first nodes, `host:port` each. */
  readonly seeds: readonly string[];
  /** Process ids of the nodes; none where these run in containers. */
  pids(): number[];
}

interface StartedNodes {
  readonly nodes: BenchNodes;
  readonly addresses: readonly NodeAddress[];
  readonly pids: () => number[];
  readonly dispose: () => Promise<void>;
}

const startTimeoutMs = 90_000;
const clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };

async function startLocal(
  context: BenchContext,
  options: ZarisClusterOptions,
  environment: NodeEnvironment,
): Promise<StartedNodes> {
  const { name, nodeCount } = options;
  const nodes = await LocalNodes.start(context, { name, nodeCount, environment });
  return { nodes, addresses: nodes.addresses(), pids: () => nodes.pids(), dispose: () => nodes.dispose() };
}

async function startContainers(
  context: BenchContext,
  options: ZarisClusterOptions,
  runId: string,
  environment: NodeEnvironment,
): Promise<StartedNodes> {
  const { openDockerCluster } = await import('../clusters/docker.ts');
  const logsDir = join(context.workDir, options.name, 'logs');
  mkdirSync(logsDir, { recursive: true });
  const run = await openDockerCluster({
    runId,
    nodeCount: options.nodeCount,
    logsDir,
    environment: (nodeId, index, nodes) => ({ ...environment(nodeId, index, nodes) }),
    nodeEntry: null,
    clock,
    say: context.say,
    signal: context.signal,
    ...(options.onDeath === undefined ? {} : { onDeath: options.onDeath }),
  });
  const forget = atExit(() => void run.dispose());
  const dispose = async (): Promise<void> => {
    await run.dispose();
    forget();
  };
  return { nodes: run.cluster, addresses: run.addresses(), pids: () => [], dispose };
}

/** Opens and bootstraps it. Whatever was started is gone when this rejects. */
export async function openZaris(context: BenchContext, options: ZarisClusterOptions): Promise<ZarisCluster> {
  const { name, nodeCount, replicationFactor, partitionCount } = options;
  const minInSync = zaris.defaultMinInSync(replicationFactor);
  const runId = `bench-${name}-${process.pid}`;
  const plan = { clusterId: runId, nodeCount, replicationFactor, minInSync, partitionCount };
  const environment: NodeEnvironment = (nodeId, index, nodes) => ({
    ...zaris.nodeEnvironment(plan, nodeId, index, nodes),
    ...options.environment,
  });
  const started =
    options.isDocker === true
      ? await startContainers(context, options, runId, environment)
      : await startLocal(context, options, environment);
  const { addresses } = started;
  const system = zaris.connect({ plan, addresses, nowMs: () => performance.now() });
  const end = async (): Promise<void> => {
    await system.close();
    await started.dispose();
  };
  try {
    await system.bootstrap(startTimeoutMs, context.signal);
    context.signal.throwIfAborted();
  } catch (error) {
    await end();
    throw error;
  }
  const seeds = addresses.map((address) => `${address.host}:${address.clientPort}`);
  const url = `zaris://${seeds.join(',')}/bench`;
  return { nodes: started.nodes, system, url, seeds, pids: started.pids, [Symbol.asyncDispose]: end };
}
