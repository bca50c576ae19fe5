/**
 * For adapters of systems that have no epochs of their own for an observer to go by: numbers what was seen, in order.
 *
 * Invariant: epoch and term never go back, and two different primaries (or two incarnations of one) never share a term. A term that
 * did not rise with a new primary would be reported as two primaries at once, and the failover would not be counted.
 */
import type { PartitionStatus } from '../../chaos/ports.ts';

/** What is seen of a partition at one look; everything that a change of makes a new epoch. */
export interface SeenRuntime {
  readonly partition: number;
  readonly primary: string | null;
  /** Names the reign: the primary with its incarnation and the system's own term; ignored without a primary. */
  readonly reign: string;
  readonly replicas: readonly string[];
  readonly inSync: readonly string[];
  readonly joining: readonly string[];
  readonly health: 'Healthy' | 'Degraded' | 'Recovering' | 'Unavailable';
  readonly serving: boolean;
}

/** Epochs and terms of one partition as an observer counts them. */
export class ObservedRuntime {
  private epoch = 0;
  private term = 0;
  private reign: string | null = null;
  private signature = '';

  /** Takes in a look; looks come in the order in which they began. */
  see(seen: SeenRuntime): PartitionStatus {
    const { partition, primary, reign, replicas, inSync, joining, health, serving } = seen;
    if (primary !== null && reign !== this.reign) {
      this.reign = reign;
      this.term++;
    }
    const signature = JSON.stringify([this.term, primary, [...inSync].sort(), health, serving]);
    if (signature !== this.signature) {
      this.signature = signature;
      this.epoch++;
    }
    return {
      partition,
      epoch: this.epoch,
      term: this.term,
      primary,
      preferredPrimary: null,
      replicas,
      inSync,
      eligible: [],
      joining,
      health,
      serving,
    };
  }
}

/** Numbers the incarnations of nodes from something that every start of a process changes (a run id, a start time). */
export class IncarnationCounter {
  private readonly seen = new Map<string, { identity: string; incarnation: number }>();

  /** The incarnation of a node that shows this identity. */
  of(nodeId: string, identity: string): number {
    const known = this.seen.get(nodeId);
    if (known?.identity === identity) return known.incarnation;
    const incarnation = (known?.incarnation ?? 0) + 1;
    this.seen.set(nodeId, { identity, incarnation });
    return incarnation;
  }

  /** The last known incarnation of a node that does not answer; 0 when it never did. */
  last(nodeId: string): number {
    return this.seen.get(nodeId)?.incarnation ?? 0;
  }
}

/** Looks that never overlap: who asks while one is under way gets the next one, which began after the question. */
export class OrderedLooks<T> {
  private readonly look: () => Promise<T>;
  private running: Promise<T> | null = null;
  private next: Promise<T> | null = null;

  constructor(look: () => Promise<T>) {
    this.look = look;
  }

  /** A look that begins after this call. Rejects where the look does. */
  ask(): Promise<T> {
    if (this.running === null) return this.begin();
    return (this.next ??= this.running.then(
      () => this.follow(),
      () => this.follow(),
    ));
  }

  private follow(): Promise<T> {
    this.next = null;
    return this.begin();
  }

  private begin(): Promise<T> {
    const look = this.look();
    this.running = look;
    const ended = (): void => {
      if (this.running === look) this.running = null;
    };
    look.then(ended, ended);
    return look;
  }
}

/** `work`, or null when it rejects or takes longer than `limitMs`; what it still does then is ignored. */
export async function within<T>(limitMs: number, work: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limitMs);
  });
  try {
    return await Promise.race([work.catch(() => null), late]);
  } finally {
    clearTimeout(timer);
  }
}
