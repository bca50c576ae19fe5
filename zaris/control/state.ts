/**
 * The replicated state of the control plane: members, partition map, runtime. A deterministic fold of the control log.
 *
 * Owns the edges of a partition's runtime: every one raises the epoch, every assignment of a primary raises the term
 * too, and in-sync and eligible sets follow the rules of DESIGN §4. If an edge were wrong here, a member without an
 * acknowledged entry could lead. Sources: PacificA §2.2 (configuration manager), Kafka KIP-966 (eligible leader replicas).
 */
import { assert, present, unreachable } from '../../lib/assert.ts';
import type { ClusterSettings } from '../model/client-wire.ts';
import {
  type Epoch,
  type Incarnation,
  type Member,
  type NodeId,
  type PartitionId,
  type Term,
  epoch as asEpoch,
  hasMember,
  incarnation as asIncarnation,
  memberName,
  partitionId,
  sameMember,
  term as asTerm,
  withoutMember,
} from '../model/ids.ts';
import type { Health } from '../model/view.ts';
import type { Applied, Batch, ControlCommand, PartitionCommand, Placement } from './commands.ts';
import { type Check, checkEdge, checkForward, checkRuntime } from './state-checks.ts';

/** Nonces of earlier starts that are remembered per node, so that a late registration cannot kill its successor. */
const rememberedNonces = 16;
/** Audit events kept in the state. */
const auditEventBound = 256;
/** Forgotten nodes whose last incarnation is remembered. */
const forgottenBound = 4_096;

export interface NodeRecord {
  readonly nodeId: NodeId;
  diskId: string;
  incarnation: Incarnation;
  /** The newest is the current start's. */
  nonces: readonly string[];
  clientAddress: string;
  clusterAddress: string;
  /** As last committed; the failure detector's word, never what safety depends on. */
  alive: boolean;
  /** It gives up its copies (scale-in) or only its primaries (drain). */
  leaving: boolean;
  draining: boolean;
}

export interface PartitionRuntime {
  readonly partition: PartitionId;
  epoch: Epoch;
  term: Term;
  primary: Member | null;
  /** True when the last assignment was released by the primary before (a handoff, or the first one). */
  released: boolean;
  serving: boolean;
  inSync: readonly Member[];
  eligible: readonly Member[];
  health: Health;
  dataLossNumber: number;
}

export interface AuditEvent {
  readonly revision: number;
  readonly partition: PartitionId;
  readonly dataLossNumber: number;
  readonly text: string;
}

/** Plain data; what a Raft snapshot holds. */
export interface ControlData {
  revision: number;
  settings: ClusterSettings | null;
  nodes: NodeRecord[];
  mapVersion: number;
  placements: readonly Placement[];
  runtimes: PartitionRuntime[];
  audit: AuditEvent[];
  /** Last incarnations of nodes that were forgotten: a name that comes back must not be taken for its predecessor. */
  forgotten: Member[];
}

/** What one applied batch changed. */
export interface Change {
  /** Partitions whose runtime or placement changed. */
  readonly partitions: ReadonlySet<PartitionId>;
  readonly membersChanged: boolean;
  readonly edges: readonly Edge[];
}

/** One edge of one partition's runtime, for notices. */
export interface Edge {
  readonly name:
    | 'promotion'
    | 'handoff'
    | 'unassigned'
    | 'serving'
    | 'in-sync'
    | 'withdrawn'
    | 'health'
    | 'lost'
    | 'evicted'
    | 'map';
  readonly runtime: PartitionRuntime;
  readonly why: string;
}

export class ControlState {
  private data: ControlData = {
    revision: 0,
    settings: null,
    nodes: [],
    mapVersion: 0,
    placements: [],
    runtimes: [],
    audit: [],
    forgotten: [],
  };
  private readonly check: Check;
  private touched = new Set<PartitionId>();
  private membersChanged = false;
  private edges: Edge[] = [];

  constructor(check: Check = assert) {
    this.check = check;
  }

  get revision(): number {
    return this.data.revision;
  }
  get settings(): ClusterSettings | null {
    return this.data.settings;
  }
  get mapVersion(): number {
    return this.data.mapVersion;
  }
  get nodes(): readonly Readonly<NodeRecord>[] {
    return this.data.nodes;
  }
  get runtimes(): readonly Readonly<PartitionRuntime>[] {
    return this.data.runtimes;
  }
  get placements(): readonly Placement[] {
    return this.data.placements;
  }
  get audit(): readonly AuditEvent[] {
    return this.data.audit;
  }

  node(id: NodeId): Readonly<NodeRecord> | undefined {
    // They are few; this is asked for every message.
    for (const node of this.data.nodes) if (node.nodeId === id) return node;
    return undefined;
  }

  /** The current incarnation of a node, or null when it never registered. */
  current(id: NodeId): Member | null {
    const node = this.node(id);
    return node === undefined ? null : { nodeId: id, incarnation: node.incarnation };
  }

  isCurrent(member: Member): boolean {
    return this.node(member.nodeId)?.incarnation === member.incarnation;
  }

  isAlive(member: Member): boolean {
    const node = this.node(member.nodeId);
    return node !== undefined && node.incarnation === member.incarnation && node.alive;
  }

  placement(partition: PartitionId): Placement {
    // Asked several times for every event, as is the runtime: the sentence is made only when needed.
    return this.data.placements[partition] ?? present<never>(null, `placement of partition ${partition}`);
  }

  runtime(partition: PartitionId): Readonly<PartitionRuntime> {
    return this.data.runtimes[partition] ?? present<never>(null, `runtime of partition ${partition}`);
  }

  /** A deep copy for a Raft snapshot. */
  save(): ControlData {
    return structuredClone(this.data);
  }

  /** Replaces the whole state by a snapshot's. */
  load(saved: unknown): Change {
    const loaded = structuredClone(saved) as Omit<ControlData, 'forgotten'> & Partial<ControlData>;
    const data: ControlData = { ...loaded, forgotten: loaded.forgotten ?? [] };
    checkForward(this.check, this.data, data);
    this.data = data;
    return {
      partitions: new Set(data.runtimes.map((runtime) => runtime.partition)),
      membersChanged: true,
      edges: [],
    };
  }

  /** Applies one committed entry. `revision` is its index; a null batch (no-op, config) only moves the revision. */
  apply(revision: number, batch: Batch | null): Change {
    assert(revision > this.data.revision, 'control entries apply once, in order');
    this.data.revision = revision;
    this.touched = new Set();
    this.membersChanged = false;
    this.edges = [];
    const { placements } = this.data;
    for (const command of batch?.commands ?? []) this.command(command);
    const mayMoveMap = batch?.commands.some(({ kind }) => kind === 'set-map') === true;
    this.check(mayMoveMap || this.data.placements === placements, 'only a planned regeneration changes the map');
    return { partitions: this.touched, membersChanged: this.membersChanged, edges: this.edges };
  }

  private command(command: ControlCommand): Applied {
    switch (command.kind) {
      case 'bootstrap':
        if (this.data.settings !== null) return refused('bootstrapped before');
        this.data.settings = command.settings;
        return applied;
      case 'register':
        return this.register(command);
      case 'member-down':
      case 'member-up':
        return this.setAlive(command.member, command.kind === 'member-up');
      case 'set-leaving': {
        const node = this.data.nodes.find((other) => other.nodeId === command.nodeId);
        if (node === undefined) return refused('unknown node');
        node.leaving = command.leaving;
        node.draining = command.drain;
        this.membersChanged = true;
        return applied;
      }
      case 'forget-node': {
        const holds = this.data.placements.some((placement) => placement.replicas.includes(command.nodeId));
        if (holds) return refused('still in the map');
        return this.forget(command.nodeId);
      }
      case 'set-map':
        return this.setMap(command.expectMapVersion, command.placements);
      default:
        return this.partitionCommand(command);
    }
  }

  /** True while some incarnation of the node may be taken for a full copy of a partition. */
  isCounted(id: NodeId): boolean {
    const isIn = ({ nodeId }: Member): boolean => nodeId === id;
    return this.data.runtimes.some(({ inSync, eligible }) => inSync.some(isIn) || eligible.some(isIn));
  }

  /** A node that may be taken for a full copy is not forgotten; one that comes back later is another incarnation than any before. */
  private forget(id: NodeId): Applied {
    const node = this.node(id);
    if (node === undefined) return refused('unknown node');
    if (this.isCounted(id)) return refused('still in a set');
    const gone = { nodeId: id, incarnation: node.incarnation };
    const others = this.data.forgotten.filter((member) => member.nodeId !== id);
    this.data.forgotten = [...others, gone].slice(-forgottenBound);
    this.data.nodes = this.data.nodes.filter((other) => other.nodeId !== id);
    this.membersChanged = true;
    return applied;
  }

  private register(command: ControlCommand & { kind: 'register' }): Applied {
    const known = this.data.nodes.find((node) => node.nodeId === command.nodeId);
    if (known === undefined) {
      const before = this.data.forgotten.find((member) => member.nodeId === command.nodeId)?.incarnation ?? 0;
      this.data.nodes.push({
        nodeId: command.nodeId,
        diskId: command.diskId,
        incarnation: asIncarnation(before + 1),
        nonces: [command.nonce],
        clientAddress: command.clientAddress,
        clusterAddress: command.clusterAddress,
        alive: true,
        leaving: false,
        draining: false,
      });
      this.data.nodes.sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
      this.membersChanged = true;
      return applied;
    }
    if (known.nonces.includes(command.nonce))
      return refused('this start is registered, or was replaced by a later one');
    const dead: Member = { nodeId: known.nodeId, incarnation: known.incarnation };
    known.incarnation = asIncarnation(known.incarnation + 1);
    known.nonces = [...known.nonces, command.nonce].slice(-rememberedNonces);
    known.diskId = command.diskId;
    known.clientAddress = command.clientAddress;
    known.clusterAddress = command.clusterAddress;
    known.alive = true;
    known.draining = false;
    this.membersChanged = true;
    // A new incarnation is the death of the old one: its memory is gone from every set, in this same entry.
    for (const runtime of this.data.runtimes) this.bury(runtime, dead);
    return applied;
  }

  private bury(runtime: PartitionRuntime, dead: Member): void {
    const led = runtime.primary !== null && sameMember(runtime.primary, dead);
    if (!led && !hasMember(runtime.inSync, dead) && !hasMember(runtime.eligible, dead)) return;
    runtime.inSync = withoutMember(runtime.inSync, dead);
    runtime.eligible = withoutMember(runtime.eligible, dead);
    if (led) this.vacate(runtime);
    else if (runtime.health === 'Healthy') runtime.health = 'Degraded';
    const lost = runtime.inSync.length === 0 && runtime.eligible.length === 0;
    if (lost) runtime.health = 'Lost';
    this.edge(runtime, lost ? 'lost' : 'in-sync', `${memberName(dead)} restarted empty`);
  }

  private vacate(runtime: PartitionRuntime): void {
    runtime.primary = null;
    runtime.serving = false;
    runtime.released = false;
    runtime.health = 'Unavailable';
  }

  private setAlive(member: Member, alive: boolean): Applied {
    const node = this.data.nodes.find((other) => other.nodeId === member.nodeId);
    if (node === undefined || node.incarnation !== member.incarnation) return refused('not the current incarnation');
    if (node.alive === alive) return refused('no change');
    node.alive = alive;
    this.membersChanged = true;
    return applied;
  }

  private setMap(expectMapVersion: number, placements: readonly Placement[]): Applied {
    if (this.data.mapVersion !== expectMapVersion) return refused('the map changed meanwhile');
    const first = this.data.mapVersion === 0;
    for (const placement of placements) {
      if (!placement.replicas.every((id) => this.current(id) !== null)) return refused('a replica never registered');
    }
    this.data.mapVersion += 1;
    this.data.placements = placements;
    if (first) {
      this.data.runtimes = placements.map((placement, index) => this.firstRuntime(partitionId(index), placement));
      for (const runtime of this.data.runtimes) this.edge(runtime, 'map', 'first map', 0);
      return applied;
    }
    for (const runtime of this.data.runtimes) {
      if (this.isFull(runtime)) continue;
      if (runtime.health === 'Healthy') runtime.health = 'Degraded';
      this.edge(runtime, 'map', `map version ${this.data.mapVersion}`);
    }
    return applied;
  }

  private firstRuntime(partition: PartitionId, placement: Placement): PartitionRuntime {
    // All copies are empty, hence equal: the whole placement starts in sync.
    return {
      partition,
      epoch: asEpoch(1),
      term: asTerm(1),
      primary: present(this.current(placement.preferredPrimary), 'registered primary'),
      released: true,
      serving: false,
      inSync: placement.replicas.map((id) => present(this.current(id), 'registered replica')),
      eligible: [],
      health: 'Recovering',
      dataLossNumber: 0,
    };
  }

  /** Every assigned node's current incarnation is alive and in sync, and nobody else is. */
  isFull(runtime: PartitionRuntime): boolean {
    const { replicas } = this.placement(runtime.partition);
    if (runtime.inSync.length !== replicas.length) return false;
    for (const id of replicas) {
      const node = this.node(id);
      if (node === undefined || !node.alive || !hasMember(runtime.inSync, node)) return false;
    }
    return true;
  }

  get minInSync(): number {
    return present(this.data.settings, 'cluster settings').minInSync;
  }

  private partitionCommand(command: PartitionCommand): Applied {
    const runtime = this.data.runtimes[command.partition];
    if (runtime === undefined) return refused('no such partition');
    if (runtime.epoch !== command.expectEpoch) return refused('the epoch moved meanwhile');
    const before = { term: runtime.term, dataLossNumber: runtime.dataLossNumber };
    const outcome = this.settle(runtime, command);
    if (outcome.kind === 'refused') return outcome;
    checkEdge(this.check, command, before, { runtime, audit: this.data.audit.at(-1) });
    return outcome;
  }

  private settle(runtime: PartitionRuntime, command: PartitionCommand): Applied {
    switch (command.kind) {
      case 'promote':
        return this.promote(runtime, command.candidate);
      case 'handoff':
        return this.handoff(runtime, command.from, command.to);
      case 'unassign':
        if (runtime.primary === null) return refused('nobody leads');
        this.vacate(runtime);
        return this.edge(runtime, 'unassigned', 'no candidate can be reached');
      case 'serve':
        if (runtime.primary === null || !sameMember(runtime.primary, command.member)) return refused('not the primary');
        if (runtime.serving) return refused('serves already');
        runtime.serving = true;
        runtime.health = 'Degraded';
        return this.edge(runtime, 'serving', 'possession proved');
      case 'shrink':
        return this.shrink(runtime, command.member, command.why);
      case 'expand':
        return this.expand(runtime, command.member);
      case 'withdraw':
        if (runtime.primary === null || !sameMember(runtime.primary, command.by)) return refused('not the primary');
        return this.edge(runtime, 'withdrawn', 'an open proposal was withdrawn');
      case 'mark-healthy':
        if (!runtime.serving || !this.isFull(runtime)) return refused('not every assigned member is in sync');
        runtime.health = 'Healthy';
        return this.edge(runtime, 'health', 'every assigned member is in sync');
      case 'mark-degraded':
        if (runtime.health !== 'Healthy') return refused('not healthy');
        runtime.health = 'Degraded';
        return this.edge(runtime, 'health', 'a copy is missing');
      case 'evict':
        return this.evict(runtime, command.members);
      default:
        return unreachable(command);
    }
  }

  private promote(runtime: PartitionRuntime, candidate: Member): Applied {
    if (!this.isCurrent(candidate)) return refused('the candidate was restarted');
    const inSync = hasMember(runtime.inSync, candidate);
    if (!inSync && !hasMember(runtime.eligible, candidate)) return refused('the candidate is in no set');
    const old = runtime.primary;
    let dropped: Member[] = [];
    if (!inSync) {
      // An eligible member leads: nothing was committed since it was dropped, so it alone is a full copy.
      dropped = runtime.inSync.filter((member) => !sameMember(member, candidate));
      runtime.inSync = [candidate];
    } else if (old !== null && !sameMember(old, candidate)) {
      dropped = runtime.inSync.filter((member) => sameMember(member, old));
      runtime.inSync = withoutMember(runtime.inSync, old);
    }
    runtime.eligible = withoutMember(runtime.eligible, candidate);
    this.settleEligible(runtime, dropped);
    this.assign(runtime, candidate, false);
    return this.edge(runtime, 'promotion', old === null ? 'nobody led' : `${memberName(old)} is gone`);
  }

  /** The epoch moves with the edge that follows; the term takes its value. */
  private assign(runtime: PartitionRuntime, primary: Member, released: boolean): void {
    runtime.primary = primary;
    runtime.term = asTerm(runtime.epoch + 1);
    runtime.released = released;
    runtime.serving = false;
    runtime.health = 'Recovering';
  }

  private handoff(runtime: PartitionRuntime, from: Member, to: Member): Applied {
    if (runtime.primary === null || !sameMember(runtime.primary, from)) return refused('not the primary');
    if (!this.isCurrent(to) || !hasMember(runtime.inSync, to)) return refused('the target is not in sync');
    this.assign(runtime, to, true);
    return this.edge(runtime, 'handoff', `${memberName(from)} released it to ${memberName(to)}`);
  }

  private shrink(runtime: PartitionRuntime, member: Member, why: string): Applied {
    if (!hasMember(runtime.inSync, member)) return refused('not in sync');
    if (runtime.primary !== null && sameMember(runtime.primary, member))
      return refused('a primary is replaced, not dropped');
    if (runtime.inSync.length === 1) return refused('the last in-sync member stays');
    runtime.inSync = withoutMember(runtime.inSync, member);
    this.settleEligible(runtime, [member]);
    if (runtime.health === 'Healthy') runtime.health = 'Degraded';
    return this.edge(runtime, 'in-sync', `${memberName(member)} left: ${why}`);
  }

  /** Below `minInSync` nothing commits, so whoever is dropped there stays a full copy; back at it, only the set itself is. */
  private settleEligible(runtime: PartitionRuntime, dropped: readonly Member[]): void {
    if (runtime.inSync.length >= this.minInSync) runtime.eligible = [];
    else runtime.eligible = [...runtime.eligible, ...dropped.filter((member) => this.isCurrent(member))];
  }

  private expand(runtime: PartitionRuntime, member: Member): Applied {
    if (!this.isCurrent(member)) return refused('the joiner was restarted');
    if (hasMember(runtime.inSync, member)) return refused('in sync already');
    if (runtime.primary === null) return refused('nobody leads');
    runtime.inSync = [...runtime.inSync, member];
    runtime.eligible = withoutMember(runtime.eligible, member);
    this.settleEligible(runtime, []);
    return this.edge(runtime, 'in-sync', `${memberName(member)} joined`);
  }

  private evict(runtime: PartitionRuntime, members: readonly Member[]): Applied {
    const first = members[0];
    if (first === undefined || !members.every((member) => this.isCurrent(member))) return refused('no current member');
    runtime.inSync = members;
    runtime.eligible = [];
    runtime.dataLossNumber += 1;
    this.assign(runtime, first, true);
    this.data.audit = [
      ...this.data.audit,
      {
        revision: this.data.revision,
        partition: runtime.partition,
        dataLossNumber: runtime.dataLossNumber,
        text: `partition ${runtime.partition} was re-homed empty on ${members.map(memberName).join(', ')}`,
      },
    ].slice(-auditEventBound);
    return this.edge(runtime, 'evicted', `data-loss number ${runtime.dataLossNumber}`);
  }

  private edge(runtime: PartitionRuntime, name: Edge['name'], why: string, step = 1): Applied {
    runtime.epoch = asEpoch(runtime.epoch + step);
    checkRuntime(this.check, runtime, this);
    this.touched.add(runtime.partition);
    this.edges.push({ name, why, runtime: { ...runtime } });
    return applied;
  }
}

const applied: Applied = { kind: 'applied' };
const refused = (why: string): Applied => ({ kind: 'refused', why });
