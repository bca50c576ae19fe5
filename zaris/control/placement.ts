/**
 * Draws partition maps: who prefers to lead what, who holds copies. Pure, deterministic.
 * A map never decides whether a write is kept; a bad one only makes load uneven or moves more data than it must.
 */
import { assert, present } from '../../lib/assert.ts';
import type { NodeId } from '../model/ids.ts';
import type { Placement } from './commands.ts';

/**
 * A map over `nodes` that moves as little of `previous` as an even spread allows. Copies per partition: `replicationFactor`,
 * or all nodes where there are fewer.
 */
export function drawPlacements(
  nodes: readonly NodeId[],
  options: {
    readonly partitionCount: number;
    readonly replicationFactor: number;
    readonly previous: readonly Placement[];
  },
): Placement[] {
  assert(nodes.length > 0, 'a map needs a node');
  const { partitionCount, previous } = options;
  const copies = Math.min(options.replicationFactor, nodes.length);
  const load = new Map(nodes.map((id) => [id, 0]));
  const bound = Math.ceil((partitionCount * copies) / nodes.length);
  const kept = keepCopies(previous, { partitionCount, copies, bound, load });
  const replicas = kept.map((holders, index) => fill(holders, { nodes, copies, load, index }));
  return choosePreferred(replicas, previous, nodes, partitionCount);
}

const count = (load: Map<NodeId, number>, id: NodeId): number => present(load.get(id), 'load of a node');

/** What stays where it is: everything on nodes that remain, less what is above an even share, taken from different partitions. */
function keepCopies(
  previous: readonly Placement[],
  {
    partitionCount,
    copies,
    bound,
    load,
  }: { partitionCount: number; copies: number; bound: number; load: Map<NodeId, number> },
): NodeId[][] {
  const kept: NodeId[][] = Array.from({ length: partitionCount }, (_, index) =>
    (previous[index]?.replicas ?? []).filter((id) => load.has(id)).slice(0, copies),
  );
  for (const holders of kept) for (const id of holders) load.set(id, count(load, id) + 1);
  for (const id of load.keys()) {
    while (count(load, id) > bound) {
      // The fullest partition gives one up, so that none loses two copies while another loses none.
      const giver = kept.filter((holders) => holders.includes(id)).reduce((a, b) => (b.length > a.length ? b : a));
      giver.splice(giver.indexOf(id), 1);
      load.set(id, count(load, id) - 1);
    }
  }
  return kept;
}

function fill(
  holders: readonly NodeId[],
  {
    nodes,
    copies,
    load,
    index,
  }: { nodes: readonly NodeId[]; copies: number; load: Map<NodeId, number>; index: number },
): NodeId[] {
  const result = [...holders];
  while (result.length < copies) {
    // Ties are broken by a rotation with a varying stride, so that the copies of one node are spread over all others.
    const stride = 1 + (Math.floor(index / nodes.length) % Math.max(1, nodes.length - 1));
    let best: NodeId | null = null;
    for (let step = 0; step < nodes.length; step++) {
      const id = present(nodes[(index + result.length * stride + step) % nodes.length], 'node');
      if (result.includes(id)) continue;
      if (best === null || count(load, id) < count(load, best)) best = id;
    }
    best ??= present(
      nodes.find((id) => !result.includes(id)),
      'a node without a copy',
    );
    result.push(best);
    load.set(best, count(load, best) + 1);
  }
  return result;
}

function choosePreferred(
  replicas: readonly (readonly NodeId[])[],
  previous: readonly Placement[],
  nodes: readonly NodeId[],
  partitionCount: number,
): Placement[] {
  const leads = new Map(nodes.map((id) => [id, 0]));
  const bound = Math.ceil(partitionCount / nodes.length);
  return replicas.map((holders, index) => {
    const before = previous[index]?.preferredPrimary;
    const keeps = before !== undefined && holders.includes(before) && count(leads, before) < bound;
    const preferredPrimary = keeps
      ? before
      : holders.reduce(
          (best, id) => (count(leads, id) < count(leads, best) ? id : best),
          present(holders[0], 'a holder'),
        );
    leads.set(preferredPrimary, count(leads, preferredPrimary) + 1);
    return { preferredPrimary, replicas: holders };
  });
}
