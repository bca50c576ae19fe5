/** `certify conformance SYSTEM`: tells the author of an adapter what is wrong with it, before a run blames the store for it. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EnvironmentError } from '../../docker/errors.ts';
import type { RunCluster } from '../clusters/run-cluster.ts';
import { checkRunning } from '../conformance/live.ts';
import { messageOf } from '../errors.ts';
import { loadSystem } from '../load-system.ts';
import type { ClusterKind } from '../settings.ts';
import { defaults } from '../settings.ts';
import type { ClusterPlan, System } from '../systems/system.ts';

/** Longest wait until the cluster is whole, ms. */
const startLimitMs = 120_000;
const exitProblems = 1;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

export interface ConformanceWish {
  readonly system: string;
  readonly cluster: ClusterKind;
}

/** Runs every check and prints each; exit code 0 when nothing is wrong, 1 else. */
export async function conformanceCommand({ system: name, cluster: kind }: ConformanceWish): Promise<number> {
  const system = await loadSystem(name);
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'certify-conformance-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const plan = planOf(system);
  const cluster = await openCluster(kind, system, plan, join(folder, 'run', 'logs'));
  stack.defer(() => cluster.dispose());
  const running = system.connect({ plan, addresses: cluster.addresses(), nowMs: () => performance.now() });
  stack.defer(() => running.close());
  try {
    await running.bootstrap(startLimitMs, new AbortController().signal);
  } catch (error) {
    print(`✕ bootstrap: bootstrap() rejected (${messageOf(error)}); it must resolve once every partition is healthy.`);
    for (const nodeId of cluster.cluster.nodeIds())
      print(`  ${nodeId}: ${(await cluster.logTail(nodeId)).slice(-500)}`);
    return exitProblems;
  }
  const checks = await checkRunning({
    definition: system,
    running,
    cluster: cluster.cluster,
    onCheck: ({ name: check, problem }) => print(problem === null ? `✓ ${check}` : `✕ ${check}: ${problem}`),
  });
  const wrong = checks.filter((check) => check.problem !== null).length;
  print(
    wrong === 0
      ? `${system.name} keeps to the port: ${checks.length} checks.`
      : `${wrong} of ${checks.length} checks failed.`,
  );
  return wrong === 0 ? 0 : exitProblems;
}

function planOf(system: System): ClusterPlan {
  const nodeCount = system.shape?.nodes ?? defaults.rf;
  return {
    clusterId: `conformance-${process.pid}`,
    nodeCount,
    replicationFactor: nodeCount,
    minInSync: system.defaultMinInSync(nodeCount),
    partitionCount: system.shape?.partitions ?? defaults.partitions,
  };
}

async function openCluster(kind: ClusterKind, system: System, plan: ClusterPlan, logsDir: string): Promise<RunCluster> {
  mkdirSync(logsDir, { recursive: true });
  const options = {
    runId: plan.clusterId,
    nodeCount: plan.nodeCount,
    logsDir,
    environment: (nodeId: string, index: number, nodes: Parameters<System['nodeEnvironment']>[3]) =>
      system.nodeEnvironment(plan, nodeId, index, nodes),
    nodeEntry: null,
    ...(system.program === undefined
      ? {}
      : { program: { program: system.program, plan, unsupportedFaults: new Map<string, string>() } }),
    clock: { nowMs: () => performance.now(), wallMs: () => Date.now() },
    say: print,
    signal: new AbortController().signal,
  };
  try {
    return kind === 'docker'
      ? await (await import('../clusters/docker.ts')).openDockerCluster(options)
      : await (await import('../clusters/process.ts')).openProcessCluster(options);
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw new EnvironmentError(`The nodes could not be started (${messageOf(error)}).`);
  }
}
