/**
 * Watches the partitions' runtime from outside, several times a second, and records every edge once: what the certificate's
 * failover count and exposure rest on.
 *
 * Edges come from the nodes' own notices (every node reports every committed edge), and from the status where a notice was
 * missed. Invariant: a change of term is called a handoff only where a notice said that the old primary released it; without a
 * notice it is a failover. Per partition, edges are told in the order of their epochs; those nobody reported are counted as missed.
 */
import type { ClusterEvent, StatusSource, SystemStatus } from '../../chaos/ports.ts';
import type { Clock } from '../../lib/clock.ts';

/** One edge of a partition's runtime. */
export interface EpochChange {
  readonly atMs: number;
  readonly partition: number;
  readonly epoch: number;
  readonly term: number;
  readonly primary: string | null;
  readonly incarnation: number | null;
  readonly health: string;
  readonly kind: 'failover' | 'handoff' | 'edge';
  /** Edges between this one and the one before that nobody reported. */
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
/** How long an edge waits for notices of itself and of those before it, ms. */
const noticeWaitMs = 1_500;
/** Prefix of the notices of edges. */
const edgePrefix = 'edge-';

export interface EpochWatchOptions {
  readonly status: StatusSource;
  /** Notices of the nodes since the last call. */
  readonly events: () => Promise<readonly ClusterEvent[]>;
  readonly clock: Clock;
  readonly onEpoch: (change: EpochChange) => void;
  readonly onIncarnation: (change: IncarnationChange) => void;
  /** Every notice, edges once however many nodes report them. */
  readonly onEvent: (event: ClusterEvent) => void;
}

type Edge = Omit<EpochChange, 'kind' | 'missed'> & {
  /** Name of the notice, null where only the status showed it. */
  readonly name: string | null;
  readonly seenAtMs: number;
};

interface Watched {
  /** Last edge told. */
  epoch: number;
  term: number;
  /** Edges not told yet, by epoch. */
  readonly waiting: Map<number, Edge>;
  lastFailoverMs: number | null;
}

export class EpochWatch {
  private readonly options: EpochWatchOptions;
  private readonly partitions = new Map<number, Watched>();
  private readonly incarnations = new Map<string, string>();
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

  /** When the partition's last failover was; null when it had none. */
  lastFailoverOf(partition: number): number | null {
    return this.partitions.get(partition)?.lastFailoverMs ?? null;
  }

  start(): void {
    this.running ??= this.loop();
  }

  /** Takes a last look and ends; everything seen has been reported when it resolves. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wake?.();
    await this.running;
    this.tell(Infinity);
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

  private async look(): Promise<void> {
    const [status, events] = await Promise.all([this.options.status.status(), this.options.events()]);
    // The first status is where the watch begins; edges before it are history.
    if (status !== null) this.saw(status);
    for (const event of events) this.heard(event);
    this.tell(this.options.clock.nowMs());
  }

  private heard(event: ClusterEvent): void {
    if (!event.name.startsWith(edgePrefix)) return this.options.onEvent(event);
    const { partition, epoch, term, primary, health } = event.fields;
    if (typeof partition !== 'number' || typeof epoch !== 'number' || typeof term !== 'number') return;
    const watched = this.partitions.get(partition);
    if (watched === undefined || epoch <= watched.epoch) return;
    const known = watched.waiting.get(epoch);
    if (known !== undefined && known.name !== null) return;
    const [nodeId = null, incarnation] = typeof primary === 'string' ? primary.split('#') : [];
    watched.waiting.set(epoch, {
      name: event.name,
      partition,
      epoch,
      term,
      primary: nodeId,
      incarnation: incarnation === undefined ? null : Number(incarnation),
      health: String(health),
      atMs: event.atMs,
      seenAtMs: known?.seenAtMs ?? this.options.clock.nowMs(),
    });
    this.options.onEvent(event);
  }

  private saw(status: SystemStatus): void {
    this.newest = status;
    for (const { nodeId, incarnation, alive } of status.nodes) {
      const text = `${incarnation}/${alive}`;
      if (this.incarnations.get(nodeId) === text) continue;
      this.incarnations.set(nodeId, text);
      this.options.onIncarnation({ atMs: status.atMs, nodeId, incarnation, alive });
    }
    for (const { partition, epoch, term, primary, health } of status.partitions) {
      const watched = this.partitions.get(partition);
      if (watched !== undefined && (epoch <= watched.epoch || watched.waiting.has(epoch))) continue;
      const incarnation = status.nodes.find((node) => node.nodeId === primary)?.incarnation ?? null;
      const edge = {
        name: null,
        partition,
        epoch,
        term,
        primary,
        incarnation,
        health,
        atMs: status.atMs,
        seenAtMs: status.atMs,
      };
      if (watched !== undefined) watched.waiting.set(epoch, edge);
      else {
        this.partitions.set(partition, { epoch, term, waiting: new Map(), lastFailoverMs: null });
        this.options.onEpoch({
          atMs: edge.atMs,
          partition,
          epoch,
          term,
          primary,
          incarnation,
          health,
          kind: 'edge',
          missed: 0,
        });
      }
    }
  }

  /** Tells what is complete, or has waited long enough. */
  private tell(nowMs: number): void {
    for (const watched of this.partitions.values()) {
      if (watched.waiting.size === 0) continue;
      for (const epoch of [...watched.waiting.keys()].toSorted((a, b) => a - b)) {
        const edge = watched.waiting.get(epoch) as Edge;
        const isComplete = epoch === watched.epoch + 1 && edge.name !== null;
        if (!isComplete && nowMs - edge.seenAtMs < noticeWaitMs) break;
        watched.waiting.delete(epoch);
        this.tellEdge(watched, edge);
      }
    }
  }

  private tellEdge(watched: Watched, edge: Edge): void {
    const { name, seenAtMs: _, ...rest } = edge;
    const isAssigned = edge.term > watched.term;
    const kind = !isAssigned ? 'edge' : name === `${edgePrefix}handoff` ? 'handoff' : 'failover';
    const missed = edge.epoch - watched.epoch - 1;
    watched.epoch = edge.epoch;
    watched.term = edge.term;
    if (kind === 'failover') watched.lastFailoverMs = edge.atMs;
    const change: EpochChange = { ...rest, kind, missed };
    this.options.onEpoch(change);
    if (kind === 'failover') {
      this.options.onEvent({
        name: 'failover',
        nodeId: edge.primary ?? '',
        atMs: edge.atMs,
        fields: { partition: edge.partition, epoch: edge.epoch, term: edge.term },
      });
    }
  }
}
