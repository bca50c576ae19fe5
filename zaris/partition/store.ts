/**
 * The applied state of a partition: keys, values, versions, and the exactly-once records that go with them.
 *
 * A pure fold of committed entries, the same on every copy; the digest, kept as entries are applied, is equal at equal
 * seq on all of them. If applying depended on anything but the entry, replicas would drift apart unseen.
 */
import crc32 from 'crc-32';
import { assert } from '../../lib/assert.ts';
import {
  type Entry,
  type OnceRecord,
  type SnapshotClient,
  type SnapshotItem,
  type StoredResult,
  entryVersion,
} from '../model/entry.ts';
import { OnceTable } from './once-table.ts';
import { type Version, compareVersions, seq as asSeq, term as asTerm } from '../model/ids.ts';

export interface Item {
  readonly value: string;
  readonly version: Version;
  /** Of key, value and version; what the item adds to the digest. */
  readonly hash: number;
  /** On this node's monotonic clock; applying later only lengthens it. */
  readonly expiresAtMs?: number;
}

/** Where a key's item stands: writing to it costs one look-up, and all its items share one key. */
interface Slot {
  readonly key: string;
  item: Item;
}

/** What is known of a sequence: never seen, settled below the watermark, or done with this result. */
export type Remembered =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'settled' }
  | { readonly kind: 'done'; readonly result: StoredResult };

function itemHash(key: string, value: string, version: Version): number {
  const seed = Math.imul(version.term, 0x9e3779b1) ^ Math.imul(version.seq, 0x85ebca6b);
  return crc32.str(value, crc32.str(key, seed));
}

function itemOf(value: string, version: Version, hash: number, ttlMs: number | undefined, nowMs: number): Item {
  return ttlMs === undefined ? { value, version, hash } : { value, version, hash, expiresAtMs: nowMs + ttlMs };
}

export class PartitionStore {
  private readonly items = new Map<string, Slot>();
  private readonly clients = new Map<string, OnceTable>();
  private readonly expiring = new Map<string, number>();
  private appliedVersion: Version = { term: asTerm(0), seq: asSeq(0) };
  private digestLow = 0;
  private digestHigh = 0;
  private recordCount = 0;
  /** No client was last active before this: nobody is idle until it is that long ago. */
  private activeSinceMs = Number.NEGATIVE_INFINITY;

  get applied(): Version {
    return this.appliedVersion;
  }
  get keyCount(): number {
    return this.items.size;
  }
  get clientCount(): number {
    return this.clients.size;
  }
  get onceRecordCount(): number {
    return this.recordCount;
  }

  /** Two lanes of 32 bits as one number below 2^53. */
  get digest(): number {
    return (this.digestHigh & 0x1fffff) * 4294967296 + this.digestLow;
  }

  get(key: string): Item | undefined {
    return this.items.get(key)?.item;
  }

  /** All keys with a prefix, in order. */
  keys(prefix: string): string[] {
    const result: string[] = [];
    for (const key of this.items.keys()) if (key.startsWith(prefix)) result.push(key);
    return result.sort();
  }

  /** Keys whose time to live has run out. */
  expired(nowMs: number, limit: number): string[] {
    const result: string[] = [];
    for (const [key, atMs] of this.expiring) {
      if (atMs <= nowMs) result.push(key);
      if (result.length >= limit) break;
    }
    return result;
  }

  /** Clients silent for longer than `idleMs`. */
  idleClients(nowMs: number, idleMs: number, limit: number): string[] {
    const result: string[] = [];
    if (nowMs - this.activeSinceMs <= idleMs) return result;
    let sinceMs = nowMs;
    for (const [clientId, record] of this.clients) {
      if (record.lastActiveMs < sinceMs) sinceMs = record.lastActiveMs;
      if (nowMs - record.lastActiveMs > idleMs) result.push(clientId);
      if (result.length >= limit) return result;
    }
    this.activeSinceMs = sinceMs;
    return result;
  }

  remembered(clientId: string, sequence: number): Remembered {
    const record = this.clients.get(clientId);
    if (record === undefined) return { kind: 'unknown' };
    const result = record.get(sequence);
    if (result !== undefined) return { kind: 'done', result };
    return sequence < record.lowWatermark ? { kind: 'settled' } : { kind: 'unknown' };
  }

  /** Applies the next committed entry. Returns false when its sequence took effect before: a broken promise for the caller to report. */
  apply(entry: Entry, nowMs: number): boolean {
    if (entry.seq !== this.appliedVersion.seq + 1) {
      assert(false, `applied out of order: ${entry.seq} after ${this.appliedVersion.seq}`);
    }
    const version = entryVersion(entry);
    this.appliedVersion = version;
    const fresh = entry.once === undefined || this.remember(entry.once, nowMs);
    const { effect } = entry;
    switch (effect.kind) {
      case 'put': {
        const { key, value, ttlMs } = effect;
        const hash = itemHash(key, value, version);
        this.put(key, this.items.get(key), itemOf(value, version, hash, ttlMs, nowMs));
        break;
      }
      case 'delete':
        this.drop(effect.key);
        break;
      case 'expire-clients':
        for (const clientId of effect.clientIds) this.forget(clientId);
        break;
      case 'term-start':
      case 'completion':
        break;
    }
    return fresh;
  }

  private forget(clientId: string): void {
    const record = this.clients.get(clientId);
    if (record === undefined) return;
    this.recordCount -= record.size;
    this.clients.delete(clientId);
  }

  private remember(once: OnceRecord, nowMs: number): boolean {
    let record = this.clients.get(once.clientId);
    if (record === undefined) {
      record = new OnceTable(nowMs);
      this.clients.set(once.clientId, record);
    }
    const before = record.size;
    record.lastActiveMs = nowMs;
    const fresh = record.add(once.sequence, once.result);
    record.raiseWatermark(once.lowWatermark);
    this.recordCount += record.size - before;
    return fresh;
  }

  private put(key: string, slot: Slot | undefined, item: Item): void {
    const old = slot?.item;
    if (slot === undefined) this.items.set(key, { key, item });
    else {
      assert(compareVersions(item.version, slot.item.version) > 0, `version of a key goes back`);
      this.mix(slot.item, -1);
      slot.item = item;
    }
    this.mix(item, 1);
    if (item.expiresAtMs !== undefined) this.expiring.set(key, item.expiresAtMs);
    else if (old?.expiresAtMs !== undefined) this.expiring.delete(key);
  }

  private drop(key: string): void {
    const old = this.get(key);
    if (old === undefined) return;
    this.mix(old, -1);
    this.items.delete(key);
    if (old.expiresAtMs !== undefined) this.expiring.delete(key);
  }

  /** Adds or takes away one item's hash; order does not matter, so every copy arrives at the same sum. */
  private mix({ hash, version }: Item, sign: 1 | -1): void {
    const high = Math.imul(hash ^ version.seq, 0xc2b2ae35) ^ (hash >>> 13);
    this.digestLow = (this.digestLow + sign * (hash >>> 0)) >>> 0;
    this.digestHigh = (this.digestHigh + sign * (high >>> 0)) >>> 0;
  }

  /** A consistent copy of everything, as of `applied`; items are shared, they never change. */
  snapshot(nowMs: number): { items: SnapshotItem[]; clients: SnapshotClient[] } {
    const items: SnapshotItem[] = [];
    for (const { key, item } of this.items.values()) {
      const { value, version, expiresAtMs } = item;
      if (expiresAtMs === undefined) items.push({ key, value, version });
      else items.push({ key, value, version, ttlMs: Math.max(0, expiresAtMs - nowMs) });
    }
    const clients: SnapshotClient[] = [];
    for (const [clientId, record] of this.clients) {
      clients.push({ clientId, lowWatermark: record.lowWatermark, results: record.entries() });
    }
    return { items, clients };
  }

  /** An empty store that starts at `applied`, to be filled by {@link restoreItems}; for a learner's staging area. */
  static startingAt(applied: Version): PartitionStore {
    const store = new PartitionStore();
    store.appliedVersion = applied;
    return store;
  }

  restoreItems(items: readonly SnapshotItem[], clients: readonly SnapshotClient[], nowMs: number): void {
    for (const { key, value, version, ttlMs } of items) {
      const slot = this.items.get(key);
      if (slot !== undefined && compareVersions(slot.item.version, version) >= 0) continue;
      this.put(key, slot, itemOf(value, version, itemHash(key, value, version), ttlMs, nowMs));
    }
    for (const client of clients) {
      this.forget(client.clientId);
      const record = new OnceTable(nowMs);
      record.raiseWatermark(client.lowWatermark);
      for (const [sequence, result] of client.results) record.add(sequence, result);
      this.clients.set(client.clientId, record);
      this.recordCount += record.size;
    }
  }
}
