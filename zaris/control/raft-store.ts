/**
 * The log of one voter with what is known of it: what is committed, what was given out, what is durable; in memory, with every
 * change also written to the disk through {@link RaftOutput}.
 *
 * Invariants, asserted: the commit index never decreases; a committed entry is never cut or replaced; entries are given out
 * in order and once. Worst outcome if wrong: a committed entry is lost, or state machines part.
 */
import { assert } from '../../lib/assert.ts';
import type { DiskState, RaftAppend, RaftConfig, RaftEntry, RaftSnapshot, Voter } from '../model/raft-wire.ts';
import { majorityIndex } from './raft-config.ts';
import { RaftLog } from './raft-log.ts';
import type { Conflict } from './raft-log.ts';
import type { RaftOutput, RaftReady } from './raft-output.ts';

/** What a leader puts into the log, before it has a place there. */
export type NewEntry =
  | { readonly kind: 'noop' }
  | { readonly kind: 'config'; readonly config: RaftConfig }
  | { readonly kind: 'command'; readonly command: unknown };

/** What became of an append: up to where the log now equals the leader's, or where to look for that. */
export type AppendOutcome =
  | { readonly kind: 'accepted'; readonly matchIndex: number }
  | ({ readonly kind: 'rejected'; readonly prevIndex: number } & Conflict);

const nothing: readonly RaftEntry[] = [];

export class RaftStore {
  readonly log: RaftLog;
  private readonly output: RaftOutput;
  private latestSnapshot: RaftSnapshot | null;
  private committed: number;
  /** Last entry given out. */
  private handed: number;
  private toInstall: RaftSnapshot | null;

  constructor(disk: DiskState, output: RaftOutput) {
    this.log = new RaftLog(disk);
    this.output = output;
    this.latestSnapshot = disk.snapshot;
    this.toInstall = disk.snapshot;
    this.committed = this.log.provenIndex;
    this.handed = this.log.baseIndex;
  }

  get commitIndex(): number {
    return this.committed;
  }

  /** What this node knows to be committed, for others that may not. */
  get commitPoint(): { readonly commitIndex: number; readonly commitRaftTerm: number } {
    return { commitIndex: this.committed, commitRaftTerm: this.log.raftTermAt(this.committed) ?? 0 };
  }

  /** Last entry given out. */
  get handedIndex(): number {
    return this.handed;
  }

  get snapshot(): RaftSnapshot | null {
    return this.latestSnapshot;
  }

  /** The voter sets of which majorities are needed now. */
  get groups(): readonly (readonly Voter[])[] {
    return this.log.groups(this.committed);
  }

  /** The latest config is known to be committed, and it is not in the log that it is: a new leader should say so. */
  get needsSettling(): boolean {
    const { configIndex, votersChanged, previousConfig } = this.log;
    return configIndex <= this.committed && (votersChanged || previousConfig === null);
  }

  /** A leader's own next entry. */
  append(body: NewEntry, raftTerm: number): RaftEntry {
    const entry: RaftEntry = { ...body, index: this.log.lastIndex + 1, raftTerm };
    this.log.append(entry);
    this.output.write({ kind: 'entries', entries: [entry] });
    return entry;
  }

  /** Commits what majorities hold, by the copies of `raftTerm` alone; true when that was more than before. */
  commitByCopies(raftTerm: number, copyOf: (voter: Voter) => number): boolean {
    const before = this.committed;
    for (;;) {
      // Once a config is committed, the one before it is no longer asked: look again.
      const index = majorityIndex(this.groups, copyOf);
      if (index <= this.committed || this.log.raftTermAt(index) !== raftTerm) return this.committed > before;
      this.commit(index);
    }
  }

  private commit(index: number): void {
    assert(
      index >= this.committed && index <= this.log.lastIndex,
      'the commit index never decreases nor leaves the log',
    );
    this.committed = index;
  }

  /** A follower's side of an append of the current leader. */
  appendFrom({ prevIndex, prevRaftTerm, entries, commitIndex }: RaftAppend): AppendOutcome {
    const end = prevIndex + entries.length;
    if (end <= this.committed) return { kind: 'accepted', matchIndex: this.committed };
    if (prevIndex > this.committed && this.log.raftTermAt(prevIndex) !== prevRaftTerm) {
      return { kind: 'rejected', prevIndex, ...this.log.conflictAt(prevIndex, this.committed) };
    }
    const known = entries.findIndex(
      (entry) => entry.index > this.log.baseIndex && this.log.raftTermAt(entry.index) !== entry.raftTerm,
    );
    if (known !== -1) this.replaceTail(entries.slice(known));
    if (commitIndex > this.committed) this.commit(Math.min(commitIndex, end));
    return { kind: 'accepted', matchIndex: end };
  }

  private replaceTail(entries: readonly RaftEntry[]): void {
    const index = entries[0]?.index ?? 0;
    assert(index > this.committed, 'a committed entry is never cut');
    if (index <= this.log.lastIndex) {
      this.log.truncateFrom(index);
      this.output.cutFrom(index);
    }
    for (const entry of entries) this.log.append(entry);
    this.output.write({ kind: 'entries', entries });
    this.commit(Math.max(this.committed, this.log.provenIndex));
  }

  /** Somebody knows that everything up to (index, raftTerm) is committed: so does this log, where it holds that entry. */
  learnCommitted(index: number, raftTerm: number): void {
    if (index > this.committed && this.log.raftTermAt(index) === raftTerm) this.commit(index);
  }

  /** A follower's side of an install; returns up to where the log equals the leader's. */
  install(snapshot: RaftSnapshot): number {
    if (snapshot.index > this.committed) {
      this.log.rebase(snapshot);
      this.output.cutFrom(this.log.lastIndex + 1);
      this.latestSnapshot = snapshot;
      this.toInstall = snapshot;
      this.commit(snapshot.index);
      this.handed = snapshot.index;
      this.output.write({ kind: 'snapshot', snapshot });
    }
    return this.committed;
  }

  /** Drops the log up to `index`, of which `state` is the outcome. */
  compact(index: number, state: unknown): void {
    assert(index <= this.handed, 'compaction of what was not given out');
    if (index <= this.log.baseIndex) return;
    const raftTerm = this.log.raftTermAt(index);
    assert(raftTerm !== null, 'a given-out entry above the base is in the log');
    const snapshot = { index, raftTerm, config: this.log.configAt(index), state };
    this.latestSnapshot = snapshot;
    this.log.rebase(snapshot);
    this.output.write({ kind: 'snapshot', snapshot });
  }

  /** What the state machine is to do next. */
  takeCommitted(): Pick<RaftReady, 'snapshot' | 'committed'> {
    const committed =
      this.committed === this.handed ? nothing : this.log.slice(this.handed + 1, this.committed - this.handed);
    const snapshot = this.toInstall;
    this.handed = this.committed;
    this.toInstall = null;
    return { snapshot, committed };
  }
}
