/**
 * Entries of a partition's log. An entry holds the absolute effect, never the request: replaying it needs no judgement.
 * The exactly-once record and its result are part of the entry, so they live and die with it.
 */
import type { Once } from './client-wire.ts';
import type { Seq, Term, Version } from './ids.ts';

/** What a mutation was answered, kept for repeats. Version: the one written, or the one the refusal was judged against. */
export interface StoredResult {
  readonly status: 'Ok' | 'NotFound' | 'Conflict' | 'InvalidInput';
  readonly value?: string;
  readonly version?: Version;
}

export interface OnceRecord extends Once {
  readonly result: StoredResult;
}

export type EntryEffect =
  /** First entry of a primary's term. */
  | { readonly kind: 'term-start' }
  | { readonly kind: 'put'; readonly key: string; readonly value: string; readonly ttlMs?: number }
  | { readonly kind: 'delete'; readonly key: string }
  /** A mutation that changed nothing (Conflict, NotFound) but must be remembered. */
  | { readonly kind: 'completion' }
  /** Exactly-once records of these clients go: they were idle too long. */
  | { readonly kind: 'expire-clients'; readonly clientIds: readonly string[] };

/** `term` is the term in which the entry was first logged; it never changes, whoever re-replicates it. */
export interface Entry {
  readonly seq: Seq;
  readonly term: Term;
  readonly effect: EntryEffect;
  readonly once?: OnceRecord;
}

/** The version that an entry gives to what it writes; the object in its stored result where that says the same, so that one is kept. */
export function entryVersion(entry: Entry): Version {
  const told = entry.once?.result.version;
  if (told !== undefined && told.seq === entry.seq && told.term === entry.term) return told;
  return { term: entry.term, seq: entry.seq };
}

export interface SnapshotItem {
  readonly key: string;
  readonly value: string;
  readonly version: Version;
  /** What is left of its time to live, ms. */
  readonly ttlMs?: number;
}

export interface SnapshotClient {
  readonly clientId: string;
  readonly lowWatermark: number;
  readonly results: readonly (readonly [sequence: number, result: StoredResult])[];
}
