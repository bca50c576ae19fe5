/**
 * A planned release of a partition: hold writes, drain, stop reads, release by a committed entry.
 *
 * Invariant: before the release is proposed the old primary may simply go on; after it, only a committed entry (the
 * withdrawal, or any other edge that leaves it primary) lets it. If it went on by a timer, two members could serve.
 */
import type { PartitionRuntime } from '../control/state.ts';
import { type Epoch, type Member, hasMember, memberName, sameMember } from '../model/ids.ts';
import type { Replica } from './replica.ts';

export type HandoffStep =
  | { readonly kind: 'draining' }
  /** Nothing is pending: the release may be proposed; reads stop first. */
  | { readonly kind: 'released' }
  | { readonly kind: 'resumed' };

export class Handoff {
  readonly to: Member;
  private readonly replica: Replica;
  private readonly sinceMs: number;
  private proposedEpoch: Epoch | null = null;
  private lastProposedMs = Number.NEGATIVE_INFINITY;

  constructor(replica: Replica, to: Member, why: string, nowMs: number) {
    this.replica = replica;
    this.to = to;
    this.sinceMs = nowMs;
    replica.host.notice('info', 'handoff-started', { partition: replica.partition, to: memberName(to), why });
  }

  /** Reads stop for good once the release may have been committed. */
  get readsStopped(): boolean {
    return this.proposedEpoch !== null;
  }

  /** `drained`: everything logged is committed and the target holds it. */
  advance(runtime: PartitionRuntime, drained: boolean, nowMs: number): HandoffStep {
    const { host, partition } = this.replica;
    if (this.proposedEpoch !== null && runtime.epoch > this.proposedEpoch)
      return this.resume('another edge settled it', nowMs);
    if (this.proposedEpoch === null) {
      if (!hasMember(runtime.inSync, this.to) || nowMs - this.sinceMs >= host.timings.drainMs) {
        return this.resume('the drain took too long, or the target left', nowMs);
      }
      if (!drained) return { kind: 'draining' };
      this.proposedEpoch = runtime.epoch;
    }
    if (nowMs - this.lastProposedMs >= host.timings.reproposeMs) {
      this.lastProposedMs = nowMs;
      const expectEpoch = this.proposedEpoch;
      if (nowMs - this.sinceMs >= 2 * host.timings.drainMs) {
        host.propose({ kind: 'withdraw', partition, expectEpoch, by: host.self });
      } else {
        host.propose({ kind: 'handoff', partition, expectEpoch, from: host.self, to: this.to });
      }
    }
    return { kind: 'released' };
  }

  private resume(why: string, nowMs: number): HandoffStep {
    const { host, partition } = this.replica;
    host.notice('info', 'handoff-aborted', {
      partition,
      to: memberName(this.to),
      why,
      afterMs: Math.round(nowMs - this.sinceMs),
    });
    return { kind: 'resumed' };
  }
}

/** Whom this primary should hand its partition to now, if anybody. */
export function handoffTarget(
  replica: Replica,
  runtime: PartitionRuntime,
  healthySinceMs: number,
  nowMs: number,
): Member | null {
  const { host, partition } = replica;
  const placement = host.placement(partition);
  // Asked with every tick, and nearly always by the preferred primary itself.
  if (!host.draining && placement.preferredPrimary === host.self.nodeId) return null;
  const others = runtime.inSync.filter(
    (member) => !sameMember(member, host.self) && host.isAlive(member) && host.mayLead(member),
  );
  const preferred = others.find((member) => member.nodeId === placement.preferredPrimary);
  if (host.draining) return preferred ?? others[0] ?? null;
  if (preferred === undefined) return null;
  const assigned = placement.replicas.every((id) => runtime.inSync.some((member) => member.nodeId === id));
  if (!assigned || nowMs - healthySinceMs < host.timings.holdDownMs) return null;
  return preferred;
}
