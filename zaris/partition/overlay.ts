/**
 * What the uncommitted part of a primary's log will do: the newest pending effect per key, the pending sequences.
 *
 * Conditions and repeats are judged against committed plus pending entries. If a pending entry were overlooked, two
 * compare-and-set on one version would both succeed, or a repeat would run twice.
 */
import type { Entry, OnceRecord } from '../model/entry.ts';
import type { Seq, Version } from '../model/ids.ts';

/** A key's pending state; `value` null means deleted. */
export interface PendingItem {
  readonly seq: Seq;
  readonly value: string | null;
  readonly version: Version;
}

interface PendingClient {
  lowWatermark: number;
  /** Newest pending entry of this client; when it commits the store knows everything that stands here. */
  lastSeq: Seq;
  readonly sequences: Map<number, { readonly seq: Seq; readonly once: OnceRecord }>;
}

export class PendingOverlay {
  private readonly keys = new Map<string, PendingItem>();
  private readonly clients = new Map<string, PendingClient>();
  /** Keys with an uncommitted entry inherited from an older term → the last of these. */
  private readonly inherited = new Map<string, Seq>();
  private lastInherited = 0;

  key(key: string): PendingItem | undefined {
    return this.keys.get(key);
  }

  sequence(clientId: string, sequence: number): { readonly seq: Seq; readonly once: OnceRecord } | undefined {
    return this.clients.get(clientId)?.sequences.get(sequence);
  }

  lowWatermark(clientId: string): number {
    return this.clients.get(clientId)?.lowWatermark ?? 0;
  }

  /** Until this commits, the committed value of the key may be older than one that was acknowledged. 0: nothing inherited. */
  inheritedSeq(key: string): number {
    return this.inherited.get(key) ?? 0;
  }

  /** The same for a scan: until this commits, a range may lack an acknowledged key. */
  get inheritedUpTo(): number {
    return this.inherited.size === 0 ? 0 : this.lastInherited;
  }

  add(entry: Entry, isInherited: boolean): void {
    const { effect, once, seq } = entry;
    const version: Version = { term: entry.term, seq };
    if (effect.kind === 'put') this.keys.set(effect.key, { seq, value: effect.value, version });
    else if (effect.kind === 'delete') this.keys.set(effect.key, { seq, value: null, version });
    if (isInherited && (effect.kind === 'put' || effect.kind === 'delete')) {
      this.inherited.set(effect.key, seq);
      this.lastInherited = seq;
    }
    if (once === undefined) return;
    let client = this.clients.get(once.clientId);
    if (client === undefined) {
      client = { lowWatermark: 0, lastSeq: seq, sequences: new Map() };
      this.clients.set(once.clientId, client);
    }
    client.lastSeq = seq;
    client.lowWatermark = Math.max(client.lowWatermark, once.lowWatermark);
    client.sequences.set(once.sequence, { seq, once });
  }

  /** The entry is applied: the store answers for it from now on. */
  settle(entry: Entry): void {
    const { effect, once, seq } = entry;
    if (effect.kind === 'put' || effect.kind === 'delete') {
      if (this.keys.get(effect.key)?.seq === seq) this.keys.delete(effect.key);
      if (this.inherited.get(effect.key) === seq) this.inherited.delete(effect.key);
    }
    if (once === undefined) return;
    const client = this.clients.get(once.clientId);
    if (client === undefined) return;
    client.sequences.delete(once.sequence);
    if (client.lastSeq === seq) this.clients.delete(once.clientId);
  }

  clear(): void {
    this.keys.clear();
    this.clients.clear();
    this.inherited.clear();
    this.lastInherited = 0;
  }
}
