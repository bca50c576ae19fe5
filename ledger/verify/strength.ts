/**
 * How strong a certificate is: how many failovers acknowledged writes went through and were looked at afterwards.
 *
 * "Rule of three": n alike and independent trials without a failure bound its probability by 3/n at 95 %. The headline is per
 * failover; the bound per write is optimistic, since the writes of one failover share its fate. A failover that no judged
 * write went through is no trial.
 */
import { countAtMost, type RunContext } from './run-context.ts';
import type { Tally } from './tally.ts';

/** Failovers closer together than this count as one incident (one dead node moves many partitions at once), ns. */
export const incidentGapNs = 2e9;

export interface Strength {
  /** Partition failovers that at least one judged write went through. */
  readonly failovers: number;
  /** The same, grouped in time: what may honestly be called independent. */
  readonly incidents: number;
  readonly allFailovers: number;
  readonly handoffs: number;
  /** 3/n over `failovers`; null when there were none. */
  readonly perFailoverBound95: number | null;
  /** 3/n over `incidents`. */
  readonly perIncidentBound95: number | null;
  readonly perWriteBound95: number | null;
  readonly judged: number;
  readonly exposed: number;
  readonly superseded: number;
  readonly neverRead: number;
}

export function strengthOf(tally: Tally, context: RunContext): Strength {
  const times: number[] = [];
  for (const [partition, steps] of tally.exposedBy) {
    const failovers = context.failovers.get(partition) ?? new Float64Array(0);
    let writes = 0;
    for (let at = 0; at < failovers.length; at++) {
      writes += steps[at] as number;
      if (writes > 0) times.push(failovers[at] as number);
    }
  }
  times.sort((a, b) => a - b);
  const incidents = times.filter((time, at) => at === 0 || time - (times[at - 1] as number) > incidentGapNs).length;
  return {
    failovers: times.length,
    incidents,
    allFailovers: context.failoverCount,
    handoffs: context.handoffCount,
    perFailoverBound95: times.length === 0 ? null : Math.min(1, 3 / times.length),
    perIncidentBound95: incidents === 0 ? null : Math.min(1, 3 / incidents),
    perWriteBound95: tally.exposed === 0 ? null : Math.min(1, 3 / tally.exposed),
    judged: tally.kept + tally.lost,
    exposed: tally.exposed,
    superseded: tally.superseded,
    neverRead: tally.neverRead,
  };
}

/** From one fault's injection to the first acknowledged write of a partition that it touched, and back to Healthy. */
export interface RecoveryTime {
  readonly faultId: string;
  readonly kind: string;
  readonly partition: number;
  /** Null: never within the run. */
  readonly firstAckNs: number | null;
  readonly healthyNs: number | null;
}

/** A partition is touched when the fault names it, or when its runtime changed while the fault was open. */
export function recoveryTimes(tally: Tally, context: RunContext): RecoveryTime[] {
  const changes = new Map<number, { atNs: Float64Array; healthyNs: Float64Array }>();
  for (const partition of new Set(context.epochChanges.map((change) => change.partition ?? -1))) {
    const own = context.epochChanges.filter((change) => (change.partition ?? -1) === partition);
    changes.set(partition, {
      atNs: Float64Array.from(own, (change) => change.atNs).sort(),
      healthyNs: Float64Array.from(
        own.filter((change) => change.health === 'Healthy'),
        (change) => change.atNs,
      ).sort(),
    });
  }
  const times: RecoveryTime[] = [];
  for (const [index, fault] of context.injected.entries()) {
    const fromNs = fault.injectedNs as number;
    const toNs = fault.healVerifiedNs ?? fault.healedNs ?? Infinity;
    const touched = new Set(fault.partitions);
    for (const [partition, { atNs }] of changes)
      if (countAtMost(atNs, toNs) > countAtMost(atNs, fromNs)) touched.add(partition);
    for (const partition of [...touched].sort((a, b) => a - b)) {
      const acks = tally.firstAckNs.get(partition);
      let first = Infinity;
      for (let later = index; acks !== undefined && later < acks.length; later++)
        first = Math.min(first, acks[later] as number);
      const healthy = changes.get(partition)?.healthyNs ?? new Float64Array(0);
      const backNs = healthy[countAtMost(healthy, fromNs)];
      times.push({
        faultId: fault.faultId,
        kind: fault.kind,
        partition,
        firstAckNs: first === Infinity ? null : first - fromNs,
        healthyNs: backNs === undefined ? null : backNs - fromNs,
      });
    }
  }
  return times;
}
