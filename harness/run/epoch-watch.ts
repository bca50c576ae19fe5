/**
 * Watches the partitions' runtime from outside, several times a second, and records every edge: what the certificate's
 * failover count and exposure rest on.
 *
 * Invariant: a change of term is called a handoff only where a node's own notice said that the old primary released it; without
 * such a notice it is a failover. Edges too quick to be seen are counted as missed, never guessed.
 */
import type { ClusterEvent, PartitionStatus, StatusSource, SystemStatus } from '../../chaos/ports.ts';
import type { Clock } from '../../lib/clock.ts';

/** One edge of a partition's runtime, as watched from outside. */
export interface EpochChange {
  readonly atMs: number;
  readonly partition: number;
  readonly epoch: number;
  readonly term: number;
  readonly primary: string | null;
  readonly incarnation: number | null;
  readonly health: string;
  readonly kind: 'failover' | 'handoff' | 'edge';
  /** Edges between this one and the last one seen that were too quick to be watched. */
  readonly missed: number;
}

/** A node's registration or death, as watched from outside. */
export interface IncarnationChange {
  readonly atMs: number;
  readonly nodeId: string;
  readonly incarnation: number;
  readonly alive: boolean;
}

/** Pause between two looks, ms. */
export const watchIntervalMs = 200;
/** How long a change of term waits for a notice that says it was a handoff, ms. */
const noticeWaitMs = 1_000;
/** Handoff notices that are remembered. */
const rememberedNotices = 10_000;

export interface EpochWatchOptions {
  readonly status: StatusSource;
  /** Notices of the nodes since the last call. */
  readonly events: () => Promise<readonly ClusterEvent[]>;
  readonly clock: Clock;
  readonly onEpoch: (change: EpochChange) => void;
  readonly onIncarnation: (change: IncarnationChange) => void;
  readonly onEvent: (event: ClusterEvent) => void;
}

interface Pending {
  readonly change: Omit<EpochChange, 'kind'>;
}

export class EpochWatch {
  private readonly options: EpochWatchOptions;
  private readonly partitions = new Map<number, PartitionStatus>();
  private readonly incarnations = new Map<string, string>();
  private readonly handoffs = new Set<string>();
  private readonly lastFailoverMs = new Map<number, number>();
  private pending: Pending[] = [];
  private stopping = false;
  private running: Promise<void> | null = null;
  private wake: (() => void) | null = null;
  private newest: SystemStatus | null = null;

  constructor(options: EpochWatchOptions) {
    this.options = options;
  }

  /** The newest confirmed status, or null before the first. */
  get latest(): SystemStatus | null {
    return this.newest;
  }

  /** When the partition's last failover was seen; null when it had none. */
  lastFailoverOf(partition: number): number | null {
    return this.lastFailoverMs.get(partition) ?? null;
  }

  start(): void {
    this.running ??= this.loop();
  }

  /** Takes a last look and ends; everything seen has been reported when it resolves. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wake?.();
    await this.running;
    this.settlePending(Infinity);
  }

  private async loop(): Promise<void> {
    while (!this.stopping) {
      const startedMs = this.options.clock.nowMs();
      await this.look();
      const restMs = watchIntervalMs - (this.options.clock.nowMs() - startedMs);
      if (restMs > 0 && !this.stopping) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, restMs);
          this.wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    }
    await this.look();
  }

  /** One look: status, then notices (so that a notice of an edge just seen is already there), then the judgement. */
  private async look(): Promise<void> {
    const [status, events] = await Promise.all([this.options.status.status(), this.options.events()]);
    for (const event of events) this.heard(event);
    if (status !== null) this.saw(status);
    this.settlePending(this.options.clock.nowMs());
  }

  private heard(event: ClusterEvent): void {
    const { partition, term } = event.fields;
    if (event.name.startsWith('handoff') && typeof partition === 'number' && typeof term === 'number') {
      this.handoffs.add(`${partition}/${term}`);
      if (this.handoffs.size > rememberedNotices) this.handoffs.delete(this.handoffs.values().next().value as string);
    }
    this.options.onEvent(event);
  }

  private saw(status: SystemStatus): void {
    this.newest = status;
    for (const node of status.nodes) {
      const text = `${node.incarnation}/${node.alive}`;
      const before = this.incarnations.get(node.nodeId);
      if (before === text) continue;
      this.incarnations.set(node.nodeId, text);
      this.options.onIncarnation({ atMs: status.atMs, nodeId: node.nodeId, incarnation: node.incarnation, alive: node.alive });
    }
    for (const partition of status.partitions) {
      const before = this.partitions.get(partition.partition);
      if (before !== undefined && partition.epoch <= before.epoch) continue;
      this.partitions.set(partition.partition, partition);
      const change = {
        atMs: status.atMs,
        partition: partition.partition,
        epoch: partition.epoch,
        term: partition.term,
        primary: partition.primary,
        incarnation: status.nodes.find((node) => node.nodeId === partition.primary)?.incarnation ?? null,
        health: partition.health,
        missed: before === undefined ? 0 : partition.epoch - before.epoch - 1,
      };
      if (before !== undefined && before.term > 0 && partition.term > before.term) {
        this.pending.push({ change });
      } else this.options.onEpoch({ ...change, kind: 'edge' });
    }
  }

  private settlePending(nowMs: number): void {
    const waiting: Pending[] = [];
    for (const each of this.pending) {
      const { change } = each;
      const handoff = this.handoffs.has(`${change.partition}/${change.term}`);
      if (!handoff && nowMs - change.atMs < noticeWaitMs) {
        waiting.push(each);
        continue;
      }
      if (!handoff) this.lastFailoverMs.set(change.partition, change.atMs);
      this.options.onEpoch({ ...change, kind: handoff ? 'handoff' : 'failover' });
    }
    this.pending = waiting;
  }
}
