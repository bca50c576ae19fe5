/**
 * Removes what runs left on an engine: of one run by name, or of every run whose owner is provably dead.
 *
 * Invariant: only things with our labels are touched; of those, the sweep takes only runs whose owner is proved dead
 * and that nobody marked as kept. A sweep that took a living run would make the harness the fault.
 */
import type Docker from 'dockerode';
import { messageOf } from './errors.ts';
import { currentHost, currentOwner, judgeOwner, labelNames, labelsOf, ownerOfLabels } from './labels.ts';
import type { HostView } from './labels.ts';
import { removeContainer } from './node-life.ts';

/** One thing of ours on the engine. */
interface Item {
  readonly kind: 'container' | 'network' | 'volume';
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** What was removed of one run. */
export interface SweptRun {
  readonly runId: string;
  /** Why its owner is known to be dead; null when it was removed by name. */
  readonly proof: string | null;
  readonly containers: number;
  readonly networks: number;
  readonly volumes: number;
  /** What could not be removed, with the reason. */
  readonly problems: readonly string[];
}

/** Runs that were left alone, with the reason. */
export interface SparedRun {
  readonly runId: string;
  readonly why: string;
}

export interface SweepReport {
  readonly swept: readonly SweptRun[];
  readonly spared: readonly SparedRun[];
}

async function listItems(docker: Docker, filter: string): Promise<Item[]> {
  const filters = { label: [filter] };
  const [containers, networks, volumes] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters }),
  ]);
  return [
    ...containers.map((item): Item => ({ kind: 'container', id: item.Id, labels: item.Labels })),
    ...networks.map((item): Item => ({ kind: 'network', id: item.Id, labels: item.Labels ?? {} })),
    ...(volumes.Volumes ?? []).map((item): Item => ({ kind: 'volume', id: item.Name, labels: item.Labels ?? {} })),
  ];
}

async function removeItem(docker: Docker, item: Item): Promise<void> {
  if (item.kind === 'container') return await removeContainer(docker, item.id);
  const thing = item.kind === 'network' ? docker.getNetwork(item.id) : docker.getVolume(item.id);
  await thing.remove().catch((error: unknown) => {
    if ((error as { statusCode?: number }).statusCode !== 404) throw error;
  });
}

/** Nodes go before the seats they live in, containers before networks and volumes. */
const orderOf = (item: Item): number =>
  item.kind !== 'container' ? 2 : item.labels[labelNames.role] === 'seat' ? 1 : 0;

async function removeItems(
  docker: Docker,
  runId: string,
  items: readonly Item[],
  proof: string | null,
): Promise<SweptRun> {
  const counts = { container: 0, network: 0, volume: 0 };
  const problems: string[] = [];
  for (const order of [0, 1, 2]) {
    await Promise.all(
      items
        .filter((item) => orderOf(item) === order)
        .map(async (item) => {
          try {
            await removeItem(docker, item);
            counts[item.kind] += 1;
          } catch (error) {
            problems.push(`${item.kind} ${item.id}: ${messageOf(error)}`);
          }
        }),
    );
  }
  return { runId, proof, containers: counts.container, networks: counts.network, volumes: counts.volume, problems };
}

/** Removes everything of one run, kept or not, whoever owns it. */
export async function cleanRun(docker: Docker, runId: string): Promise<SweptRun> {
  return await removeItems(docker, runId, await listItems(docker, `${labelNames.run}=${runId}`), null);
}

/** Marks a run as kept: sweeps leave it alone until {@link cleanRun}. Labels cannot change, so a volume carries the mark. */
export async function keepRun(docker: Docker, runId: string): Promise<void> {
  const labels = { ...labelsOf(runId, currentOwner(), 'kept'), [labelNames.kept]: 'true' };
  await docker.createVolume({ Name: `zaris-${runId}-kept`, Labels: labels });
}

/** Removes what dead owners left behind. */
export async function sweep(docker: Docker, host: HostView = currentHost()): Promise<SweepReport> {
  const byRun = new Map<string, Item[]>();
  for (const item of await listItems(docker, labelNames.run)) {
    const runId = item.labels[labelNames.run] ?? '';
    byRun.set(runId, [...(byRun.get(runId) ?? []), item]);
  }
  const swept: SweptRun[] = [];
  const spared: SparedRun[] = [];
  for (const [runId, items] of byRun) {
    const fate = judgeRun(items, host);
    if (fate.kind === 'dead') swept.push(await removeItems(docker, runId, items, fate.proof));
    else spared.push({ runId, why: fate.why });
  }
  return { swept, spared };
}

type RunFate = { readonly kind: 'dead'; readonly proof: string } | { readonly kind: 'spared'; readonly why: string };

/** Every thing of the run must have a dead owner: a run that was taken over has parts of a living one. */
function judgeRun(items: readonly Item[], host: HostView): RunFate {
  if (items.some((item) => item.labels[labelNames.kept] !== undefined)) return { kind: 'spared', why: 'kept' };
  let proof = '';
  for (const item of items) {
    const owner = ownerOfLabels(item.labels);
    if (owner === null) return { kind: 'spared', why: 'its labels are not complete' };
    const verdict = judgeOwner(owner, host);
    if (verdict.kind === 'alive') return { kind: 'spared', why: `its owner, process ${owner.pid}, is alive` };
    if (verdict.kind === 'unknown') return { kind: 'spared', why: verdict.why };
    proof = verdict.proof;
  }
  return { kind: 'dead', proof };
}
