/**
 * The fault budget: what may be taken from the cluster at once without breaking what its contract promises to survive.
 *
 * The promise: the memory of one in-sync (or ELR) incarnation of every partition survives, and a majority of the control
 * voters works. Invariant: an allowed fault leaves, in every partition whose memory is being destroyed, a holder under no
 * open fault; and a live majority of voters under none. Members are charged from before the injection: kill-like faults
 * until the new incarnation is back in every set the old one left, others until `settleMs` after the verified heal, since a
 * removal from an in-sync set may still be on its way. If it were wrong, a store would be blamed for a loss that nobody
 * promises to survive, or a run would be green because nothing was risked. Source: DESIGN §6.
 */
import { unreachable } from '../lib/assert.ts';
import { type Fault, faultName } from './faults.ts';
import type { PartitionStatus, SystemStatus } from './ports.ts';

/** How long a member that was cut off or frozen stays charged after its heal was verified. */
export const settleMs = 3_000;
/** Oldest status that may be judged by. */
export const statusMaxAgeMs = 2_000;

/** What a fault takes from the nodes it touches. */
export interface Toll {
  /** Their memory is gone. */
  readonly destroys: readonly string[];
  /** They may drop out of in-sync sets. */
  readonly drops: readonly string[];
  /** They serve nobody and vote for nobody. */
  readonly silences: readonly string[];
  /**
   * One side of a cut; null without one. A primary on it may drop everybody on the other side from its in-sync set, also shortly
   * after the heal, when its proposals arrive before their acknowledgements; and the other side may replace it.
   */
  readonly side: readonly string[] | null;
}

/** A fault on chosen nodes. */
export interface Intent {
  readonly fault: Fault;
  readonly nodeIds: readonly string[];
}

/** Where a node stood when its memory was taken. */
export interface Departure {
  readonly nodeId: string;
  readonly incarnation: number;
  readonly partitions: readonly number[];
  /** Disk identity of the voter that a wipe removed; null when it was no voter or kept its disk. */
  readonly lostVoterDisk: string | null;
  readonly lostVoter: boolean;
  /** True when the node does not come back at all. */
  readonly forGood: boolean;
}

/** An entry of the account: made before the injection, removed by {@link settle}. */
export interface Charge {
  readonly faultId: string;
  readonly toll: Toll;
  readonly departures: readonly Departure[];
  /** Null while the fault is open or its heal not yet verified. */
  readonly healVerifiedAtMs: number | null;
  /** Wiped voters that were since seen to be absent from the voters (where disk identities are not known). */
  readonly votersSeenGone: readonly string[];
}

export interface BudgetPolicy {
  /** False: a fault must also leave every replicated partition somebody who can serve it. */
  readonly mayStall: boolean;
  /** True: what the budget denies is done all the same, and recorded as an overshoot; only where the run asked for it. */
  readonly mayExceed?: boolean;
}

export type Judgement = { readonly kind: 'allowed' } | { readonly kind: 'denied'; readonly reason: string };

const noToll: Toll = { destroys: [], drops: [], silences: [], side: null };

/** What an intent takes, on a cluster of `nodeIds`. */
export function tollOf(intent: Intent, nodeIds: readonly string[]): Toll {
  const { fault } = intent;
  const targets = intent.nodeIds;
  switch (fault.kind) {
    case 'kill':
    case 'stop':
    case 'oom':
    case 'wipe':
    case 'scale-in':
    case 'rolling-restart':
      return { destroys: targets, drops: targets, silences: targets, side: null };
    case 'pause':
      return { destroys: [], drops: targets, silences: targets, side: null };
    case 'reset':
    case 'loss':
    case 'latency':
    case 'bandwidth':
      return { destroys: [], drops: targets, silences: targets, side: targets };
    case 'partition':
      // A ring or a bridge leaves everybody a majority, but nearly everybody may drop out of some in-sync set.
      if (fault.shape === 'majorities-ring') return { destroys: [], drops: nodeIds, silences: [], side: null };
      if (fault.shape === 'bridge') {
        return { destroys: [], drops: nodeIds.filter((nodeId) => nodeId !== targets[0]), silences: [], side: null };
      }
      return { destroys: [], drops: targets, silences: targets, side: targets };
    case 'client-partition':
    case 'clock':
    case 'scale-out':
      return noToll;
    default:
      return unreachable(fault, 'fault kind');
  }
}

/** The account's entry for an intent, to be made before it is injected. */
export function chargeFor(faultId: string, intent: Intent, status: SystemStatus, nodeIds: readonly string[]): Charge {
  const toll = tollOf(intent, nodeIds);
  const wiped = intent.fault.kind === 'wipe';
  return {
    faultId,
    toll,
    departures: toll.destroys.map((nodeId) => ({
      nodeId,
      incarnation: incarnationOf(status, nodeId),
      partitions: status.partitions.filter((one) => holders(one).includes(nodeId)).map((one) => one.partition),
      lostVoterDisk: wiped ? (status.voterDisks?.[nodeId] ?? null) : null,
      lostVoter: wiped && status.voters.includes(nodeId),
      forGood: intent.fault.kind === 'scale-in',
    })),
    healVerifiedAtMs: null,
    votersSeenGone: [],
  };
}

const incarnationOf = (status: SystemStatus, nodeId: string): number =>
  status.nodes.find((node) => node.nodeId === nodeId)?.incarnation ?? 0;

/** Members whose memory counts: in sync, or eligible as leader. */
export function holders(partition: PartitionStatus): readonly string[] {
  return [...new Set([...partition.inSync, ...partition.eligible])];
}

/**
 * Holders that count as what is left. A copy that the map no longer asks for is dropped once all that it asks for are in sync, at any
 * moment, also by a primary that does not know yet that one of those is gone.
 */
function staying(partition: PartitionStatus): readonly string[] {
  const holding = holders(partition);
  const { replicas, inSync } = partition;
  if (!replicas.every((nodeId) => inSync.includes(nodeId))) return holding;
  return holding.filter((nodeId) => replicas.includes(nodeId));
}

/**
 * The new incarnation is alive and in the set (or was relieved of the duty by a new map; that counts only once no set names it any
 * more: until then a surplus member that is gone would pass for a holder).
 */
function isBackIn(status: SystemStatus, departure: Departure, partition: number): boolean {
  const now = status.partitions.find((one) => one.partition === partition);
  if (now === undefined) return true;
  if (!now.replicas.includes(departure.nodeId) && !holders(now).includes(departure.nodeId)) return true;
  const node = status.nodes.find((one) => one.nodeId === departure.nodeId);
  return (
    node !== undefined &&
    node.alive &&
    node.incarnation > departure.incarnation &&
    now.inSync.includes(departure.nodeId)
  );
}

function isVoterBack(status: SystemStatus, departure: Departure, seenGone: readonly string[]): boolean {
  if (!departure.lostVoter) return true;
  const disk = status.voterDisks?.[departure.nodeId];
  if (departure.lostVoterDisk !== null && disk !== undefined) return disk !== departure.lostVoterDisk;
  return seenGone.includes(departure.nodeId) && status.voters.includes(departure.nodeId);
}

function isDepartureSettled(status: SystemStatus, charge: Charge, departure: Departure): boolean {
  if (departure.forGood) {
    return (
      !status.voters.includes(departure.nodeId) &&
      status.partitions.every(
        (one) => !one.replicas.includes(departure.nodeId) && !holders(one).includes(departure.nodeId),
      )
    );
  }
  return (
    departure.partitions.every((partition) => isBackIn(status, departure, partition)) &&
    isVoterBack(status, departure, charge.votersSeenGone)
  );
}

/** The account after a look at a fresh status: what is over and back is taken off. */
export function settle(charges: readonly Charge[], status: SystemStatus): readonly Charge[] {
  const remaining: Charge[] = [];
  for (const charge of charges) {
    const gone = charge.departures
      .filter((one) => one.lostVoter && !status.voters.includes(one.nodeId))
      .map((one) => one.nodeId);
    const votersSeenGone = [...new Set([...charge.votersSeenGone, ...gone])];
    const now = { ...charge, votersSeenGone };
    if (charge.healVerifiedAtMs === null) {
      remaining.push(now);
      continue;
    }
    const departures = now.departures.filter((departure) => !isDepartureSettled(status, now, departure));
    const settling = charge.toll.destroys.length === 0 && status.atMs < charge.healVerifiedAtMs + settleMs;
    if (departures.length > 0 || settling) remaining.push({ ...now, departures });
  }
  return remaining;
}

interface Account {
  readonly destroyed: ReadonlySet<string>;
  readonly dropped: ReadonlySet<string>;
  readonly silent: ReadonlySet<string>;
  /** The marked sides of all cuts that may still have an effect. */
  readonly sides: readonly (readonly string[])[];
}

/** What all charges and the intent take together. Nodes dead by themselves count as destroyed: nobody knows better. */
function accountOf(status: SystemStatus, charges: readonly Charge[], intended: Toll): Account {
  const destroyed = new Set(intended.destroys);
  const dropped = new Set(intended.drops);
  const silent = new Set(intended.silences);
  const sides = intended.side === null ? [] : [intended.side];
  for (const charge of charges) {
    if (charge.toll.side !== null) sides.push(charge.toll.side);
    if (charge.healVerifiedAtMs === null) {
      for (const nodeId of charge.toll.drops) dropped.add(nodeId);
      for (const nodeId of charge.toll.destroys) destroyed.add(nodeId);
      for (const nodeId of charge.toll.silences) silent.add(nodeId);
      continue;
    }
    // Still settling: a removal from an in-sync set may be on its way.
    if (charge.toll.destroys.length === 0) for (const nodeId of charge.toll.drops) dropped.add(nodeId);
    for (const departure of charge.departures) {
      destroyed.add(departure.nodeId);
      dropped.add(departure.nodeId);
      // Running again with its old disk it votes; without it, not before its replacement is committed.
      if (departure.forGood || !isVoterBack(status, departure, charge.votersSeenGone)) silent.add(departure.nodeId);
    }
  }
  for (const node of status.nodes) {
    if (node.alive) continue;
    silent.add(node.nodeId);
    if (!dropped.has(node.nodeId)) destroyed.add(node.nodeId);
    dropped.add(node.nodeId);
  }
  return { destroyed, dropped, silent, sides };
}

/** Partitions that keep no holder outside what the charges and the intent destroy: their loss is nobody's broken promise. */
export function uncoveredPartitions(
  status: SystemStatus,
  charges: readonly Charge[],
  intent: Intent,
  nodeIds: readonly string[],
): readonly number[] {
  const { destroyed } = accountOf(status, charges, tollOf(intent, nodeIds));
  return status.partitions
    .filter((partition) => holders(partition).length > 0 && holders(partition).every((nodeId) => destroyed.has(nodeId)))
    .map((partition) => partition.partition);
}

/** Does the contract promise to survive this intent, on top of what is open? Judge by a fresh, quorum-read status only. */
export function judge(
  status: SystemStatus,
  charges: readonly Charge[],
  intent: Intent,
  nodeIds: readonly string[],
  policy: BudgetPolicy,
): Judgement {
  const toll = tollOf(intent, nodeIds);
  const account = accountOf(status, charges, toll);
  const touches = new Set([...toll.destroys, ...toll.drops]);
  for (const partition of status.partitions) {
    const holding = holders(partition);
    if (!holding.some((nodeId) => touches.has(nodeId))) continue;
    const stay = staying(partition);
    const bare =
      bareSide(partition, holding, account, status.minInSync) ?? bareSide(partition, stay, account, status.minInSync);
    if (bare !== null) {
      return denied(
        `partition ${partition.partition} may be left to ${bare.join(', ')} by a cut, and they would be taken (holders: ${holding.join(', ')})`,
      );
    }
    if (stay.some((nodeId) => !account.destroyed.has(nodeId) && !account.dropped.has(nodeId))) continue;
    if (holding.some((nodeId) => account.destroyed.has(nodeId))) {
      return denied(
        `partition ${partition.partition} would keep no copy outside open faults (holders: ${holding.join(', ')}${surplusText(holding, stay)})`,
      );
    }
    const stalls = holding.every((nodeId) => account.silent.has(nodeId));
    if (stalls && !policy.mayStall && partition.replicas.length > 1) {
      return denied(
        `partition ${partition.partition} would have nobody left to serve it (holders: ${holding.join(', ')})`,
      );
    }
  }
  const working = status.voters.filter((nodeId) => !account.silent.has(nodeId)).length;
  const majority = Math.floor(status.voters.length / 2) + 1;
  if (toll.silences.some((nodeId) => status.voters.includes(nodeId)) && working < majority) {
    return denied(`${working} of ${status.voters.length} control voters would be left, ${majority} are a majority`);
  }
  return { kind: 'allowed' };
}

/**
 * A group of these holders that a cut may leave as the whole in-sync set although all of it is destroyed; null when there is none. With the
 * primary on the marked side either group may end alone: its own by dropping the others, the others by replacing it. A group
 * below `minInSync` is no danger while all of the others live: the last of them that it drops becomes eligible.
 */
function bareSide(
  partition: PartitionStatus,
  holding: readonly string[],
  account: Account,
  minInSync: number,
): readonly string[] | null {
  const isDestroyed = (nodeId: string): boolean => account.destroyed.has(nodeId);
  if (!holding.some(isDestroyed)) return null;
  for (const side of account.sides) {
    const marked = holding.filter((nodeId) => side.includes(nodeId));
    const others = holding.filter((nodeId) => !side.includes(nodeId));
    if (marked.length === 0 || others.length === 0) continue;
    const isLedThere = partition.primary === null || marked.includes(partition.primary);
    const mayEndAlone = isLedThere ? [marked, others] : [others];
    for (const group of mayEndAlone) {
      const rest = group === marked ? others : marked;
      const leavesEligible = group.length < minInSync && !rest.some(isDestroyed);
      if (group.every(isDestroyed) && !leavesEligible) return group;
    }
  }
  return null;
}

function surplusText(holding: readonly string[], stay: readonly string[]): string {
  const surplus = holding.filter((nodeId) => !stay.includes(nodeId));
  return surplus.length === 0 ? '' : `; no longer in the map: ${surplus.join(', ')}`;
}

const denied = (reason: string): Judgement => ({ kind: 'denied', reason });

/** Result of fitting an intent into the budget. */
export type Fit =
  | { readonly kind: 'allowed'; readonly intent: Intent }
  | { readonly kind: 'changed'; readonly intent: Intent; readonly why: string }
  | { readonly kind: 'denied'; readonly reason: string };

/**
 * The first of `candidates` that is allowed; the first is what was meant, the others its nearest, in order. Where the budget
 * may be exceeded that is the first.
 */
export function fitToBudget(
  status: SystemStatus,
  charges: readonly Charge[],
  candidates: readonly Intent[],
  nodeIds: readonly string[],
  policy: BudgetPolicy,
): Fit {
  let firstReason: string | null = null;
  const [meant] = candidates;
  if (policy.mayExceed === true && meant !== undefined) return { kind: 'allowed', intent: meant };
  for (const intent of candidates) {
    const judgement = judge(status, charges, intent, nodeIds, policy);
    if (judgement.kind === 'denied') {
      firstReason ??= judgement.reason;
      continue;
    }
    return firstReason === null ? { kind: 'allowed', intent } : { kind: 'changed', intent, why: firstReason };
  }
  return { kind: 'denied', reason: firstReason ?? 'no node to do it to' };
}

/** More was taken than the contract promises to survive. */
export interface Overshoot {
  readonly why: string;
  /** Every holder of these was taken, as far as is known. */
  readonly partitions: readonly number[];
}

/**
 * Looks at a status read after the injection: null while every partition keeps a holder outside what was destroyed, else
 * what was overshot. A node that is back in a partition counts for it, even while it is charged for others.
 */
export function overshoot(status: SystemStatus, charges: readonly Charge[]): Overshoot | null {
  const taken = status.partitions.filter((partition) => {
    const holding = holders(partition);
    const isGone = (nodeId: string): boolean =>
      charges.some((charge) =>
        charge.departures.some(
          (departure) =>
            departure.nodeId === nodeId &&
            (departure.partitions.includes(partition.partition) || charge.healVerifiedAtMs === null) &&
            incarnationOf(status, nodeId) <= departure.incarnation,
        ),
      );
    return holding.length > 0 && holding.every(isGone);
  });
  const [first] = taken;
  const partitions = taken.map((partition) => partition.partition);
  if (first !== undefined)
    return { why: `every holder of partition ${first.partition} was taken (${holders(first).join(', ')})`, partitions };
  const lost = status.partitions.find((partition) => partition.health === 'Lost');
  return lost === undefined ? null : { why: `partition ${lost.partition} is Lost`, partitions };
}

/** For messages: `kill n1, n3`. */
export function intentText(intent: Intent): string {
  return `${faultName(intent.fault)} ${intent.nodeIds.length === 0 ? '(whole cluster)' : intent.nodeIds.join(', ')}`;
}
