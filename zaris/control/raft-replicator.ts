/**
 * What a leader knows of each other member, and what it sends next: probing for the place where the logs part, then
 * streaming with a bounded number of unanswered messages, or the snapshot when the log no longer reaches back.
 *
 * Lives for one leadership. Invariant: `matchIndex` only ever comes from that very disk's acknowledgement in this raftTerm, and
 * never shrinks. Heartbeats carry the place that is assumed to match, so silence or loss shows as a rejection within one
 * heartbeat and restarts the probe: there is no other timer for resending.
 * Worst outcome if wrong: an entry counted on a disk that does not hold it, hence a lost commit.
 */
import { assert } from '../../lib/assert.ts';
import type { RaftAccepted, RaftAppend, RaftInstall, RaftRejected, Voter } from '../model/raft-wire.ts';
import type { NodeId } from '../model/ids.ts';
import { sameVoter, voterKey } from './raft-config.ts';
import type { RaftLog } from './raft-log.ts';
import type { Unaddressed } from './raft-output.ts';
import type { RaftStore } from './raft-store.ts';

/** What a leader sends. */
type LeaderBody = Unaddressed<RaftAppend | RaftInstall>;

/** Bounds of replication, per peer. */
export interface ReplicationLimits {
  readonly maxEntriesPerMessage: number;
  /** Messages with entries that may be unanswered at a time. */
  readonly maxInflight: number;
  /** How long a snapshot may be unanswered before it is sent again. */
  readonly installResendMs: number;
}

interface Peer {
  readonly voter: Voter;
  mode: 'probe' | 'stream' | 'install';
  matchIndex: number;
  /** First entry not sent yet; in `stream` ahead of what is acknowledged. */
  nextIndex: number;
  /** Last index of each unanswered message, oldest first. */
  inflight: number[];
  /** A probe with entries is out; only heartbeats until it is answered. */
  waiting: boolean;
  heartbeatDue: boolean;
  installSentMs: number;
  sentRound: number;
  sentCommit: number;
  ackedRound: number;
  heardMs: number;
}

/** How far a member is, for whoever decides on promotions. */
export interface PeerProgress {
  readonly voter: Voter;
  readonly matchIndex: number;
  readonly heardMs: number;
}

export class Replicator {
  private readonly self: Voter;
  private readonly store: RaftStore;
  private readonly log: RaftLog;
  private readonly limits: ReplicationLimits;
  private readonly send: (to: Voter, body: LeaderBody) => void;
  private readonly peers = new Map<string, Peer>();
  /** Latest read round begun; see raft-reads. */
  round = 0;

  constructor(self: Voter, store: RaftStore, limits: ReplicationLimits, send: (to: Voter, body: LeaderBody) => void) {
    this.self = self;
    this.store = store;
    this.log = store.log;
    this.limits = limits;
    this.send = send;
  }

  get progress(): PeerProgress[] {
    return [...this.peers.values()].map(({ voter, matchIndex, heardMs }) => ({ voter, matchIndex, heardMs }));
  }

  /** Starts following new members; those that left get a last word (what is committed) and are forgotten. */
  setMembers(members: readonly Voter[], nowMs: number): void {
    const wanted = new Map(members.filter((voter) => !sameVoter(voter, this.self)).map((v) => [voterKey(v), v]));
    for (const [key, peer] of this.peers) {
      if (wanted.has(key)) continue;
      if (peer.mode === 'stream') this.sendAppend(peer, 0);
      this.peers.delete(key);
    }
    for (const [key, voter] of wanted) {
      if (this.peers.has(key)) continue;
      this.peers.set(key, {
        voter,
        mode: 'probe',
        matchIndex: 0,
        nextIndex: this.log.lastIndex + 1,
        inflight: [],
        waiting: false,
        heartbeatDue: true,
        installSentMs: 0,
        sentRound: 0,
        sentCommit: 0,
        ackedRound: 0,
        heardMs: nowMs,
      });
    }
  }

  matchIndexOf(voter: Voter): number {
    return this.peers.get(voterKey(voter))?.matchIndex ?? 0;
  }

  ackedRoundOf(voter: Voter): number {
    return this.peers.get(voterKey(voter))?.ackedRound ?? 0;
  }

  /** When an answer of this raftTerm last came; -Infinity for a stranger. */
  heardMsOf(voter: Voter): number {
    return this.peers.get(voterKey(voter))?.heardMs ?? -Infinity;
  }

  knows(voter: Voter): boolean {
    return this.peers.has(voterKey(voter));
  }

  heartbeat(): void {
    for (const peer of this.peers.values()) peer.heartbeatDue = true;
  }

  /** The connection is gone and what was under way with it. */
  linkDown(nodeId: NodeId): void {
    for (const peer of this.peers.values()) {
      if (peer.voter.nodeId !== nodeId) continue;
      this.probeFrom(peer, peer.matchIndex + 1);
      peer.waiting = true;
    }
  }

  /** Tries at once instead of at the next heartbeat. */
  linkUp(nodeId: NodeId): void {
    for (const peer of this.peers.values()) if (peer.voter.nodeId === nodeId) peer.heartbeatDue = true;
  }

  accepted(message: RaftAccepted, nowMs: number): void {
    const peer = this.heard(message, nowMs);
    if (peer === null) return;
    assert(message.matchIndex <= this.log.lastIndex, 'a follower acknowledges what its leader does not have');
    peer.matchIndex = Math.max(peer.matchIndex, message.matchIndex);
    peer.inflight = peer.inflight.filter((index) => index > peer.matchIndex);
    if (peer.mode === 'stream') {
      peer.nextIndex = Math.max(peer.nextIndex, peer.matchIndex + 1);
    } else if (peer.mode === 'probe' || peer.matchIndex >= peer.nextIndex - 1) {
      peer.mode = 'stream';
      peer.waiting = false;
      peer.nextIndex = peer.matchIndex + 1;
    }
  }

  rejected(message: RaftRejected, nowMs: number): void {
    const peer = this.heard(message, nowMs);
    if (peer === null) return;
    switch (peer.mode) {
      case 'install':
        if (nowMs - peer.installSentMs >= this.limits.installResendMs) this.probeFrom(peer, peer.matchIndex + 1);
        return;
      case 'probe':
        if (message.prevIndex !== peer.nextIndex - 1) return;
        break;
      case 'stream':
        break;
    }
    if (message.prevIndex <= peer.matchIndex) return;
    const retry = Math.min(this.log.retryIndex(message), message.prevIndex);
    this.probeFrom(peer, Math.max(retry, peer.matchIndex + 1));
  }

  private heard(message: RaftAccepted | RaftRejected, nowMs: number): Peer | null {
    const peer = this.peers.get(voterKey(message.sender));
    if (peer === undefined) return null;
    peer.heardMs = nowMs;
    peer.ackedRound = Math.max(peer.ackedRound, message.round);
    return peer;
  }

  private probeFrom(peer: Peer, nextIndex: number): void {
    peer.mode = 'probe';
    peer.nextIndex = nextIndex;
    peer.inflight = [];
    peer.waiting = false;
  }

  /** Sends each peer whatever it may be sent now. */
  pump(nowMs: number): void {
    for (const peer of this.peers.values()) {
      if (peer.mode !== 'install' && peer.nextIndex <= this.log.baseIndex) this.sendInstall(peer, nowMs);
      if (peer.mode === 'probe' && !peer.waiting) {
        this.sendAppend(peer, this.limits.maxEntriesPerMessage);
        peer.waiting = true;
      }
      while (
        peer.mode === 'stream' &&
        peer.nextIndex <= this.log.lastIndex &&
        peer.inflight.length < this.limits.maxInflight
      ) {
        peer.nextIndex += this.sendAppend(peer, this.limits.maxEntriesPerMessage);
        peer.inflight.push(peer.nextIndex - 1);
      }
      const newsOfCommit = peer.mode === 'stream' && this.store.commitIndex > peer.sentCommit;
      if (peer.heartbeatDue || this.round > peer.sentRound || newsOfCommit) this.sendAppend(peer, 0);
    }
  }

  /** Returns the number of entries sent. */
  private sendAppend(peer: Peer, limit: number): number {
    const prevIndex = Math.max(peer.nextIndex - 1, this.log.baseIndex);
    const prevRaftTerm = this.log.raftTermAt(prevIndex);
    assert(prevRaftTerm !== null, 'the entry before what is sent is known');
    const entries = limit === 0 ? [] : this.log.slice(prevIndex + 1, limit);
    this.send(peer.voter, {
      kind: 'append',
      prevIndex,
      prevRaftTerm,
      entries,
      commitIndex: this.store.commitIndex,
      round: this.round,
    });
    peer.heartbeatDue = false;
    peer.sentRound = this.round;
    peer.sentCommit = this.store.commitIndex;
    return entries.length;
  }

  private sendInstall(peer: Peer, nowMs: number): void {
    const { snapshot } = this.store;
    assert(snapshot !== null, 'a log that starts above 1 has a snapshot below it');
    peer.mode = 'install';
    peer.inflight = [];
    peer.nextIndex = snapshot.index + 1;
    peer.installSentMs = nowMs;
    this.send(peer.voter, { kind: 'install', snapshot, round: this.round });
    peer.heartbeatDue = false;
    peer.sentRound = this.round;
  }
}
