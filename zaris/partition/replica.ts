/**
 * One copy of a partition on one member: its log, its applied state, and how it follows a primary.
 *
 * Invariants: an entry is accepted only on top of a matching predecessor; nothing at or below the commit index is ever
 * cut; an acknowledgement covers only what was matched in the current term; a term, once adopted, fences every older
 * primary. If one broke, an acknowledged entry could vanish from a member that is counted as holding it.
 * Sources: PacificA §2.3, Raft §5.3.
 */
import { assert } from '../../lib/assert.ts';
import type { Entry } from '../model/entry.ts';
import {
  type Member,
  type PartitionId,
  type Seq,
  type Term,
  hasMember,
  memberName,
  sameMember,
  seq as asSeq,
  term as asTerm,
} from '../model/ids.ts';
import type {
  AppendMessage,
  PossessionQueryMessage,
  SnapshotChunkMessage,
  TailQueryMessage,
} from '../model/peer-wire.ts';
import type { ReplicaHost } from './host.ts';
import { PartitionLog } from './log.ts';
import { PartitionStore } from './store.ts';

/** A snapshot on its way in. */
interface Staging {
  readonly term: Term;
  readonly snapshotId: number;
  readonly from: Member;
  readonly store: PartitionStore;
  nextIndex: number;
}

export class Replica {
  readonly partition: PartitionId;
  readonly host: ReplicaHost;
  log = new PartitionLog();
  store = new PartitionStore();
  commitSeq: Seq = asSeq(0);
  /** Highest term seen, from the control log or from a primary. */
  term: Term = asTerm(0);
  /** Last seq that equals the log of `term`'s primary; 0 when nothing was matched yet. */
  matchedSeq: Seq = asSeq(0);
  dataLossNumber = 0;
  /** Reads of an older primary may go on until then; a promoted member waits for it. */
  grantedUntilMs = 0;
  /** Whom the lease was granted to. */
  private grantedTo: Member | null = null;
  private staging: Staging | null = null;
  /** Who spoke as the primary of `term`; null until somebody did. */
  private termPrimary: Member | null = null;

  constructor(partition: PartitionId, host: ReplicaHost) {
    this.partition = partition;
    this.host = host;
  }

  get isStaging(): boolean {
    return this.staging !== null;
  }

  /** False when the term is older than one already adopted. */
  adoptTerm(term: Term): boolean {
    if (term < this.term) return false;
    if (term > this.term) {
      this.term = term;
      this.matchedSeq = asSeq(0);
      this.staging = null;
      this.termPrimary = null;
    }
    return true;
  }

  /** Adopts the term of somebody who speaks as its primary; false when it is older than one already adopted. */
  private hears(from: Member, term: Term): boolean {
    if (!this.adoptTerm(term)) return false;
    const known = this.termPrimary;
    if (known === null) this.termPrimary = from;
    else if (!sameMember(known, from)) {
      const both = `${memberName(known)} and ${memberName(from)}`;
      this.host.invariant(false, `partition ${this.partition}: two primaries in term ${term}: ${both}`);
    }
    return true;
  }

  /** The partition was re-homed empty: what this copy holds belongs to a past that control gave up. */
  adoptDataLoss(dataLossNumber: number): boolean {
    if (dataLossNumber < this.dataLossNumber) return false;
    if (dataLossNumber > this.dataLossNumber) {
      this.log = new PartitionLog();
      this.store = new PartitionStore();
      this.commitSeq = asSeq(0);
      this.matchedSeq = asSeq(0);
      this.staging = null;
      this.dataLossNumber = dataLossNumber;
    }
    return true;
  }

  onAppend(from: Member, message: AppendMessage, nowMs: number): void {
    if (!this.adoptDataLoss(message.dataLossNumber)) return;
    if (!this.hears(from, message.term)) return;
    const { previousSeq, previousTerm } = message;
    const base = this.log.baseVersion;
    // What lies below the trimmed part is committed, hence equal; only what is above it needs a comparison.
    const skip = Math.max(0, base.seq - previousSeq);
    const matches = skip > 0 ? skip <= message.entries.length : this.log.termAt(previousSeq) === previousTerm;
    if (!matches) {
      this.acknowledge(from, false, skip > 0 ? base.seq : this.log.conflictHint(previousSeq));
      return;
    }
    this.accept(skip === 0 ? message.entries : message.entries.slice(skip));
    const upTo = asSeq(previousSeq + message.entries.length);
    if (upTo > this.matchedSeq) this.matchedSeq = upTo;
    this.followCommit(message.commitSeq, nowMs);
    this.acknowledge(from, true, this.matchedSeq);
  }

  private accept(entries: readonly Entry[]): void {
    for (const entry of entries) {
      // Nearly always: the next one.
      if (entry.seq > this.log.lastSeq) {
        this.log.append(entry);
        continue;
      }
      const own = this.log.termAt(entry.seq);
      if (own === entry.term) continue;
      if (own !== null) {
        if (entry.seq <= this.commitSeq) {
          this.host.invariant(false, `partition ${this.partition}: a committed entry would be cut at ${entry.seq}`);
          return;
        }
        this.log.truncateFrom(entry.seq);
      }
      this.log.append(entry);
    }
  }

  private acknowledge(to: Member, matched: boolean, at: Seq): void {
    this.host.send(to, { kind: 'append-ack', partition: this.partition, term: this.term, matched, seq: at });
  }

  /** Applies what the primary committed and this copy has matched. */
  followCommit(commitSeq: Seq, nowMs: number): void {
    const upTo = asSeq(Math.min(commitSeq, this.matchedSeq));
    if (upTo <= this.commitSeq) return;
    this.commitTo(upTo, nowMs);
    this.trim(this.commitSeq);
  }

  /** Raises the commit index and applies; the applied entries go to the end of `applied`. */
  commitTo(upTo: Seq, nowMs: number, applied: Entry[] | null = null): void {
    if (upTo < this.commitSeq) this.host.invariant(false, `partition ${this.partition}: the commit index goes back`);
    for (let at = this.commitSeq + 1; at <= upTo; at++) {
      const entry = this.log.get(asSeq(at));
      if (entry === undefined) {
        this.host.invariant(false, `partition ${this.partition}: committed entry ${at} is not in the log`);
        return;
      }
      const fresh = this.store.apply(entry, nowMs);
      if (!fresh) this.host.invariant(false, `partition ${this.partition}: a sequence took effect twice at ${at}`);
      applied?.push(entry);
      this.commitSeq = entry.seq;
    }
  }

  /** Beat of the primary: grants it a lease. Returns the seq matched in its term, or null when the term is old. */
  onBeat(
    from: Member,
    beat: { term: Term; commitSeq: Seq; digestSeq: Seq; digest: number },
    nowMs: number,
  ): Seq | null {
    if (!this.hears(from, beat.term)) return null;
    const { leaseMs, clockDrift } = this.host.timings;
    this.grantedUntilMs = Math.max(this.grantedUntilMs, nowMs + leaseMs * (1 + clockDrift));
    this.grantedTo = from;
    this.followCommit(beat.commitSeq, nowMs);
    if (
      this.store.applied.seq === beat.digestSeq &&
      beat.digestSeq === this.commitSeq &&
      this.matchedSeq >= beat.digestSeq
    ) {
      const { digest } = this.store;
      if (digest !== beat.digest) {
        const why = `digest differs from the primary's at seq ${beat.digestSeq}`;
        this.host.invariant(false, `partition ${this.partition}: ${why}`);
      }
    }
    return this.matchedSeq;
  }

  /** Until when this member must not serve after an unreleased assignment; 0 when the lease was its own. */
  leaseGrantedUntilMs(self: Member): number {
    return this.grantedTo === null || sameMember(this.grantedTo, self) ? 0 : this.grantedUntilMs;
  }

  onPossessionQuery(from: Member, message: PossessionQueryMessage): void {
    if (!this.hears(from, message.term)) return;
    const { last } = this.log;
    this.host.send(from, {
      kind: 'possession-answer',
      partition: this.partition,
      term: message.term,
      lastTerm: last.term,
      lastSeq: last.seq,
      keyCount: this.store.keyCount,
    });
  }

  onTailQuery(from: Member, message: TailQueryMessage): void {
    if (!this.hears(from, message.term)) return;
    if (this.log.termAt(message.afterSeq) !== message.afterTerm) return;
    const { appendEntries, appendBytes } = this.host.timings;
    const entries = this.log.slice(message.afterSeq, appendEntries, appendBytes);
    const end = entries.at(-1)?.seq ?? message.afterSeq;
    this.host.send(from, {
      kind: 'tail-answer',
      partition: this.partition,
      term: message.term,
      afterSeq: message.afterSeq,
      afterTerm: message.afterTerm,
      entries,
      more: end < this.log.last.seq,
    });
  }

  onSnapshotChunk(from: Member, message: SnapshotChunkMessage, nowMs: number): void {
    if (!this.adoptDataLoss(message.dataLossNumber) || !this.hears(from, message.term)) return;
    const known = this.staging;
    if (known === null || known.snapshotId !== message.snapshotId || known.term !== message.term) {
      if (message.seq <= this.commitSeq || message.seq <= this.matchedSeq) {
        // Late, or its last acknowledgement was lost: what it holds is here already.
        this.acknowledgeChunk(from, message, message.index + 1);
        return;
      }
      // Entries above the snapshot may be acknowledged ones that count this member as a holder: they stay.
      if (this.isCounted && this.log.last.seq > message.seq) return;
      if (message.index !== 0) {
        this.acknowledgeChunk(from, message, 0);
        return;
      }
      this.staging = {
        term: message.term,
        snapshotId: message.snapshotId,
        from,
        store: PartitionStore.startingAt({ term: message.seqTerm, seq: message.seq }),
        nextIndex: 0,
      };
    }
    const staging = this.staging;
    assert(staging !== null, 'a snapshot is being staged');
    if (message.index === staging.nextIndex) {
      staging.store.restoreItems(message.items, message.clients, nowMs);
      staging.nextIndex += 1;
      if (message.last) this.install(message, staging);
    }
    this.acknowledgeChunk(from, message, staging.nextIndex);
  }

  private acknowledgeChunk(to: Member, message: SnapshotChunkMessage, nextIndex: number): void {
    const { snapshotId, term } = message;
    this.host.send(to, { kind: 'snapshot-ack', partition: this.partition, term, snapshotId, nextIndex });
  }

  /** In a committed set, as far as applied here: what this log holds may be what makes an acknowledgement true. */
  private get isCounted(): boolean {
    const { inSync, eligible } = this.host.runtime(this.partition);
    return hasMember(inSync, this.host.self) || hasMember(eligible, this.host.self);
  }

  /** Only a complete snapshot replaces anything: a half one is dropped with its staging area. */
  private install(message: SnapshotChunkMessage, staging: Staging): void {
    if (message.seq <= this.matchedSeq || (this.isCounted && this.log.last.seq > message.seq)) {
      // The log overtook it meanwhile.
      this.staging = null;
      return;
    }
    if (message.seq < this.commitSeq)
      this.host.invariant(false, `partition ${this.partition}: the commit index goes back by a snapshot`);
    this.log = new PartitionLog({ term: message.seqTerm, seq: message.seq });
    this.store = staging.store;
    this.commitSeq = message.seq;
    this.matchedSeq = message.seq;
    this.staging = null;
    this.host.notice('info', 'snapshot-installed', {
      partition: this.partition,
      from: memberName(staging.from),
      seq: message.seq,
      keys: this.store.keyCount,
    });
  }

  /** Forgets applied entries beyond what is kept for others, down to `heldFrom` at most. */
  trim(heldFrom: Seq): void {
    const { logKeepEntries, logKeepBytes, logBoundEntries } = this.host.timings;
    if (this.log.length <= logKeepEntries && this.log.bytes <= logKeepBytes) return;
    const { lastSeq } = this.log;
    const wanted = this.log.bytes > logKeepBytes ? lastSeq - Math.floor(logKeepEntries / 8) : lastSeq - logKeepEntries;
    const held = this.log.length > logBoundEntries ? wanted : Math.min(wanted, heldFrom);
    const upTo = Math.min(held, this.commitSeq);
    if (upTo > this.log.baseVersion.seq) this.log.trimTo(asSeq(upTo));
  }
}
