/**
 * Every committed edge of every partition, from the nodes' own notices, and every registration: what the certificate's
 * failover count and exposure rest on. The simulator misses none, however quick.
 *
 * Two nodes that tell different things of one epoch are both recorded; the fencing checker must see it.
 */
import type { EpochKind } from '../ledger/rows.ts';
import type { Edge } from '../zaris/control/state.ts';
import { type Member, type NodeId, sameMember } from '../zaris/model/ids.ts';
import type { SimHistory } from './history.ts';
import { nsOf } from './load.ts';
import { controlLeader } from './sim-cluster.ts';
import type { World } from './world.ts';

/** How often registrations are looked for, ms. */
const lookEveryMs = 500;

const kindOf = (name: Edge['name']): EpochKind =>
  name === 'promotion' ? 'failover' : name === 'handoff' ? 'handoff' : 'edge';

const isSamePrimary = (a: Member | null, b: Member | null): boolean =>
  a === null || b === null ? a === b : sameMember(a, b);

/** Two nodes tell the same of an epoch. */
function isSameEdge(a: Edge, b: Edge): boolean {
  const one = a.runtime;
  const other = b.runtime;
  return (
    a.name === b.name &&
    one.term === other.term &&
    one.serving === other.serving &&
    one.inSync.length === other.inSync.length &&
    isSamePrimary(one.primary, other.primary) &&
    one.inSync.every((member, index) => sameMember(member, other.inSync[index] as Member))
  );
}

/** Epochs of a partition that are remembered, by their low bits: a power of two. A node that hears of an older one tells nothing new. */
const rememberedEpochs = 1_024;

export class EpochRecorder {
  private readonly world: World;
  private readonly history: SimHistory;
  /** What was told last of each epoch, by partition. */
  private readonly seen: (Edge | undefined)[][] = [];
  private readonly highest: number[] = [];
  private readonly incarnations = new Map<NodeId, number>();
  failovers = 0;
  handoffs = 0;
  private isStopped = false;

  constructor(world: World, history: SimHistory) {
    this.world = world;
    this.history = history;
    this.look();
  }

  /** Takes in one edge. `known`: another node, or the same one before it restarted, told the same; `old`: of an epoch that is forgotten. */
  heard(edge: Edge): 'news' | 'known' | 'old' {
    const { partition, epoch, term, primary, health } = edge.runtime;
    const mine = (this.seen[partition] ??= new Array<Edge | undefined>(rememberedEpochs).fill(undefined));
    const place = epoch & (rememberedEpochs - 1);
    const known = mine[place];
    if (known?.runtime.epoch === epoch && isSameEdge(known, edge)) return 'known';
    const highest = Math.max(this.highest[partition] ?? 0, epoch);
    if (epoch <= highest - rememberedEpochs) return 'old';
    this.highest[partition] = highest;
    mine[place] = edge;
    const kind = kindOf(edge.name);
    if (kind === 'failover') this.failovers += 1;
    if (kind === 'handoff') this.handoffs += 1;
    this.history.epochChange({
      partition,
      epoch,
      term,
      node: primary?.nodeId ?? null,
      incarnation: primary?.incarnation ?? null,
      kind,
      health,
      atNs: nsOf(this.world.nowMs),
    });
    return 'news';
  }

  /** Looks for nothing more. */
  stop(): void {
    this.isStopped = true;
  }

  private look(): void {
    if (this.isStopped) return;
    const { world } = this;
    for (const node of controlLeader(world)?.planes.control.state.nodes ?? []) {
      if (this.incarnations.get(node.nodeId) === node.incarnation) continue;
      this.incarnations.set(node.nodeId, node.incarnation);
      this.history.incarnationRows.push({
        node: node.nodeId,
        incarnation: node.incarnation,
        atNs: nsOf(world.nowMs),
        wallMs: world.nowMs,
      });
    }
    world.at(world.nowMs + lookEveryMs, () => this.look());
  }
}
