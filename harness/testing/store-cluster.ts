/** For tests of adapters: a cluster of local processes of one system, connected and whole. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openProcessCluster } from '../clusters/process.ts';
import type { RunCluster } from '../clusters/run-cluster.ts';
import type { RunningSystem, System } from '../systems/system.ts';

/** Whether this host has a program; tests that need it are skipped, and named, without. */
export const hasProgram = (name: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' }).status === 0;

export interface StoreCluster extends AsyncDisposable {
  readonly cluster: RunCluster;
  readonly system: RunningSystem;
}

const startLimitMs = 120_000;

/** Starts and bootstraps; what was started is gone after disposal, also when this rejects. */
export async function openStoreCluster(system: System, nodeCount: number): Promise<StoreCluster> {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'store-cluster-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const logsDir = join(folder, 'run', 'logs');
  mkdirSync(logsDir, { recursive: true });
  const plan = {
    clusterId: 'test',
    nodeCount,
    replicationFactor: nodeCount,
    minInSync: system.defaultMinInSync(nodeCount),
    partitionCount: system.shape?.partitions ?? 1,
  };
  const nowMs = (): number => performance.now();
  const cluster = await openProcessCluster({
    runId: `test-${process.pid}`,
    nodeCount,
    logsDir,
    environment: (nodeId, index, nodes) => system.nodeEnvironment(plan, nodeId, index, nodes),
    nodeEntry: null,
    ...(system.program === undefined
      ? {}
      : { program: { program: system.program, plan, unsupportedFaults: new Map() } }),
    clock: { nowMs, wallMs: () => Date.now() },
    say: () => undefined,
    signal: new AbortController().signal,
  });
  stack.defer(() => cluster.dispose());
  const running = system.connect({ plan, addresses: cluster.addresses(), nowMs });
  stack.defer(() => running.close());
  await running.bootstrap(startLimitMs, new AbortController().signal);
  const owned = stack.move();
  return { cluster, system: running, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Asks until the answer is not null. */
export async function eventually<T>(what: string, limitMs: number, ask: () => Promise<T | null>): Promise<T> {
  const untilMs = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() > untilMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
