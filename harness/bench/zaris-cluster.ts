/** A Zaris cluster for a bench: opened the way a run opens it, bootstrapped, whole, and gone at the end. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openProcessCluster } from '../clusters/process.ts';
import type { RunCluster } from '../clusters/run-cluster.ts';
import type { RunningSystem } from '../systems/system.ts';
import { zaris } from '../systems/zaris.ts';
import { getJson } from '../systems/zaris-http.ts';
import { atExit, type BenchContext } from './bench-context.ts';

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

export interface ZarisCluster extends AsyncDisposable {
  readonly run: RunCluster;
  readonly system: RunningSystem;
  /** For `ZarisClient.connect`. */
  readonly url: string;
  /** Process ids of the nodes, as they tell them; of use for local processes only. */
  pids(): Promise<number[]>;
}

const startTimeoutMs = 90_000;
const clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };

/** Opens and bootstraps it. Whatever was started is gone when this rejects. */
export async function openZaris(context: BenchContext, options: ZarisClusterOptions): Promise<ZarisCluster> {
  const { name, nodeCount, replicationFactor, partitionCount } = options;
  const minInSync = zaris.defaultMinInSync(replicationFactor);
  const runId = `bench-${name}-${process.pid}`;
  const plan = { clusterId: runId, nodeCount, replicationFactor, minInSync, partitionCount };
  const logsDir = join(context.workDir, name, 'logs');
  mkdirSync(logsDir, { recursive: true });
  const open =
    options.isDocker === true ? (await import('../clusters/docker.ts')).openDockerCluster : openProcessCluster;
  const run = await open({
    runId,
    nodeCount,
    logsDir,
    environment: (nodeId, index, nodes) => ({
      ...zaris.nodeEnvironment(plan, nodeId, index, nodes),
      ...options.environment,
    }),
    nodeEntry: null,
    clock,
    say: context.say,
    signal: context.signal,
    ...(options.onDeath === undefined ? {} : { onDeath: options.onDeath }),
  });
  const forget = atExit(() => void run.dispose());
  const addresses = run.addresses();
  const system = zaris.connect({ plan, addresses, nowMs: () => performance.now() });
  const end = async (): Promise<void> => {
    await system.close();
    await run.dispose();
    forget();
  };
  try {
    await system.bootstrap(startTimeoutMs, context.signal);
    context.signal.throwIfAborted();
  } catch (error) {
    await end();
    throw error;
  }
  const seeds = addresses.map((address) => `${address.host}:${address.clientPort}`).join(',');
  return {
    run,
    system,
    url: `zaris://${seeds}/bench`,
    async pids() {
      const answers = await Promise.all(addresses.map((address) => getJson(address, '/health')));
      return answers.flatMap((answer) => {
        const pid = (answer as { pid?: unknown } | null)?.pid;
        return typeof pid === 'number' ? [pid] : [];
      });
    },
    [Symbol.asyncDispose]: end,
  };
}
