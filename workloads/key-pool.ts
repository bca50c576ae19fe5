/**
 * A fixed number of keys in use; each is finished after so many operations and a new one takes its place, so that the
 * history of one key stays short however long the run is.
 *
 * A finished key is reported to the key book only when no operation of ours is open on it: retiring it earlier would
 * race its own writes.
 */
import { assert, present } from '../lib/assert.ts';
import type { Prng } from '../lib/prng.ts';
import { type KeyKnowledge, knowNothing, type WorkloadContext } from './context.ts';
import { indexDrawer } from './distribution.ts';

/** Draws before a session gives up finding a key that the key book accepts. */
const maxDraws = 6;

export interface Slot extends KeyKnowledge {
  readonly key: string;
  /** Operations started on it. */
  uses: number;
  /** Operations open on it now. */
  open: number;
  /** Takes no more operations; finished once `open` is 0. */
  closing: boolean;
}

export class KeyPool {
  private readonly context: WorkloadContext;
  private readonly prefix: string;
  private readonly slots: (Slot | undefined)[];
  private readonly draw: (prng: Prng) => number;
  private readonly held: (Slot | undefined)[] = [];
  private made = 0;

  constructor(context: WorkloadContext, prefix: string, slotCount = context.activeKeys) {
    this.context = context;
    this.prefix = prefix;
    this.slots = new Array<Slot | undefined>(slotCount).fill(undefined);
    this.draw = indexDrawer(context.distribution, slotCount);
  }

  /** A key for this session's next operation, held until {@link release}; null when none can be had now. */
  take(session: number, prng: Prng): Slot | null {
    if (this.held[session] !== undefined) assert(false, `session ${session} already holds a key`);
    for (let attempt = 0; attempt < maxDraws; attempt++) {
      const index = this.draw(prng);
      const slot = this.renewed(index);
      if (slot === null || !this.context.keys.accepts(slot.key)) continue;
      slot.uses++;
      slot.open++;
      this.held[session] = slot;
      return slot;
    }
    return null;
  }

  /** The key that the session holds. */
  holding(session: number): Slot {
    const slot = this.held[session];
    return slot ?? present<never>(slot, `key of session ${session}`);
  }

  /** Ends the session's hold. With `close` the key takes no further operations. */
  release(session: number, close = false): void {
    const slot = this.holding(session);
    this.held[session] = undefined;
    slot.open--;
    if (close) slot.closing = true;
    if (slot.closing && slot.open === 0) this.context.keys.finished(slot.key);
  }

  private renewed(index: number): Slot | null {
    const slot = this.slots[index];
    if (slot !== undefined && !slot.closing && slot.uses < this.context.operationsPerKey) return slot;
    if (!this.context.keys.mayOpen()) return slot !== undefined && !slot.closing ? slot : null;
    if (slot !== undefined && !slot.closing) {
      slot.closing = true;
      if (slot.open === 0) this.context.keys.finished(slot.key);
    }
    const fresh: Slot = {
      key: `${this.prefix}${this.context.keyTag ?? ''}${(this.made++).toString(36)}`,
      uses: 0,
      open: 0,
      closing: false,
      ...knowNothing(),
    };
    this.slots[index] = fresh;
    this.context.keys.opened(fresh.key);
    return fresh;
  }
}
