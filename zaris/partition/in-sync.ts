/**
 * The primary's side of the in-sync set: who is proposed to join, who to leave, and whom every write must reach meanwhile.
 *
 * Invariant: a joiner, once proposed, is required for every commit until a committed entry settles it (its addition, or any
 * later epoch); a member stays required until this primary has *applied* its removal. A timer only ever proposes.
 * Breaking either acknowledges writes that a future primary does not hold.
 */
import type { PartitionRuntime } from '../control/state.ts';
import { type Epoch, type Member, type Seq, hasMember, memberName, sameMember } from '../model/ids.ts';
import type { Replica } from './replica.ts';
import type { Replicator } from './replicator.ts';

interface Joiner {
  readonly member: Member;
  /** The epoch its addition compares; any later one settles it. */
  readonly epoch: Epoch;
  lastProposedMs: number;
}

export class InSyncKeeper {
  private readonly replica: Replica;
  private readonly replicator: Replicator;
  private proposed: Joiner | null = null;
  /** The last answer of {@link promotable}, and what it was made of. */
  private known: {
    readonly inSync: readonly Member[];
    readonly eligible: readonly Member[];
    readonly proposed: Joiner | null;
    readonly members: readonly Member[];
  } = { inSync: [], eligible: [], proposed: null, members: [] };
  /** Removal or withdrawal proposed at an epoch, not to be repeated at once. */
  private lastRemoval: { readonly epoch: Epoch; readonly atMs: number } | null = null;

  /** End of the log that this term began with: an older primary may have acknowledged anything up to here. */
  private readonly inheritedUpTo: Seq;

  /** To be made before the first entry of the term is logged. */
  constructor(replica: Replica, replicator: Replicator) {
    this.replica = replica;
    this.replicator = replicator;
    this.inheritedUpTo = replica.log.last.seq;
  }

  get joiner(): Member | null {
    return this.proposed?.member ?? null;
  }

  /** Everybody that could be promoted without this primary knowing: in-sync, eligible, proposed. */
  promotable(runtime: PartitionRuntime): readonly Member[] {
    const { inSync, eligible } = runtime;
    const { proposed, known } = this;
    // Asked for every read. The sets are replaced as a whole, never changed in place.
    if (known.inSync === inSync && known.eligible === eligible && known.proposed === proposed) return known.members;
    const all = [...inSync, ...eligible];
    if (proposed !== null && !hasMember(all, proposed.member)) all.push(proposed.member);
    const members = all.filter((member) => !sameMember(member, this.replica.host.self));
    this.known = { inSync, eligible, proposed, members };
    return members;
  }

  /** A committed entry moved the runtime: does it settle the open proposal? */
  onRuntime(runtime: PartitionRuntime): void {
    const { proposed } = this;
    if (proposed === null) return;
    const restarted = !this.replica.host.isCurrent(proposed.member);
    if (runtime.epoch > proposed.epoch || restarted) this.proposed = null;
  }

  /** Followers: the sets, the joiner, and every live node that the map assigns. */
  followers(runtime: PartitionRuntime): Member[] {
    const { host, partition } = this.replica;
    const members = [...this.promotable(runtime)];
    for (const id of host.placement(partition).replicas) {
      const member = host.current(id);
      if (member === null || sameMember(member, host.self) || hasMember(members, member)) continue;
      if (host.isAlive(member)) members.push(member);
    }
    return members;
  }

  tick(runtime: PartitionRuntime, nowMs: number): void {
    if (this.dropSilent(runtime, nowMs)) return;
    if (this.proposed !== null) this.repropose(this.proposed, nowMs);
    else if (!this.proposeJoiner(runtime, nowMs)) this.dropSurplus(runtime, nowMs);
  }

  private dropSilent(runtime: PartitionRuntime, nowMs: number): boolean {
    const { host, partition } = this.replica;
    const { silentReplicaMs } = host.timings;
    const silent = this.promotable(runtime).find((member) => {
      const progress = this.replicator.get(member);
      return (
        progress !== undefined && nowMs - progress.lastAckMs >= silentReplicaMs && !hasMember(runtime.eligible, member)
      );
    });
    if (silent === undefined) return false;
    if (!this.mayPropose(runtime.epoch, nowMs)) return true;
    const why = `silent for ${silentReplicaMs} ms`;
    if (hasMember(runtime.inSync, silent)) {
      host.propose({ kind: 'shrink', partition, expectEpoch: runtime.epoch, member: silent, why });
    } else {
      host.propose({ kind: 'withdraw', partition, expectEpoch: runtime.epoch, by: host.self });
    }
    return true;
  }

  private mayPropose(epoch: Epoch, nowMs: number): boolean {
    const last = this.lastRemoval;
    if (last !== null && last.epoch === epoch && nowMs - last.atMs < this.replica.host.timings.reproposeMs)
      return false;
    this.lastRemoval = { epoch, atMs: nowMs };
    return true;
  }

  private proposeJoiner(runtime: PartitionRuntime, nowMs: number): boolean {
    const { host, partition, commitSeq } = this.replica;
    for (const id of host.placement(partition).replicas) {
      const member = host.current(id);
      if (member === null || sameMember(member, host.self) || hasMember(runtime.inSync, member)) continue;
      const progress = this.replicator.get(member);
      if (progress === undefined || progress.probing || progress.snapshot !== null) continue;
      // A dead member may still look fresh here, being eligible; added, it would be dropped again at once, again and again.
      if (!host.isAlive(member) || nowMs - progress.lastAckMs >= host.timings.silentReplicaMs / 2) continue;
      // Not the commit index alone: a new primary's lags behind what was acknowledged, and whoever joins counts as a full copy at once
      // (and may empty the eligible set). Kafka asks the same: caught up to the start of the leader's epoch.
      const acknowledgedUpTo = this.inheritedUpTo > commitSeq ? this.inheritedUpTo : commitSeq;
      if (!host.rules.mayJoin(progress.matchSeq, acknowledgedUpTo)) continue;
      // Required from here on, before anybody hears of the proposal.
      this.proposed = { member, epoch: runtime.epoch, lastProposedMs: Number.NEGATIVE_INFINITY };
      this.repropose(this.proposed, nowMs);
      return true;
    }
    return false;
  }

  private repropose(joiner: Joiner, nowMs: number): void {
    const { host, partition } = this.replica;
    if (nowMs - joiner.lastProposedMs < host.timings.reproposeMs) return;
    joiner.lastProposedMs = nowMs;
    host.propose({ kind: 'expand', partition, expectEpoch: joiner.epoch, member: joiner.member });
  }

  /**
   * Copies that the map no longer asks for go last, once everybody it asks for is in sync. Not by somebody who is about to leave: what is
   * surplus by the map may be the only copy that stays.
   */
  private dropSurplus(runtime: PartitionRuntime, nowMs: number): void {
    const { host, partition } = this.replica;
    if (host.draining) return;
    const { replicas } = host.placement(partition);
    const surplus = runtime.inSync.find(
      (member) => !replicas.includes(member.nodeId) && !sameMember(member, host.self),
    );
    if (surplus === undefined) return;
    const allIn = replicas.every((id) =>
      runtime.inSync.some((member) => member.nodeId === id && host.isCurrent(member)),
    );
    if (!allIn || !this.mayPropose(runtime.epoch, nowMs)) return;
    host.notice('info', 'surplus', { partition, member: memberName(surplus) });
    host.propose({
      kind: 'shrink',
      partition,
      expectEpoch: runtime.epoch,
      member: surplus,
      why: 'no longer in the map',
    });
  }
}
