/**
 * Carries out a node's effects in the order given, across steps: no ordered effect that follows a `persist` is released before that
 * persist is durable and its `persisted` event has been fed back; the others pass (see the node's contract). All persists that wait at the time share one fsync; making a later one durable
 * early is like losing the messages between, which the protocol bears. If the order broke, a voter could vote twice in a term.
 */
import { type Effect, isOrdered } from '../node/contract.ts';
import type { DiskWrite } from '../model/raft-wire.ts';

type Persist = Extract<Effect, { kind: 'persist' }>;

export interface EffectWorld {
  /** Makes the writes durable. A rejection is fatal and goes to `failed`. */
  readonly persist: (writes: readonly DiskWrite[]) => Promise<void>;
  readonly failed: (error: unknown) => void;
  /** Feeds `persisted` to the node, returns what follows. */
  readonly persisted: (ticket: number) => readonly Effect[];
  /** Everything but `persist`. */
  readonly execute: (effect: Exclude<Effect, Persist>) => void;
  /** The queue has released what it could; batches may go out. */
  readonly released: () => void;
}

/** Two lanes, each first in, first out: ordered effects, and those that pass. */
export class EffectQueue {
  private readonly world: EffectWorld;
  private queue: Effect[] = [];
  private head = 0;
  /** Persists at the head of the queue that are durable already. */
  private readonly durable = new Set<Persist>();
  private isSyncing = false;
  private isDraining = false;
  /** The disk failed: nothing is released any more. */
  private hasFailed = false;

  constructor(world: EffectWorld) {
    this.world = world;
  }

  /** Ordered effects that wait behind a persist. */
  get length(): number {
    return this.queue.length - this.head;
  }

  /** Adds effects behind all others of their lane and releases what may be. */
  push(effects: readonly Effect[]): void {
    this.add(effects);
    this.drain();
  }

  private add(effects: readonly Effect[]): void {
    if (this.hasFailed) return;
    for (const effect of effects) {
      if (isOrdered(effect)) this.queue.push(effect);
      else this.world.execute(effect as Exclude<Effect, Persist>);
    }
  }

  private drain(): void {
    if (this.isDraining) return;
    if (this.isSyncing) return this.world.released();
    this.isDraining = true;
    while (this.head < this.queue.length) {
      const effect = this.queue[this.head] as Effect;
      if (effect.kind !== 'persist') {
        this.head++;
        this.world.execute(effect);
      } else if (this.durable.delete(effect)) {
        this.head++;
        this.add(this.world.persisted(effect.ticket));
      } else {
        this.sync();
        break;
      }
    }
    this.queue = this.head === this.queue.length ? [] : this.queue.slice(this.head);
    this.head = 0;
    this.isDraining = false;
    this.world.released();
  }

  private sync(): void {
    const persists = this.queue.slice(this.head).filter((effect): effect is Persist => effect.kind === 'persist');
    this.isSyncing = true;
    this.world.persist(persists.flatMap((persist) => persist.writes)).then(
      () => {
        this.isSyncing = false;
        for (const persist of persists) this.durable.add(persist);
        this.drain();
      },
      (error: unknown) => {
        this.hasFailed = true;
        this.world.failed(error);
      },
    );
  }
}
