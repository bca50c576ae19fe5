/**
 * Opens the real cluster: engine, image, sweep of what dead runs left, containers.
 */
import { BlockList } from 'node:net';
import { networkInterfaces } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { ProbeResult } from '../../chaos/ports.ts';
import { findRun } from '../../docker/adoption.ts';
import type { NodeAddress as DockerAddress } from '../../docker/cluster-options.ts';
import { DockerCluster } from '../../docker/cluster.ts';
import { type NodePorts, zarisPorts } from '../../docker/containers.ts';
import { type Engine, ensureEngine } from '../../docker/engine.ts';
import { ensureNodeImage } from '../../docker/image.ts';
import { probeExchange, probeHealth } from '../../docker/probes.ts';
import { buildOwnImage } from '../../docker/own-image.ts';
import { ensureSystemImage, folderInImage } from '../../docker/system-image.ts';
import type { Effect } from '../../docker/node-life.ts';
import { keepRun, sweep } from '../../docker/sweep.ts';
import type { NodeEndpoints } from '../systems/system.ts';
import type { OpenClusterOptions, RunCluster } from './run-cluster.ts';

const projectDir = fileURLToPath(new URL('../..', import.meta.url));
/** Last characters of a node's log that a finding shows. */
const logTailChars = 4_000;
const host = '127.0.0.1';

/** Starts one container per node, or takes over those of a dead harness. Rejects with EnvironmentError; a start leaves nothing behind then. */
export async function openDockerCluster(options: OpenClusterOptions): Promise<RunCluster> {
  const engine = await ensureEngine({ say: options.say });
  const common = {
    engine,
    clock: options.clock,
    runId: options.runId,
    environment: (nodeId: string, index: number, addresses: ReadonlyMap<string, DockerAddress>) =>
      options.environment(nodeId, index, endpointsOfAll(addresses)),
    ...programOptions(options),
    // Whether another program looks at the clock through the C library is not known: the probe's word would say nothing of it.
    clockFaults: options.movableClocks === true && options.program === undefined && options.own === undefined,
    logsDir: options.logsDir,
    say: options.say,
    onEffect: ({ kind, nodeId, atMs }: Effect) => {
      if (kind === 'killed') options.onDeath?.(nodeId, atMs);
    },
  };
  if (options.adopt === true) return await runClusterOf(await DockerCluster.adopt(common), engine, options.runId);
  await sweepDead(engine, options.say);
  const image = await imageOf(engine, options);
  const cluster = await DockerCluster.start({
    ...common,
    image: image.name,
    base: image.base,
    nodeCount: options.nodeCount,
  });
  return await runClusterOf(cluster, engine, options.runId);
}

/** Why a run cannot be taken over; null when it can. Throws EnvironmentError when no engine answers. */
export async function adoptionObstacle(runId: string, ports: NodePorts = zarisPorts): Promise<string | null> {
  const { docker } = await ensureEngine({ say: () => undefined });
  const found = await findRun(docker, runId, ports);
  return found.kind === 'found' ? null : found.why;
}

async function sweepDead(engine: Engine, say: (line: string) => void): Promise<void> {
  const report = await sweep(engine.docker);
  for (const swept of report.swept) {
    say(
      `Removed what run ${swept.runId} had left behind (${swept.containers} containers, ${swept.networks} networks; ${swept.proof ?? 'by name'}).`,
    );
  }
}

async function imageOf(engine: Engine, options: OpenClusterOptions): Promise<{ name: string; base: string }> {
  const common = { docker: engine.docker, projectDir, say: options.say };
  if (options.own?.kind === 'image') return await ensureSystemImage(common, options.own);
  if (options.own?.kind === 'build') return await buildOwnImage(common, options.own.folder);
  if (options.program !== undefined) {
    const { source } = options.program.program;
    return await ensureSystemImage(common, source);
  }
  const entry = options.nodeEntry;
  return await ensureNodeImage({
    ...common,
    ...(entry === null ? {} : { entry, extraFolders: [entry.split('/')[0] ?? ''] }),
  });
}

/** What a program that is not Zaris needs: its command, its ports, and the way to see that it answers. */
function programOptions(options: OpenClusterOptions) {
  if (options.program === undefined) return {};
  const { program, plan, unsupportedFaults } = options.program;
  const { ports, readiness } = program;
  return {
    ports,
    unsupportedFaults,
    command: (nodeId: string, index: number, addresses: ReadonlyMap<string, DockerAddress>): readonly string[] =>
      program.command({
        plan,
        nodeId,
        index,
        nodes: endpointsOfAll(addresses),
        host: '0.0.0.0',
        ports,
        dataDir: '/data',
        folder: folderInImage,
      }),
    probe: (address: DockerAddress): Promise<ProbeResult> =>
      readiness.kind === 'http'
        ? probeHealth(options.clock, address.hostHttpPort, readiness.path, address.nodeId)
        : probeExchange(options.clock, { host, port: address.hostClientPort, ...readiness }, address.nodeId),
  };
}

async function runClusterOf(cluster: DockerCluster, engine: Engine, runId: string): Promise<RunCluster> {
  // A name may mean another image tomorrow; its identity may not.
  const imageId = await engine.docker
    .getImage(cluster.image)
    .inspect()
    .then((about) => about.Id)
    .catch(() => 'unknown');
  return {
    cluster,
    addresses: () =>
      inOrder(cluster.addresses()).map((address) => ({
        nodeId: address.nodeId,
        internalClientAddress: `${address.ip}:${address.ports.client}`,
        ...(isOnThisHost(address.ip)
          ? { host: address.ip, clientPort: address.ports.client, httpPort: address.ports.http }
          : { host, clientPort: address.hostClientPort, httpPort: address.hostHttpPort }),
      })),
    build: cluster.image,
    engine: `Docker ${engine.version}`,
    versions: [
      { name: 'Docker engine', value: engine.version },
      { name: 'node image', value: cluster.image },
      { name: 'node image id', value: imageId },
    ],
    logTail: async (nodeId) => (await cluster.logs(nodeId)).slice(-logTailChars),
    keep: async () => {
      await keepRun(engine.docker, runId);
      return `npm run certify -- clean ${runId}`;
    },
    dispose: () => cluster.dispose(),
  };
}

/**
 * Whether an interface of this host stands in the containers' network: then they are reached without the engine's forwarder, which
 * costs processor time for every byte and accepts connections for nodes that are cut off or paused.
 */
function isOnThisHost(ip: string): boolean {
  const blocked = new BlockList();
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { cidr, family } of addresses ?? []) {
      const [network, bits] = cidr?.split('/') ?? [];
      if (family === 'IPv4' && network !== undefined) blocked.addSubnet(network, Number(bits), 'ipv4');
    }
  }
  return blocked.check(ip, 'ipv4');
}

/** By the nodes' numbers: the seats come up in any order. */
const inOrder = (addresses: ReadonlyMap<string, DockerAddress>): DockerAddress[] =>
  [...addresses.values()].toSorted((a, b) => Number(a.nodeId.slice(1)) - Number(b.nodeId.slice(1)));

const endpointsOfAll = (addresses: ReadonlyMap<string, DockerAddress>): NodeEndpoints[] =>
  inOrder(addresses).map(endpointsOf);

function endpointsOf(address: DockerAddress): NodeEndpoints {
  const { ip, ports } = address;
  const direct = isOnThisHost(ip);
  return {
    nodeId: address.nodeId,
    clusterAddress: `${ip}:${ports.cluster}`,
    clientAddress: direct ? `${ip}:${ports.client}` : `${host}:${address.hostClientPort}`,
    httpAddress: direct ? `${ip}:${ports.http}` : `${host}:${address.hostHttpPort}`,
    internalClientAddress: `${ip}:${ports.client}`,
    internalHttpAddress: `${ip}:${ports.http}`,
  };
}
