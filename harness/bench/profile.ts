/**
 * Where the time goes in a put and in a get: V8 profiles of the nodes and of the process that makes the load, as own time per function. A profiled
 * run is slower; its rates are printed only to show what was profiled.
 */
import { mkdirSync, readdirSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { ZarisClient } from '../../zaris/client/client.ts';
import { type BenchContext, checkGoing } from './bench-context.ts';
import { keyOf, measure, type Writer } from './load.ts';
import { summarize, summarizeFile } from './profile-summary.ts';
import { figure } from './statistics.ts';
import { openZaris, type ZarisCluster } from './zaris-cluster.ts';

const samplingIntervalUs = 500;
const topLines = 22;
const valueBytes = 100;
const keysPerWriter = 1_000;
/** Time for a node to hand over, write its profile and end, ms. */
const graceMs = 15_000;

interface Scene {
  readonly name: string;
  readonly nodeCount: number;
  readonly replicationFactor: number;
  readonly writers: number;
  /** One client for all writers instead of one each. */
  readonly isShared: boolean;
  readonly operation: 'put' | 'get';
}

const scenes: readonly Scene[] = [
  { name: 'put-rf2', nodeCount: 3, replicationFactor: 2, writers: 64, isShared: false, operation: 'put' },
  { name: 'pipelined-put-rf1', nodeCount: 1, replicationFactor: 1, writers: 64, isShared: true, operation: 'put' },
  { name: 'pipelined-get', nodeCount: 1, replicationFactor: 1, writers: 64, isShared: true, operation: 'get' },
];

function writerOf(client: ZarisClient, scene: Scene): Writer {
  return {
    async put(key, value) {
      const result = scene.operation === 'put' ? await client.put(key, value) : await client.get(key);
      if (!result.isSuccess) throw new Error(result.status);
    },
  };
}

function printSummary(context: BenchContext, title: string, summary: ReturnType<typeof summarize>): void {
  context.print(`  ${title}: busy ${figure(summary.busyShare * 100)} % of the time; own time by function, % of busy:`);
  for (const { where, share } of summary.lines.slice(0, topLines))
    context.print(`    ${(share * 100).toFixed(1).padStart(5)}  ${where}`);
}

/** Puts every key that the load will read. */
async function fill(client: ZarisClient, writers: number): Promise<void> {
  const value = 'v'.repeat(valueBytes);
  for (let turn = 0; turn < keysPerWriter; turn++) {
    await client.putMany(Array.from({ length: writers }, (_, index) => [keyOf(index, turn), value] as const));
  }
}

async function profileLoad(context: BenchContext, scene: Scene, cluster: ZarisCluster): Promise<void> {
  const clientCount = scene.isShared ? 1 : scene.writers;
  const clients = await Promise.all(Array.from({ length: clientCount }, () => ZarisClient.connect(cluster.url)));
  const session = new Session();
  session.connect();
  try {
    if (scene.operation === 'get') await fill(clients[0] as ZarisClient, scene.writers);
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: samplingIntervalUs });
    await session.post('Profiler.start');
    const writers = Array.from({ length: scene.writers }, (_, index) =>
      writerOf(clients[index % clientCount] as ZarisClient, scene),
    );
    const round = await measure(writers, cluster.pids(), {
      valueBytes,
      keysPerWriter,
      warmUpMs: context.isQuick ? 1_000 : 10_000,
      measureMs: context.isQuick ? 2_000 : 6_000,
      signal: context.signal,
    });
    const { profile } = await session.post('Profiler.stop');
    context.print(
      `${scene.name}: ${figure(round.perSecond)}/s under the profiler; CPUs: load ${figure(round.loadCpu)}, nodes ${round.systemCpus.map(figure).join(' ')}`,
    );
    const { samples = [], timeDeltas = [] } = profile;
    printSummary(context, 'load', summarize({ nodes: profile.nodes, samples, timeDeltas }));
  } finally {
    session.disconnect();
    await Promise.all(clients.map((client) => client.close()));
  }
}

async function profileScene(context: BenchContext, scene: Scene): Promise<void> {
  const folder = join(context.workDir, 'profiles', scene.name);
  mkdirSync(folder, { recursive: true });
  const { name, nodeCount, replicationFactor } = scene;
  await using cluster = await openZaris(context, {
    name: `profile-${name}`,
    nodeCount,
    replicationFactor,
    partitionCount: 64,
    environment: {
      NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder} --cpu-prof-interval=${samplingIntervalUs}`,
      // Every node writes its profile when it ends; they end together, so there is nobody to hand over to.
      ZARIS_SHUTDOWN_MS: '500',
    },
  });
  await profileLoad(context, scene, cluster);
  checkGoing(context);
  await Promise.all(cluster.nodes.nodeIds().map((nodeId) => cluster.nodes.stop(nodeId, graceMs)));
  const files = readdirSync(folder).filter((file) => file.endsWith('.cpuprofile'));
  const summaries = files.map((file) => summarizeFile(join(folder, file))).sort((a, b) => b.busyShare - a.busyShare);
  if (summaries[0] === undefined) throw new Error('no node wrote a profile');
  printSummary(context, `busiest of ${summaries.length} nodes`, summaries[0]);
}

/** Profiles each scene and prints the top functions. */
export async function benchProfile(context: BenchContext): Promise<void> {
  for (const scene of scenes) {
    checkGoing(context);
    await profileScene(context, scene);
  }
}
