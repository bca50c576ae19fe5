/**
 * Finds what a dead harness left of a run on the engine, complete enough to go on with it, and marks it as ours again.
 *
 * Invariant: a run is taken over only when every node's seat and the network are there and no living process owns any of it;
 * labels cannot change, so a marker volume with the new owner's labels keeps sweeps away. A run taken over half would be
 * judged as if its missing nodes had been the store's fault.
 */
import type Docker from 'dockerode';
import { EnvironmentError } from './errors.ts';
import { currentHost, currentOwner, judgeOwner, labelNames, labelsOf, ownerOfLabels } from './labels.ts';
import type { HostView } from './labels.ts';
import type { NodePorts } from './containers.ts';
import type { RunNetwork } from './network.ts';
import type { Seat } from './netns.ts';

/** One node as it stands on the engine. */
export interface FoundNode {
  readonly nodeId: string;
  readonly index: number;
  readonly seat: Seat;
  readonly ip: string;
  readonly hostClientPort: number;
  readonly hostHttpPort: number;
  /** Null after a wipe. */
  readonly containerId: string | null;
}

/** A run as it stands on the engine. */
export interface FoundRun {
  readonly network: RunNetwork;
  /** In the order of their numbers. */
  readonly nodes: readonly FoundNode[];
  /** The image that its nodes run, and the base of its seats. */
  readonly image: string;
  readonly base: string;
  readonly memoryBytes: number;
}

/** Why the run cannot be taken over, or what there is of it. */
export type Adoption =
  | { readonly kind: 'found'; readonly run: FoundRun }
  | { readonly kind: 'impossible'; readonly why: string };

/** Looks for a run; changes nothing. */
export async function findRun(
  docker: Docker,
  runId: string,
  ports: NodePorts,
  host: HostView = currentHost(),
): Promise<Adoption> {
  const filters = { label: [`${labelNames.run}=${runId}`] };
  const [containers, networks, volumes] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters }),
  ]);
  if (containers.length === 0) return { kind: 'impossible', why: 'nothing of it is on the engine any more' };
  // The marker of an earlier take-over is a volume.
  const labelled = [
    ...containers.map((each) => each.Labels),
    ...(volumes.Volumes ?? []).map((each) => each.Labels ?? {}),
  ];
  for (const labels of labelled) {
    const owner = ownerOfLabels(labels);
    const verdict = owner === null ? null : judgeOwner(owner, host);
    if (verdict?.kind === 'alive') return { kind: 'impossible', why: `process ${owner?.pid} owns its containers` };
  }
  const [network] = networks;
  if (network === undefined) return { kind: 'impossible', why: 'its network is gone' };
  const range = network.IPAM?.Config?.[0];
  if (range?.Subnet === undefined || range.Gateway === undefined)
    return { kind: 'impossible', why: 'its network has no address range' };
  const role = (name: string): Docker.ContainerInfo[] =>
    containers.filter((each) => each.Labels[labelNames.role] === name);
  const nodeContainers = new Map(role('node').map((each) => [each.Labels[labelNames.node] ?? '', each]));
  const nodes: FoundNode[] = [];
  let base = '';
  for (const seat of role('seat')) {
    const nodeId = seat.Labels[labelNames.node] ?? '';
    const found = await inspectSeat(docker, seat.Id, network.Name, ports);
    if (found === null) return { kind: 'impossible', why: `the seat of ${nodeId} cannot be brought back` };
    base = found.image;
    nodes.push({
      ...found.node,
      nodeId,
      index: Number(nodeId.slice(1)) - 1,
      containerId: nodeContainers.get(nodeId)?.Id ?? null,
    });
  }
  const orphan = [...nodeContainers.keys()].find((nodeId) => !nodes.some((node) => node.nodeId === nodeId));
  if (orphan !== undefined) return { kind: 'impossible', why: `${orphan} has lost its seat` };
  const [one] = nodeContainers.values();
  if (nodes.length === 0 || one === undefined) return { kind: 'impossible', why: 'none of its nodes is left' };
  const about = await docker.getContainer(one.Id).inspect();
  return {
    kind: 'found',
    run: {
      network: { id: network.Id, name: network.Name, subnet: range.Subnet, gateway: range.Gateway },
      nodes: nodes.toSorted((a, b) => a.index - b.index),
      image: about.Config.Image,
      base,
      memoryBytes: about.HostConfig.Memory ?? 0,
    },
  };
}

async function inspectSeat(
  docker: Docker,
  id: string,
  network: string,
  ports: NodePorts,
): Promise<{ readonly node: Omit<FoundNode, 'nodeId' | 'index' | 'containerId'>; readonly image: string } | null> {
  const container = docker.getContainer(id);
  const about = await container.inspect();
  // An engine that was restarted stops what it held; a seat that is started again has another network namespace, and its
  // node's container would still look for the old one.
  if (!about.State.Running) return null;
  const ip = about.NetworkSettings.Networks[network]?.IPAddress ?? '';
  const published = (port: number): number =>
    Number(about.HostConfig.PortBindings?.[`${port}/tcp`]?.[0]?.HostPort ?? Number.NaN);
  const hostClientPort = published(ports.client);
  const hostHttpPort = published(ports.http);
  if (ip === '' || Number.isNaN(hostClientPort) || Number.isNaN(hostHttpPort)) return null;
  return {
    node: { seat: { containerId: about.Id, pid: about.State.Pid }, ip, hostClientPort, hostHttpPort },
    image: about.Config.Image,
  };
}

/** Marks the run as owned by this process. Throws EnvironmentError when the engine refuses. */
export async function takeOwnership(docker: Docker, runId: string): Promise<void> {
  const owner = currentOwner();
  try {
    await docker.createVolume({
      Name: `zaris-${runId}-owner-${owner.pid}-${owner.startTicks}`,
      Labels: labelsOf(runId, owner, 'owner'),
    });
  } catch (error) {
    throw new EnvironmentError(`The run ${runId} could not be taken over (${String(error)}): see the engine's log.`);
  }
}
