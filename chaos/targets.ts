/**
 * From a target's role to nodes, by live status, and from there to the nearest faults that could stand in for it.
 *
 * Invariant: only nodes that hold the role by the status given are returned; the order depends on the status, the role and
 * the random stream alone. If a role were resolved by a stale or guessed status, reports would claim that primaries were hit
 * when bystanders were.
 */
import { unreachable } from '../lib/assert.ts';
import type { Prng } from '../lib/prng.ts';
import type { Intent } from './budget.ts';
import { destroysMemory, type Fault, faultOfName, type Target } from './faults.ts';
import { fewestNodes } from './partitions.ts';
import type { PartitionStatus, SystemStatus } from './ports.ts';

/** Nodes that hold a role, and the partition by which they do (null where none is involved). */
export interface Chosen {
  readonly nodeIds: readonly string[];
  readonly partition: number | null;
}

export type Resolution =
  /** Best first; never empty. */
  | { readonly kind: 'resolved'; readonly choices: readonly Chosen[] }
  | { readonly kind: 'unresolved'; readonly reason: string };

/** As many nodes as the rest can form a majority without. */
export const minoritySize = (nodeCount: number): number => Math.max(1, Math.floor((nodeCount - 1) / 2));

/** Alternatives of one role that are looked at. */
const maxChoices = 16;

/**
 * Who holds the role now. `hintPartition` is preferred where the target leaves the partition open (the partition whose event
 * triggered the fault).
 */
export function resolveTarget(
  target: Target,
  status: SystemStatus,
  nodeIds: readonly string[],
  prng: Prng,
  hintPartition: number | null = null,
): Resolution {
  switch (target.kind) {
    case 'node':
      return nodeIds.includes(target.nodeId)
        ? resolved([{ nodeIds: [target.nodeId], partition: null }])
        : unresolved(`there is no node ${target.nodeId}`);
    case 'all':
      return resolved([{ nodeIds: [...nodeIds], partition: null }]);
    case 'random':
      return resolved(drawnSets(nodeIds, target.count, prng));
    case 'minority':
      return resolved(drawnSets(nodeIds, minoritySize(nodeIds.length), prng));
    case 'control-leader':
      return status.leader !== null && nodeIds.includes(status.leader)
        ? resolved([{ nodeIds: [status.leader], partition: null }])
        : unresolved('there is no control leader at the moment');
    case 'primary':
    case 'replica':
    case 'preferred-primary':
    case 'joiner':
      return resolveInPartition(target, status, nodeIds, prng, hintPartition);
    default:
      return unreachable(target, 'target kind');
  }
}

const unresolved = (reason: string): Resolution => ({ kind: 'unresolved', reason });
const resolved = (choices: readonly Chosen[]): Resolution =>
  choices.length === 0 ? unresolved('there are not enough nodes') : { kind: 'resolved', choices };

function drawnSets(nodeIds: readonly string[], count: number, prng: Prng): Chosen[] {
  if (nodeIds.length < count) return [];
  const sets: Chosen[] = [];
  const shuffled = prng.shuffle(nodeIds);
  for (let start = 0; start < shuffled.length; start++) {
    const turned = [...shuffled.slice(start), ...shuffled.slice(0, start)];
    sets.push({ nodeIds: turned.slice(0, count), partition: null });
  }
  return sets;
}

function resolveInPartition(
  target: Extract<Target, { partition: unknown }>,
  status: SystemStatus,
  nodeIds: readonly string[],
  prng: Prng,
  hintPartition: number | null,
): Resolution {
  const wanted = target.partition === 'random' ? hintPartition : target.partition;
  const shuffled = prng.shuffle(status.partitions);
  const ordered =
    target.partition === 'random'
      ? shuffled.sort((a, b) => Number(b.partition === wanted) - Number(a.partition === wanted))
      : status.partitions.filter((one) => one.partition === wanted);
  if (ordered.length === 0) return unresolved(`there is no partition ${target.partition}`);
  const choices: Chosen[] = [];
  const seen = new Set<string>();
  for (const partition of ordered) {
    for (const nodeId of prng.shuffle(inRole(target.kind, partition))) {
      if (!nodeIds.includes(nodeId) || seen.has(nodeId)) continue;
      seen.add(nodeId);
      choices.push({ nodeIds: [nodeId], partition: partition.partition });
    }
    if (choices.length >= maxChoices) break;
  }
  const where = target.partition === 'random' ? 'any partition' : `partition ${target.partition}`;
  return choices.length === 0 ? unresolved(`no node is ${target.kind} of ${where} at the moment`) : resolved(choices);
}

function inRole(kind: Extract<Target, { partition: unknown }>['kind'], partition: PartitionStatus): readonly string[] {
  switch (kind) {
    case 'primary':
      return partition.primary === null ? [] : [partition.primary];
    case 'replica':
      return partition.replicas.filter((nodeId) => nodeId !== partition.primary);
    case 'preferred-primary':
      return partition.preferredPrimary === null ? [] : [partition.preferredPrimary];
    case 'joiner':
      return partition.joining;
    default:
      return unreachable(kind, 'role');
  }
}

/** An intent and the partition by which its nodes were chosen. */
export interface Candidate {
  readonly intent: Intent;
  readonly partition: number | null;
}

/**
 * What was meant, then its nearest, in order: the same fault on others of the same role, on fewer nodes, on any other node,
 * then a milder fault on the first choice. Empty when the cluster is too small for a shape.
 */
export function candidatesFor(
  fault: Fault,
  choices: readonly Chosen[],
  nodeIds: readonly string[],
  prng: Prng,
): readonly Candidate[] {
  if (fault.kind === 'scale-out') return [{ intent: { fault, nodeIds: [] }, partition: null }];
  if (fault.kind === 'partition' && nodeIds.length < fewestNodes[fault.shape]) return [];
  const first = choices[0];
  const candidates = choices.map((chosen) => candidate(fault, chosen, nodeIds, prng));
  for (const chosen of choices) {
    if (chosen.nodeIds.length < 2) continue;
    for (const nodeId of chosen.nodeIds)
      candidates.push(candidate(fault, { ...chosen, nodeIds: [nodeId] }, nodeIds, prng));
  }
  for (const nodeId of prng.shuffle(nodeIds)) {
    candidates.push(candidate(fault, { nodeIds: [nodeId], partition: null }, nodeIds, prng));
  }
  const mild = milder(fault);
  if (mild !== null && first !== undefined) {
    for (const nodeId of first.nodeIds)
      candidates.push(candidate(mild, { ...first, nodeIds: [nodeId] }, nodeIds, prng));
  }
  const seen = new Set<string>();
  return candidates.filter((one) => {
    const text = JSON.stringify([one.intent.fault, [...one.intent.nodeIds].sort()]);
    if (seen.has(text)) return false;
    seen.add(text);
    return true;
  });
}

function candidate(fault: Fault, chosen: Chosen, nodeIds: readonly string[], prng: Prng): Candidate {
  return { intent: { fault, nodeIds: spread(fault, chosen.nodeIds, nodeIds, prng) }, partition: chosen.partition };
}

/** Shapes that concern more nodes than the one aimed at: half of the cluster, or all of it. */
function spread(fault: Fault, targets: readonly string[], nodeIds: readonly string[], prng: Prng): readonly string[] {
  if (fault.kind !== 'partition') return targets;
  switch (fault.shape) {
    case 'halves': {
      const others = prng.shuffle(nodeIds.filter((nodeId) => !targets.includes(nodeId)));
      return [...targets, ...others].slice(0, Math.max(targets.length, minoritySize(nodeIds.length)));
    }
    case 'majorities-ring':
      return prng.shuffle(nodeIds);
    case 'bridge':
      return targets.slice(0, 1);
    case 'isolate':
    case 'one-way-in':
    case 'one-way-out':
      return targets;
    default:
      return unreachable(fault.shape, 'partition shape');
  }
}

function milder(fault: Fault): Fault | null {
  if (destroysMemory(fault)) return faultOfName('pause');
  if (fault.kind !== 'partition' || fault.shape === 'isolate') return null;
  return { ...fault, shape: 'isolate' };
}

/** Which roles these nodes hold, for the journal: `control-leader`, `primary of 13`, `replica of 25`, `joiner of 2`. */
export function rolesOf(nodeIds: readonly string[], status: SystemStatus): readonly string[] {
  const roles: string[] = [];
  const count = (test: (partition: PartitionStatus) => boolean): number => status.partitions.filter(test).length;
  const hit = (nodeId: string | null): boolean => nodeId !== null && nodeIds.includes(nodeId);
  if (hit(status.leader)) roles.push('control-leader');
  const primaries = count((one) => hit(one.primary));
  if (primaries > 0) roles.push(`primary of ${primaries}`);
  const replicas = count((one) => one.replicas.some((nodeId) => hit(nodeId) && nodeId !== one.primary));
  if (replicas > 0) roles.push(`replica of ${replicas}`);
  const joiners = count((one) => one.joining.some(hit));
  if (joiners > 0) roles.push(`joiner of ${joiners}`);
  return roles;
}
