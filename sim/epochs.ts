/**
 * Every committed edge of every partition, from the nodes' own notices, and every registration: what the certificate's
 * failover count and exposure rest on. The simulator misses none, however quick.
 *
 * Two nodes that tell different things of one epoch are both recorded; the fencing checker must see it.
 */
import type { EpochKind } from '../ledger/rows.ts';
import type { NodeId } from '../zaris/model/ids.ts';
import type { Notice } from '../zaris/node/contract.ts';
import type { SimHistory } from './history.ts';
import { nsOf } from './load.ts';
import { controlLeader } from './sim-cluster.ts';
import type { World } from './world.ts';

/** How often registrations are looked for, ms. */
const lookEveryMs = 500;

const kindOf = (name: string): EpochKind =>
  name === 'edge-promotion' ? 'failover' : name === 'edge-handoff' ? 'handoff' : 'edge';

/** "n1#3" in parts. */
function memberOf(text: unknown): { node: string; incarnation: number } | null {
  if (typeof text !== 'string') return null;
  const at = text.lastIndexOf('#');
  return { node: text.slice(0, at), incarnation: Number(text.slice(at + 1)) };
}

/** Two nodes tell the same of an epoch. */
const isSameEdge = (a: Notice, b: Notice): boolean =>
  a.name === b.name &&
  a.fields['term'] === b.fields['term'] &&
  a.fields['primary'] === b.fields['primary'] &&
  a.fields['inSync'] === b.fields['inSync'];

/** Epochs of a partition that are remembered, below its highest; a node that hears so late of one tells nothing new. */
const rememberedEpochs = 1_000;

export class EpochRecorder {
  private readonly world: World;
  private readonly history: SimHistory;
  /** What was told last of each epoch, by partition. */
  private readonly seen: Map<number, Notice>[] = [];
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

  /** True when this edge was not heard of before. */
  heard(notice: Notice): boolean {
    const { name, fields } = notice;
    if (!name.startsWith('edge-')) return false;
    const partition = fields['partition'] as number;
    const epoch = fields['epoch'] as number;
    const mine = (this.seen[partition] ??= new Map());
    const known = mine.get(epoch);
    if (known !== undefined && isSameEdge(known, notice)) return false;
    if (epoch <= this.remember(partition, epoch, mine)) return false;
    mine.set(epoch, notice);
    const primary = memberOf(fields['primary']);
    const kind = kindOf(name);
    if (kind === 'failover') this.failovers += 1;
    if (kind === 'handoff') this.handoffs += 1;
    this.history.epochChange({
      partition,
      epoch,
      term: fields['term'] as number,
      node: primary?.node ?? null,
      incarnation: primary?.incarnation ?? null,
      kind,
      health: String(fields['health']),
      atNs: nsOf(this.world.nowMs),
    });
    return true;
  }

  /** Forgets the oldest epochs. Returns the highest that is not remembered any more. */
  private remember(partition: number, epoch: number, mine: Map<number, Notice>): number {
    const before = (this.highest[partition] ?? 0) - rememberedEpochs;
    const highest = Math.max(this.highest[partition] ?? 0, epoch);
    this.highest[partition] = highest;
    for (let old = Math.max(0, before); old <= highest - rememberedEpochs; old++) mine.delete(old);
    return highest - rememberedEpochs;
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
