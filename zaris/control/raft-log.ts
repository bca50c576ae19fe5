/**
 * The log of one voter in memory: entries above a base (the latest snapshot), and the configs among them.
 *
 * Invariant: entries are contiguous and their raftTerms never decrease; a config counts from the moment it stands in the log and
 * is gone when its entry is cut. It does not know what is committed: whoever cuts must (see Raft).
 * Worst outcome if wrong: a committed entry replaced by another.
 */
import { assert, present } from '../../lib/assert.ts';
import type { DiskState, RaftConfig, RaftEntry, RaftSnapshot, Voter } from '../model/raft-wire.ts';
import { emptyConfig, sameVoters } from './raft-config.ts';

interface PlacedConfig {
  readonly index: number;
  readonly config: RaftConfig;
}

/** Where a follower's log parts from the leader's; see RaftRejected. */
export interface Conflict {
  readonly conflictIndex: number;
  readonly conflictRaftTerm: number | null;
}

export class RaftLog {
  private base: { readonly index: number; readonly raftTerm: number };
  private entries: RaftEntry[];
  /** Oldest first; the first is the config as of the base. */
  private configs: PlacedConfig[];
  /** The last answer of {@link groups}, and what it was made of. */
  private known: {
    readonly voters: readonly Voter[];
    readonly before: readonly Voter[] | null;
    readonly sets: readonly (readonly Voter[])[];
  } = { voters: [], before: null, sets: [] };

  constructor(disk: DiskState) {
    this.base = { index: disk.snapshot?.index ?? 0, raftTerm: disk.snapshot?.raftTerm ?? 0 };
    this.configs = [{ index: this.base.index, config: disk.snapshot?.config ?? emptyConfig }];
    this.entries = [];
    for (const entry of disk.entries) this.append(entry);
  }

  /** Index of the snapshot below the first entry; 0 without one. */
  get baseIndex(): number {
    return this.base.index;
  }

  get lastIndex(): number {
    return this.base.index + this.entries.length;
  }

  get lastRaftTerm(): number {
    return this.entries.at(-1)?.raftTerm ?? this.base.raftTerm;
  }

  /** Number of entries held. */
  get length(): number {
    return this.entries.length;
  }

  /** The latest config, committed or not. */
  get config(): RaftConfig {
    return this.latest.config;
  }

  /** Index of the entry of {@link config}. */
  get configIndex(): number {
    return this.latest.index;
  }

  private get latest(): PlacedConfig {
    return present(this.configs.at(-1), 'config of the log');
  }

  /** Up to here the log itself proves that it is committed: a config entry is only proposed when the one before it is. */
  get provenIndex(): number {
    return this.configs.at(-2)?.index ?? this.base.index;
  }

  /** The config before the latest one; null when that is below the base. */
  get previousConfig(): RaftConfig | null {
    return this.configs.at(-2)?.config ?? null;
  }

  /** The last config that is known to be committed while `commitIndex` is what is known to be. */
  committedConfig(commitIndex: number): RaftConfig {
    return this.configIndex > commitIndex ? (this.previousConfig ?? this.config) : this.config;
  }

  /** The latest config entry changed the voters of a cluster that had some. */
  get votersChanged(): boolean {
    const before = this.previousConfig?.voters ?? [];
    return before.length > 0 && !sameVoters(before, this.config.voters);
  }

  /** The voter sets of which majorities are needed while `commitIndex` is what is known to be committed. */
  groups(commitIndex: number): readonly (readonly Voter[])[] {
    const { known } = this;
    const { voters } = this.config;
    const before = this.configIndex > commitIndex && this.previousConfig !== null ? this.previousConfig.voters : null;
    // Asked after every event, and configs are replaced as a whole: the same lists are the same answer.
    if (known.voters === voters && known.before === before) return known.sets;
    const sets = (before === null ? [voters] : [voters, before]).filter((set) => set.length > 0);
    this.known = { voters, before, sets };
    return sets;
  }

  /** raftTerm of the entry at `index` (or of the base); null where nothing is known of it. */
  raftTermAt(index: number): number | null {
    if (index === this.base.index) return this.base.raftTerm;
    return this.entries[index - this.base.index - 1]?.raftTerm ?? null;
  }

  /** Whether a log that ends at (raftTerm, index) holds everything that could be committed of this one. */
  isCoveredBy(raftTerm: number, index: number): boolean {
    return raftTerm === this.lastRaftTerm ? index >= this.lastIndex : raftTerm > this.lastRaftTerm;
  }

  configAt(index: number): RaftConfig {
    assert(index >= this.base.index, 'config asked for below the base');
    return present(
      this.configs.findLast((placed) => placed.index <= index),
      'config at index',
    ).config;
  }

  /** Up to `limit` entries from `index` on. */
  slice(index: number, limit: number): RaftEntry[] {
    assert(index > this.base.index, 'entries asked for below the base');
    const start = index - this.base.index - 1;
    return this.entries.slice(start, start + limit);
  }

  append(entry: RaftEntry): void {
    assert(entry.index === this.lastIndex + 1, 'log entries are contiguous');
    assert(entry.raftTerm >= this.lastRaftTerm, 'raftTerm of the log never decreases');
    this.entries.push(entry);
    if (entry.kind === 'config') this.configs.push({ index: entry.index, config: entry.config });
  }

  /** Cuts the entry at `index` and everything after it, and falls back to the config before. */
  truncateFrom(index: number): void {
    assert(index > this.base.index, 'cut below the base');
    this.entries.length = index - this.base.index - 1;
    while (this.configs.length > 1 && this.configIndex >= index) this.configs.pop();
  }

  /** Drops everything up to `snapshot.index`; what is above stays only where the log agrees with the snapshot. */
  rebase(snapshot: RaftSnapshot): void {
    const agrees = this.raftTermAt(snapshot.index) === snapshot.raftTerm;
    this.entries = agrees ? this.entries.slice(snapshot.index - this.base.index) : [];
    const above = agrees ? this.configs.filter((placed) => placed.index > snapshot.index) : [];
    this.base = { index: snapshot.index, raftTerm: snapshot.raftTerm };
    this.configs = [{ index: snapshot.index, config: snapshot.config }, ...above];
  }

  /** Describes why (index, another raftTerm) is not here; `commitIndex` bounds the search. */
  conflictAt(index: number, commitIndex: number): Conflict {
    const found = this.raftTermAt(index);
    if (found === null) return { conflictIndex: this.lastIndex + 1, conflictRaftTerm: null };
    let first = index;
    while (first - 1 > commitIndex && this.raftTermAt(first - 1) === found) first--;
    return { conflictIndex: first, conflictRaftTerm: found };
  }

  /** Where a leader should try next, given a follower's conflict. */
  retryIndex(conflict: Conflict): number {
    const { conflictIndex, conflictRaftTerm } = conflict;
    if (conflictRaftTerm === null) return conflictIndex;
    for (let index = this.lastIndex; index > this.base.index; index--) {
      const raftTerm = this.raftTermAt(index) ?? 0;
      if (raftTerm === conflictRaftTerm) return index + 1;
      if (raftTerm < conflictRaftTerm) break;
    }
    return conflictIndex;
  }
}
