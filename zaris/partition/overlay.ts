/**
 * What the uncommitted part of a primary's log will do: the newest pending effect per key, the pending sequences.
 *
 * Conditions and repeats are judged against committed plus pending entries. If a pending entry were overlooked, two
 * compare-and-set on one version would both succeed, or a repeat would run twice.
 */
import { type Entry, type OnceRecord, entryVersion } from '../model/entry.ts';
import type { Seq, Version } from '../model/ids.ts';

/** A key's pending state; `value` null means deleted. */
export interface PendingItem {
  readonly seq: Seq;
  readonly value: string | null;
  readonly version: Version;
}

interface PendingSequence {
  readonly seq: Seq;
  readonly once: OnceRecord;
}

/** Up to so many keys are found faster by comparing than by hashing, and leave no tables behind. */
const comparedKeys = 8;

/** Pending items by key: a list while they are few, a map beyond. */
class PendingKeys {
  private readonly few: (PendingItem & { readonly key: string })[] = [];
  private many: Map<string, PendingItem> | null = null;

  get(key: string): PendingItem | undefined {
    return this.many === null ? this.few.find((item) => item.key === key) : this.many.get(key);
  }

  set(key: string, item: PendingItem): void {
    const { few } = this;
    if (this.many !== null) {
      this.many.set(key, item);
      return;
    }
    const index = few.findIndex((other) => other.key === key);
    const { seq, value, version } = item;
    if (index >= 0) few[index] = { key, seq, value, version };
    else if (few.length < comparedKeys) few.push({ key, seq, value, version });
    else {
      this.many = new Map(few.map((other) => [other.key, other]));
      this.many.set(key, item);
      few.length = 0;
    }
  }

  /** Removes the key's item if it is still the one of this entry. */
  settle(key: string, seq: Seq): void {
    if (this.many !== null) {
      if (this.many.get(key)?.seq === seq) this.many.delete(key);
      if (this.many.size === 0) this.many = null;
      return;
    }
    const index = this.few.findIndex((item) => item.seq === seq && item.key === key);
    if (index >= 0) this.few.splice(index, 1);
  }

  clear(): void {
    this.few.length = 0;
    this.many = null;
  }
}

/** Pending sequences of one client, in the order of their entries. */
class PendingSequences {
  private readonly items: PendingSequence[] = [];
  private highest = 0;

  get isEmpty(): boolean {
    return this.items.length === 0;
  }

  /** What is asked for is mostly new, hence above all that stands here. */
  get(sequence: number): PendingSequence | undefined {
    return sequence > this.highest ? undefined : this.items.findLast(({ once }) => once.sequence === sequence);
  }

  add(item: PendingSequence): void {
    this.items.push(item);
    if (item.once.sequence > this.highest) this.highest = item.once.sequence;
  }

  /** The entry is applied; mostly it is the oldest one. */
  settle(seq: Seq): void {
    const index = this.items.findIndex((item) => item.seq === seq);
    if (index === 0) this.items.shift();
    else if (index > 0) this.items.splice(index, 1);
    if (this.items.length === 0) this.highest = 0;
  }
}

/** It stays when nothing of it is pending: a busy client needs it again with its next write. */
interface PendingClient {
  lowWatermark: number;
  readonly sequences: PendingSequences;
}

export class PendingOverlay {
  private readonly keys = new PendingKeys();
  private readonly clients = new Map<string, PendingClient>();
  /** Keys with an uncommitted entry inherited from an older term → the last of these. */
  private readonly inherited = new Map<string, Seq>();
  /**
   * End of what was inherited, of whatever kind; 0: nothing. Until this commits, a range may lack an acknowledged key, and an older primary
   * may have named a later position than the committed one.
   */
  inheritedEnd = 0;

  key(key: string): PendingItem | undefined {
    return this.keys.get(key);
  }

  sequence(clientId: string, sequence: number): PendingSequence | undefined {
    return this.clients.get(clientId)?.sequences.get(sequence);
  }

  lowWatermark(clientId: string): number {
    return this.clients.get(clientId)?.lowWatermark ?? 0;
  }

  /** Until this commits, the committed value of the key may be older than one that was acknowledged. 0: nothing inherited. */
  inheritedSeq(key: string): number {
    return this.inherited.size === 0 ? 0 : (this.inherited.get(key) ?? 0);
  }

  add(entry: Entry, isInherited: boolean): void {
    const { effect, once, seq } = entry;
    if (isInherited) this.inheritedEnd = seq;
    if (effect.kind === 'put') this.keys.set(effect.key, { seq, value: effect.value, version: entryVersion(entry) });
    else if (effect.kind === 'delete') this.keys.set(effect.key, { seq, value: null, version: entryVersion(entry) });
    if (isInherited && (effect.kind === 'put' || effect.kind === 'delete')) {
      this.inherited.set(effect.key, seq);
    }
    if (once === undefined) return;
    let client = this.clients.get(once.clientId);
    if (client === undefined) {
      client = { lowWatermark: 0, sequences: new PendingSequences() };
      this.clients.set(once.clientId, client);
    }
    client.lowWatermark = Math.max(client.lowWatermark, once.lowWatermark);
    client.sequences.add({ seq, once });
  }

  /** The entry is applied: the store answers for it from now on. */
  settle(entry: Entry): void {
    const { effect, once, seq } = entry;
    if (effect.kind === 'put' || effect.kind === 'delete') {
      this.keys.settle(effect.key, seq);
      if (this.inherited.size > 0 && this.inherited.get(effect.key) === seq) this.inherited.delete(effect.key);
    } else if (effect.kind === 'expire-clients') {
      for (const clientId of effect.clientIds) {
        if (this.clients.get(clientId)?.sequences.isEmpty === true) this.clients.delete(clientId);
      }
    }
    if (once === undefined) return;
    const client = this.clients.get(once.clientId);
    if (client === undefined) return;
    client.sequences.settle(seq);
    // From here on the store knows it all.
    if (client.sequences.isEmpty) client.lowWatermark = 0;
  }

  clear(): void {
    this.keys.clear();
    this.clients.clear();
    this.inherited.clear();
    this.inheritedEnd = 0;
  }
}
