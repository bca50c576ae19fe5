/**
 * The control leader's decisions: what the committed state and the failure detector ask for next. Proposes, never acts.
 *
 * Every command compares the epoch it was decided on, so an old decision does nothing. Invariant: a candidate comes from
 * the in-sync set, else from the eligible leader replicas, alive in the same incarnation; with no candidate nobody leads and
 * the sets stay as they were. If a candidate came from anywhere else, acknowledged entries would be gone.
 */
import {
  type Epoch,
  type Member,
  type NodeId,
  type PartitionId,
  type Version,
  compareVersions,
  epoch as asEpoch,
  memberName,
  sameMember,
} from '../model/ids.ts';
import type { ControlCommand, PartitionCommand, Placement } from './commands.ts';
import type { FailureDetector } from './detector.ts';
import { drawPlacements } from './placement.ts';
import type { ControlState, PartitionRuntime } from './state.ts';

export interface ControllerTimings {
  /** Every assigned member in sync for this long before `Healthy`. */
  readonly healthHoldDownMs: number;
  /** A primary below minInSync for this long hands over to a live eligible member. */
  readonly belowMinMs: number;
  /** A node away for this long is gone for good: its copies are planned elsewhere. */
  readonly nodeLeftMs: number;
  /** Null: eviction is off. Else an unavailable or lost partition is re-homed empty after this plus a control session. */
  readonly evictAfterMs: number | null;
  readonly controlSessionMs: number;
  /** A deposed control leader may answer its own beacons for about this long after its successor began. */
  readonly electionTimeoutMs: number;
  /** A proposal that did not commit is made again after this. */
  readonly reproposeMs: number;
}

export class Controller {
  private readonly state: ControlState;
  private readonly detector: FailureDetector;
  private readonly timings: ControllerTimings;
  /** Where each member's logs end, from its beacons: only to pick the better candidate. */
  private readonly positions = new Map<string, readonly number[]>();
  private readonly proposed = new Map<PartitionId, { readonly epoch: Epoch; readonly atMs: number }>();
  private readonly since = new Map<string, number>();
  /** Since when a partition has been below its minimum, and since when it has been full; asked for all of them at every look. */
  private readonly belowSince = new Map<PartitionId, number>();
  private readonly fullSince = new Map<PartitionId, number>();
  private mapProposedMs = Number.NEGATIVE_INFINITY;

  constructor(state: ControlState, detector: FailureDetector, timings: ControllerTimings) {
    this.state = state;
    this.detector = detector;
    this.timings = timings;
  }

  /** This node became control leader: what the last leader measured is unknown, so every countdown starts anew. */
  reset(): void {
    this.positions.clear();
    this.proposed.clear();
    this.since.clear();
    this.belowSince.clear();
    this.fullSince.clear();
    this.mapProposedMs = Number.NEGATIVE_INFINITY;
  }

  /** Flat triples of a beacon; they come often and are seldom asked for, so they stay as they are. */
  onPositions(member: Member, flat: readonly number[]): void {
    this.positions.set(memberName(member), flat);
  }

  private positionOf(member: Member, partition: PartitionId): Version {
    const flat = this.positions.get(memberName(member)) ?? [];
    let found = { term: 0, seq: 0 };
    // The last word on a partition counts.
    for (let index = 0; index + 2 < flat.length; index += 3) {
      if (flat[index] === partition) found = { term: flat[index + 1] as number, seq: flat[index + 2] as number };
    }
    return found as Version;
  }

  /** What to propose now, as one batch. */
  decide(nowMs: number): ControlCommand[] {
    const commands: ControlCommand[] = [];
    this.decideMembers(commands, nowMs);
    if (this.state.mapVersion === 0) this.decideFirstMap(commands, nowMs);
    else {
      this.decideLeft(commands, nowMs);
      for (const runtime of this.state.runtimes) this.decidePartition(runtime, commands, nowMs);
    }
    return commands;
  }

  private isUsable(member: Member, nowMs: number): boolean {
    return this.state.isAlive(member) && !this.detector.isGone(member.nodeId, nowMs);
  }

  private decideMembers(commands: ControlCommand[], nowMs: number): void {
    for (const node of this.state.nodes) {
      const gone = this.detector.isGone(node.nodeId, nowMs);
      if (gone !== node.alive) continue;
      const member = { nodeId: node.nodeId, incarnation: node.incarnation };
      if (this.held(`member ${memberName(member)} ${gone}`, this.timings.reproposeMs, nowMs)) continue;
      commands.push({ kind: gone ? 'member-down' : 'member-up', member });
    }
  }

  /** True while the same thing was proposed less than `forMs` ago. */
  private held(what: string, forMs: number, nowMs: number): boolean {
    const last = this.since.get(what);
    if (last !== undefined && nowMs - last < forMs) return true;
    this.since.set(what, nowMs);
    return false;
  }

  private usableNodes(nowMs: number): NodeId[] {
    return this.state.nodes
      .filter((node) => !node.leaving && this.isUsable({ nodeId: node.nodeId, incarnation: node.incarnation }, nowMs))
      .map((node) => node.nodeId);
  }

  private decideFirstMap(commands: ControlCommand[], nowMs: number): void {
    const { settings } = this.state;
    if (settings === null || nowMs - this.mapProposedMs < this.timings.reproposeMs) return;
    const nodes = this.usableNodes(nowMs);
    if (nodes.length < settings.initialNodes) return;
    this.mapProposedMs = nowMs;
    const { partitionCount, replicationFactor } = settings;
    commands.push({
      kind: 'set-map',
      expectMapVersion: 0,
      placements: drawPlacements(nodes, { partitionCount, replicationFactor, previous: [] }),
    });
  }

  /** A planned regeneration over the usable nodes, or null where it would change nothing. */
  planMap(nowMs: number): ControlCommand | null {
    const { settings, placements, mapVersion } = this.state;
    const nodes = this.usableNodes(nowMs);
    if (settings === null || mapVersion === 0 || nodes.length === 0) return null;
    const { partitionCount, replicationFactor } = settings;
    const drawn = drawPlacements(nodes, { partitionCount, replicationFactor, previous: placements });
    const same = (a: Placement, b: Placement | undefined): boolean =>
      b !== undefined && a.preferredPrimary === b.preferredPrimary && a.replicas.join() === b.replicas.join();
    if (drawn.every((placement, index) => same(placement, placements[index]))) return null;
    return { kind: 'set-map', expectMapVersion: mapVersion, placements: drawn };
  }

  /** Nodes that are gone for good, or leave and hold nothing any more. */
  private decideLeft(commands: ControlCommand[], nowMs: number): void {
    const { placements, settings } = this.state;
    const copies = settings?.replicationFactor ?? 1;
    for (const node of this.state.nodes) {
      const inMap = placements.some((placement) => placement.replicas.includes(node.nodeId));
      const silentMs = node.alive ? 0 : this.detector.silentForMs(node.nodeId, nowMs);
      const goneForGood = inMap && silentMs >= this.timings.nodeLeftMs && this.usableNodes(nowMs).length >= copies;
      if (goneForGood && nowMs - this.mapProposedMs >= this.timings.reproposeMs) {
        const plan = this.planMap(nowMs);
        if (plan !== null) {
          this.mapProposedMs = nowMs;
          commands.push(plan);
        }
      }
      if (
        node.leaving &&
        !inMap &&
        !this.state.isCounted(node.nodeId) &&
        !this.held(`forget ${node.nodeId}`, this.timings.reproposeMs, nowMs)
      ) {
        commands.push({ kind: 'forget-node', nodeId: node.nodeId });
      }
    }
  }

  private decidePartition(runtime: Readonly<PartitionRuntime>, commands: ControlCommand[], nowMs: number): void {
    const last = this.proposed.get(runtime.partition);
    if (last !== undefined && last.epoch === runtime.epoch && nowMs - last.atMs < this.timings.reproposeMs) return;
    const decided = this.partitionCommands(runtime, nowMs);
    if (decided.length === 0) return;
    this.proposed.set(runtime.partition, { epoch: runtime.epoch, atMs: nowMs });
    commands.push(...decided);
  }

  private partitionCommands(runtime: Readonly<PartitionRuntime>, nowMs: number): PartitionCommand[] {
    const { partition, primary } = runtime;
    if (runtime.health === 'Lost') return this.considerEviction(runtime, nowMs);
    if (primary === null || !this.isUsable(primary, nowMs)) {
      const candidate = this.candidate(runtime, nowMs);
      if (candidate === null) {
        if (primary !== null) return [{ kind: 'unassign', partition, expectEpoch: runtime.epoch }];
        return this.considerEviction(runtime, nowMs);
      }
      this.since.delete(`evict ${partition}`);
      const promote: PartitionCommand = { kind: 'promote', partition, expectEpoch: runtime.epoch, candidate };
      return [promote, ...this.shrinks(runtime, candidate, asEpoch(runtime.epoch + 1), nowMs)];
    }
    const shrinks = this.shrinks(runtime, primary, runtime.epoch, nowMs);
    if (shrinks.length > 0) return shrinks;
    return this.considerEligible(runtime, nowMs) ?? this.considerHealth(runtime, nowMs);
  }

  /** Dead replicas leave the set at once. The last member never does. */
  private shrinks(
    runtime: Readonly<PartitionRuntime>,
    primary: Member,
    from: Epoch,
    nowMs: number,
  ): PartitionCommand[] {
    const { partition } = runtime;
    const old = runtime.primary;
    const inSet = runtime.inSync.some((member) => sameMember(member, primary));
    if (!inSet) return [];
    let expectEpoch = from;
    const commands: PartitionCommand[] = [];
    for (const member of runtime.inSync) {
      if (sameMember(member, primary) || (old !== null && sameMember(member, old))) continue;
      if (this.isUsable(member, nowMs)) continue;
      commands.push({ kind: 'shrink', partition, expectEpoch, member, why: 'its node is gone' });
      expectEpoch = asEpoch(expectEpoch + 1);
    }
    return commands;
  }

  /** In-sync first, then eligible; the longest log, then the preferred primary. */
  private candidate(runtime: Readonly<PartitionRuntime>, nowMs: number): Member | null {
    const { preferredPrimary } = this.state.placement(runtime.partition);
    const end = (member: Member): Version => this.positionOf(member, runtime.partition);
    const rank = (a: Member, b: Member): number =>
      compareVersions(end(b), end(a)) ||
      Number(b.nodeId === preferredPrimary) - Number(a.nodeId === preferredPrimary) ||
      (a.nodeId < b.nodeId ? -1 : 1);
    for (const set of [runtime.inSync, runtime.eligible]) {
      const usable = set.filter((member) => this.state.isCurrent(member) && this.isUsable(member, nowMs)).sort(rank);
      // A node that is about to stop leads only when nobody else can.
      const staying = usable.filter((member) => this.state.node(member.nodeId)?.draining !== true);
      const best = staying[0] ?? usable[0];
      if (best !== undefined) return best;
    }
    return null;
  }

  private considerEligible(runtime: Readonly<PartitionRuntime>, nowMs: number): PartitionCommand[] | null {
    const { partition } = runtime;
    const minInSync = this.state.settings?.minInSync ?? 1;
    if (!runtime.serving || runtime.inSync.length >= minInSync) {
      this.belowSince.delete(partition);
      return null;
    }
    const live = runtime.eligible.find((member) => this.isUsable(member, nowMs));
    if (live === undefined) {
      this.belowSince.delete(partition);
      return null;
    }
    const since = this.belowSince.get(partition) ?? nowMs;
    this.belowSince.set(partition, since);
    if (nowMs - since < this.timings.belowMinMs) return null;
    this.belowSince.delete(partition);
    return [{ kind: 'promote', partition, expectEpoch: runtime.epoch, candidate: live }];
  }

  private considerHealth(runtime: Readonly<PartitionRuntime>, nowMs: number): PartitionCommand[] {
    const { partition, epoch } = runtime;
    const isFull = runtime.serving && this.state.isFull(runtime);
    if (!isFull) {
      this.fullSince.delete(partition);
      return runtime.health === 'Healthy' ? [{ kind: 'mark-degraded', partition, expectEpoch: epoch }] : [];
    }
    if (runtime.health === 'Healthy') return [];
    const since = this.fullSince.get(partition) ?? nowMs;
    this.fullSince.set(partition, since);
    if (nowMs - since < this.timings.healthHoldDownMs) return [];
    this.fullSince.delete(partition);
    return [{ kind: 'mark-healthy', partition, expectEpoch: epoch }];
  }

  private considerEviction(runtime: Readonly<PartitionRuntime>, nowMs: number): PartitionCommand[] {
    const { evictAfterMs, controlSessionMs, electionTimeoutMs } = this.timings;
    if (evictAfterMs === null) return [];
    const what = `evict ${runtime.partition}`;
    const since = this.since.get(what) ?? nowMs;
    this.since.set(what, since);
    // Every last-known member's control session, counted from this leader's own beginning, must have run out too.
    if (nowMs - since < evictAfterMs + controlSessionMs + 2 * electionTimeoutMs) return [];
    const members = this.state
      .placement(runtime.partition)
      .replicas.map((id) => this.state.current(id))
      .filter((member): member is Member => member !== null && this.isUsable(member, nowMs));
    if (members.length === 0) return [];
    return [{ kind: 'evict', partition: runtime.partition, expectEpoch: runtime.epoch, members }];
  }
}
