/**
 * Partitions as data: shape and nodes → who no longer hears whom, as one-way cuts.
 *
 * Invariant: what is returned is the whole cut and nothing else, no end cut from itself, no cut twice. If a direction were
 * missing, a "partition" would leak, and the run would certify a fault that was milder than its name.
 */
import { assert, unreachable } from '../lib/assert.ts';
import type { PartitionShape } from './faults.ts';
import type { Endpoint } from './ports.ts';

/** Packets from `from` do not arrive at `to`. */
export interface Cut {
  readonly from: Endpoint;
  readonly to: Endpoint;
}

/** The end of a link that stands for the harness and its clients. */
export const clientEndpoint: Endpoint = 'client';

const bothWays = (a: Endpoint, b: Endpoint): Cut[] => [
  { from: a, to: b },
  { from: b, to: a },
];

const between = (left: readonly Endpoint[], right: readonly Endpoint[]): Cut[] =>
  left.flatMap((a) => right.flatMap((b) => bothWays(a, b)));

/** Stable text of a cut, for sets and evidence. */
export const cutText = (cut: Cut): string => `${cut.from}→${cut.to}`;

/** Fewest nodes with which a shape cuts anything that its name promises. */
export const fewestNodes: Readonly<Record<PartitionShape, number>> = {
  halves: 2,
  isolate: 2,
  'majorities-ring': 4,
  bridge: 3,
  'one-way-in': 2,
  'one-way-out': 2,
};

/**
 * Cuts of a shape over `nodeIds`. `targets` is the smaller half (halves), the bridge (its first), or those cut off; a ring
 * takes the order of `nodeIds`. Throws on fewer nodes than the shape needs, or a target that is no node.
 */
export function partitionCuts(
  shape: PartitionShape,
  nodeIds: readonly string[],
  targets: readonly string[],
  clients = false,
): readonly Cut[] {
  assert(nodeIds.length >= fewestNodes[shape], `${shape} needs at least ${fewestNodes[shape]} nodes`);
  assert(
    targets.every((target) => nodeIds.includes(target)),
    'a target of a partition is a node',
  );
  const others = nodeIds.filter((nodeId) => !targets.includes(nodeId));
  const cuts = shapeCuts(shape, nodeIds, targets, others);
  return clients ? unionOfCuts([cuts, clientCuts(targets)]) : cuts;
}

function shapeCuts(
  shape: PartitionShape,
  nodeIds: readonly string[],
  targets: readonly string[],
  others: readonly string[],
): readonly Cut[] {
  switch (shape) {
    case 'halves':
    case 'isolate': {
      const cuts = between(targets, others);
      // Isolated nodes do not hear each other either; a half stays whole.
      return shape === 'halves'
        ? cuts
        : unionOfCuts([
            cuts,
            ...targets.map((one) =>
              between(
                [one],
                targets.filter((other) => other !== one),
              ),
            ),
          ]);
    }
    case 'one-way-in':
      return others.flatMap((from) => targets.map((to) => ({ from, to })));
    case 'one-way-out':
      return targets.flatMap((from) => others.map((to) => ({ from, to })));
    case 'majorities-ring':
      return ringCuts(nodeIds);
    case 'bridge': {
      const bridge = targets[0] ?? nodeIds[0];
      const rest = nodeIds.filter((nodeId) => nodeId !== bridge);
      const middle = Math.floor(rest.length / 2);
      return between(rest.slice(0, middle), rest.slice(middle));
    }
    default:
      return unreachable(shape, 'partition shape');
  }
}

/** Every node hears a majority (itself included), no two hear the same one where the count is odd: its nearest in the ring. */
function ringCuts(nodeIds: readonly string[]): readonly Cut[] {
  const count = nodeIds.length;
  // Neighbours on each side, so that 2r + 1 nodes (or one more, for even counts) are a majority.
  const reach = Math.ceil((Math.floor(count / 2) + 1 - 1) / 2);
  const cuts: Cut[] = [];
  nodeIds.forEach((from, a) => {
    nodeIds.forEach((to, b) => {
      const distance = Math.min(Math.abs(a - b), count - Math.abs(a - b));
      if (a !== b && distance > reach) cuts.push({ from, to });
    });
  });
  return cuts;
}

/** The clients cut from these nodes, both ways. */
export function clientCuts(targets: readonly string[]): readonly Cut[] {
  return between([clientEndpoint], targets);
}

/** All cuts of all lists, each once, in a stable order. */
export function unionOfCuts(lists: readonly (readonly Cut[])[]): readonly Cut[] {
  const seen = new Map<string, Cut>();
  for (const cut of lists.flat()) seen.set(cutText(cut), cut);
  return [...seen.values()].sort((a, b) => (cutText(a) < cutText(b) ? -1 : 1));
}

/** True when `from` is cut from `to`. */
export function isCut(cuts: readonly Cut[], from: Endpoint, to: Endpoint): boolean {
  return cuts.some((cut) => cut.from === from && cut.to === to);
}

/** Nodes that a node exchanges packets with in both directions, itself included. */
export function heardBy(cuts: readonly Cut[], nodeIds: readonly string[], nodeId: string): readonly string[] {
  return nodeIds.filter((other) => other === nodeId || (!isCut(cuts, nodeId, other) && !isCut(cuts, other, nodeId)));
}
