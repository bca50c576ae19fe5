/**
 * A partition's operation log in memory: dense, with its older part trimmed away behind a known (seq, term).
 *
 * Owns log matching: two logs that agree on (seq, term) of an entry agree on everything before it (Raft §5.3, and the same
 * argument in PacificA). If `termAt` lied, a replica would acknowledge entries on top of a different past.
 */
import { assert, present } from '../../lib/assert.ts';
import type { Entry } from '../model/entry.ts';
import { type Seq, type Term, type Version, seq as asSeq, term as asTerm } from '../model/ids.ts';

/** Trimmed entries are dropped from memory once this many have gathered. */
const compactEvery = 1_024;

/** Rough size of an entry in memory, bytes. */
export function entryBytes(entry: Entry): number {
  const { effect } = entry;
  const text =
    effect.kind === 'put' ? effect.key.length + effect.value.length : effect.kind === 'delete' ? effect.key.length : 0;
  return 120 + text + (entry.once === undefined ? 0 : 80);
}

export class PartitionLog {
  private entries: Entry[] = [];
  /** Size of each, at the same index: trimming an old entry need not touch it. */
  private sizes: number[] = [];
  /** Entries before this index of `entries` are trimmed and only wait to be dropped. */
  private head = 0;
  private base: Version;
  private bytesHeld = 0;

  /** An empty log whose next entry follows `base`; (0, 0) is the beginning of everything. */
  constructor(base: Version = { term: asTerm(0), seq: asSeq(0) }) {
    this.base = base;
  }

  /** The last trimmed entry; everything above it is held. */
  get baseVersion(): Version {
    return this.base;
  }

  get last(): Version {
    const { entries } = this;
    if (entries.length === this.head) return this.base;
    const entry = entries[entries.length - 1] as Entry;
    return { term: entry.term, seq: entry.seq };
  }

  /** The seq of {@link last}. */
  get lastSeq(): Seq {
    return asSeq(this.base.seq + this.entries.length - this.head);
  }

  get length(): number {
    return this.entries.length - this.head;
  }

  get bytes(): number {
    return this.bytesHeld;
  }

  /** Term of the entry at `at`, or null where it is trimmed or not there yet. */
  termAt(at: Seq): Term | null {
    if (at === this.base.seq) return this.base.term;
    return this.get(at)?.term ?? null;
  }

  get(at: Seq): Entry | undefined {
    if (at <= this.base.seq) return undefined;
    return this.entries[this.head + (at - this.base.seq) - 1];
  }

  /** Entries above `after`, at most `maxCount` and about `maxBytes`, at least one if there is one. */
  slice(after: Seq, maxCount: number, maxBytes: number): Entry[] {
    assert(after >= this.base.seq, 'sliced below the trimmed part');
    const start = this.head + (after - this.base.seq);
    const result: Entry[] = [];
    let bytes = 0;
    for (let index = start; index < this.entries.length && result.length < maxCount; index++) {
      bytes += this.sizes[index] as number;
      if (result.length > 0 && bytes > maxBytes) break;
      result.push(present(this.entries[index], 'log entry'));
    }
    return result;
  }

  append(entry: Entry): void {
    const { lastSeq, entries } = this;
    const lastTerm = entries.length === this.head ? this.base.term : (entries[entries.length - 1] as Entry).term;
    // Spelt out: the sentences are made only when needed.
    if (entry.seq !== lastSeq + 1) assert(false, `log gap: ${entry.seq} after ${lastSeq}`);
    if (entry.term < lastTerm) assert(false, `term goes back: ${entry.term} after ${lastTerm}`);
    const bytes = entryBytes(entry);
    entries.push(entry);
    this.sizes.push(bytes);
    this.bytesHeld += bytes;
  }

  /** Cuts `from` and everything after it. */
  truncateFrom(from: Seq): void {
    assert(from > this.base.seq, 'truncated below the trimmed part');
    const index = this.head + (from - this.base.seq) - 1;
    this.entries.splice(index);
    for (const bytes of this.sizes.splice(index)) this.bytesHeld -= bytes;
  }

  /** Forgets entries up to `upTo`; they must be applied. */
  trimTo(upTo: Seq): void {
    if (upTo <= this.base.seq) return;
    const entry = present(this.get(upTo), 'entry to trim to');
    const head = this.head + (upTo - this.base.seq);
    for (let index = this.head; index < head; index++) this.bytesHeld -= present(this.sizes[index], 'trimmed entry');
    this.head = head;
    this.base = { term: entry.term, seq: entry.seq };
    if (this.head >= compactEvery) {
      this.entries.splice(0, this.head);
      this.sizes.splice(0, this.head);
      this.head = 0;
    }
  }

  /** Where a sender should try again when (previousSeq, previousTerm) does not match: below it, by term (not by commit). */
  conflictHint(previousSeq: Seq): Seq {
    const { last } = this;
    if (last.seq < previousSeq) return last.seq;
    if (previousSeq <= this.base.seq) return this.base.seq;
    const conflicting = this.termAt(previousSeq);
    let at = previousSeq as number;
    while (at > this.base.seq + 1 && this.termAt(asSeq(at - 1)) === conflicting) at--;
    return asSeq(at - 1);
  }
}
