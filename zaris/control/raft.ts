/**
 * Raft for one voter of the control plane: events in, one {@link RaftReady} out; no clock, no I/O, all chance from the seed.
 *
 * Invariants: raftTerm never decreases; at most one vote per raftTerm and disk, written before it is answered; only an entry of the
 * leader's own raftTerm is committed by counting copies. A node without a log neither votes nor campaigns: it waits for a leader that
 * knows its disk. Why a change of voters is one entry: see raft-config.
 * Worst outcome if wrong: two histories of the cluster, and writes acknowledged in the one that loses.
 * Source: Ongaro, "Consensus: bridging theory and practice" (2014); pre-vote and check-quorum §9.6 and §6.2.
 */
import { assert, unreachable } from '../../lib/assert.ts';
import type { NodeId } from '../model/ids.ts';
import type {
  DiskState,
  RaftAccepted,
  RaftAppend,
  RaftConfig,
  RaftInstall,
  RaftMessage,
  RaftRejected,
  RaftStale,
  RaftVoteAnswer,
  RaftVoteRequest,
  Voter,
} from '../model/raft-wire.ts';
import { Ballot, isAsked } from './raft-ballot.ts';
import { changedConfig, hasVoter, sameVoter, voterKey } from './raft-config.ts';
import type { ConfigChange } from './raft-config.ts';
import { Leadership } from './raft-leadership.ts';
import { electionWaits, maxUncommittedEntries, withRaftDefaults } from './raft-options.ts';
import type { Appearance, Proposed, RaftOptions, RaftRole } from './raft-options.ts';
import { RaftOutput } from './raft-output.ts';
import type { RaftReady, Unaddressed } from './raft-output.ts';
import { Replicator } from './raft-replicator.ts';
import type { PeerProgress } from './raft-replicator.ts';
import { RaftStore } from './raft-store.ts';
import type { NewEntry } from './raft-store.ts';

export class Raft {
  readonly self: Voter;
  private readonly options: Required<RaftOptions>;
  private readonly output: RaftOutput;
  private readonly store: RaftStore;

  private currentRole: RaftRole = 'follower';
  private currentTerm: number;
  private votedFor: NodeId | null;
  private leaderVoter: Voter | null = null;
  private leadership: Leadership | null = null;
  private ballot: Ballot | null = null;
  private lostReads: number[] = [];
  /** {@link appearance} as of the last ready. */
  private shown: Appearance;

  /** Whether this voter is among those who elect, worked out once for each set of groups: it is asked after every event. */
  private asked: { readonly groups: readonly (readonly Voter[])[]; readonly isSelf: boolean } = {
    groups: [],
    isSelf: false,
  };

  private nowMs = 0;
  private electionAtMs = Infinity;
  private leaderHeardMs = -Infinity;

  /** `disk` is what was found at start; it is empty or bears `self.diskId`. */
  constructor(options: RaftOptions, disk: DiskState) {
    assert(disk.diskId === null || disk.diskId === options.self.diskId, 'the disk found bears another diskId');
    this.self = options.self;
    this.options = withRaftDefaults(options);
    this.output = new RaftOutput((disk.snapshot?.index ?? 0) + disk.entries.length);
    this.store = new RaftStore(disk, this.output);
    if (disk.diskId === null) this.output.write({ kind: 'identity', diskId: options.self.diskId });
    this.currentTerm = disk.raftTerm;
    this.votedFor = disk.votedFor;
    this.shown = this.appearance;
  }

  get role(): RaftRole {
    return this.currentRole;
  }
  get raftTerm(): number {
    return this.currentTerm;
  }
  get leader(): NodeId | null {
    return this.leaderVoter?.nodeId ?? null;
  }
  get commitIndex(): number {
    return this.store.commitIndex;
  }
  get lastIndex(): number {
    return this.store.log.lastIndex;
  }
  /** The latest config in the log, committed or not. */
  get config(): RaftConfig {
    return this.store.log.config;
  }
  /** The last config that is known to be committed: what a majority is made of, whatever is proposed. */
  get committedConfig(): RaftConfig {
    return this.store.log.committedConfig(this.commitIndex);
  }
  /** No change of voters is under way: none that is not known to be committed, and none that is not settled (see raft-config). */
  get isConfigSettled(): boolean {
    const { log } = this.store;
    return log.configIndex <= this.commitIndex && !log.votersChanged;
  }
  /** Entries held in memory. */
  get logLength(): number {
    return this.store.log.length;
  }
  /** Leader, and what was committed before it is known to be. */
  get isReadyLeader(): boolean {
    return this.leadership !== null && this.store.log.raftTermAt(this.commitIndex) === this.currentTerm;
  }
  /** Until when a majority, this node with it, is known to have been heard; -Infinity when not leader. */
  quorumHeardMs(nowMs: number): number {
    return this.leadership?.quorumHeardMs(this.store.groups, nowMs) ?? -Infinity;
  }
  /** So many entries were given out since the last snapshot that `compact` should be called. */
  get compactionDue(): boolean {
    return this.store.handedIndex - this.store.log.baseIndex >= this.options.snapshotEvery;
  }
  /** How far each other member is; empty when not leader. */
  get progress(): readonly PeerProgress[] {
    return this.leadership?.replicator.progress ?? [];
  }
  /** When `tick` is due; Infinity where only a message can change anything. Read it after `takeReady`. */
  get nextDeadlineMs(): number {
    if (this.leadership !== null) return this.leadership.nextHeartbeatMs;
    return this.mayCampaign ? this.electionAtMs : Infinity;
  }

  private get mayCampaign(): boolean {
    if (this.lastIndex === 0) return false;
    const { groups } = this.store;
    if (this.asked.groups !== groups) this.asked = { groups, isSelf: isAsked(groups, this.self) };
    return this.asked.isSelf;
  }
  private get appearance(): Appearance {
    return { role: this.currentRole, leader: this.leader, isReady: this.isReadyLeader };
  }

  /** First call of a process; on an empty disk it only makes the identity durable. */
  start(nowMs: number): void {
    this.nowMs = nowMs;
    this.awaitElection('follower');
  }

  /** After `start`, on an empty log, once in the life of a cluster: makes this node its only voter and its leader. */
  bootstrap(nowMs: number): void {
    assert(this.lastIndex === 0 && this.currentTerm === 0, 'bootstrap of a node that belongs to a cluster');
    this.nowMs = nowMs;
    this.adoptTerm(1, this.self.nodeId);
    this.lead({ kind: 'config', config: { voters: [this.self], learners: [] } });
  }

  /** Time passed; harmless when early. */
  tick(nowMs: number): void {
    this.nowMs = nowMs;
    if (this.leadership !== null) {
      if (nowMs < this.leadership.nextHeartbeatMs) return;
      this.leadership.nextHeartbeatMs = nowMs + this.options.heartbeatMs;
      this.leadership.replicator.heartbeat();
      if (this.quorumHeardMs(nowMs) <= nowMs - this.options.electionTimeoutMs) this.follow(null);
    } else if (nowMs >= this.electionAtMs) {
      if (this.mayCampaign) this.preCampaign();
      else this.awaitElection('follower');
    }
  }

  /** The connection to `nodeId` was closed. If that was the leader, it is no longer waited for. */
  linkDown(nodeId: NodeId, nowMs: number): void {
    this.nowMs = nowMs;
    this.leadership?.replicator.linkDown(nodeId);
    if (this.leadership !== null || this.leader !== nodeId) return;
    this.leaderHeardMs = -Infinity;
    this.awaitElection('hastened');
  }

  linkUp(nodeId: NodeId, nowMs: number): void {
    this.nowMs = nowMs;
    this.leadership?.replicator.linkUp(nodeId);
  }

  /** Null when not leader, or when {@link maxUncommittedEntries} wait. */
  propose(command: unknown, nowMs: number): Proposed | null {
    this.nowMs = nowMs;
    if (this.leadership === null || this.lastIndex - this.commitIndex >= maxUncommittedEntries) return null;
    return this.append({ kind: 'command', command });
  }

  /**
   * Null when not leader, before an entry of the own raftTerm is committed, while another change is not committed and settled (see
   * raft-config), or where the change makes no sense for the present config or is already made.
   */
  proposeConfig(change: ConfigChange, nowMs: number): Proposed | null {
    this.nowMs = nowMs;
    if (!this.isReadyLeader || this.store.log.configIndex > this.commitIndex) return null;
    const config = changedConfig(this.config, change);
    return config === null ? null : this.append({ kind: 'config', config });
  }

  /**
   * Asks for {context, index} in `reads` once a quorum has confirmed, after this call, that this node leads; or for the context in
   * `lostReads`. False when not leader or when too many reads wait.
   */
  requestRead(context: number, nowMs: number): boolean {
    this.nowMs = nowMs;
    return this.leadership?.reads.add(context) ?? false;
  }

  /** The writes of `ticket` are durable. */
  persisted(ticket: number, nowMs: number): void {
    this.nowMs = nowMs;
    this.output.persisted(ticket);
    this.advanceCommit();
  }

  /** `state` is the state machine as of `index`, which was given out in `committed`; the log up to it is dropped. */
  compact(index: number, state: unknown): void {
    this.store.compact(index, state);
  }

  receive(from: NodeId, message: RaftMessage, nowMs: number): void {
    this.nowMs = nowMs;
    if (message.sender.nodeId !== from || !sameVoter(message.receiver, this.self)) return;
    switch (message.kind) {
      case 'preVote':
        return this.answerPreVote(message);
      case 'vote':
        return this.answerVote(message);
      case 'preVoteAnswer':
      case 'voteAnswer':
        return this.countVote(message);
      case 'append':
      case 'install':
        return this.followThe(message);
      case 'accepted':
      case 'rejected':
      case 'stale':
        return this.countCopy(message);
      default:
        unreachable(message);
    }
  }

  /** Everything since the last call; see {@link RaftReady} for the caller's duty. */
  takeReady(): RaftReady {
    const reads = this.leadership?.serve(this.store, this.nowMs, this.isReadyLeader) ?? [];
    const { lostReads, shown, currentRole, leader, isReadyLeader } = this;
    const roleChange = shown.role !== currentRole || shown.leader !== leader || shown.isReady !== isReadyLeader;
    if (roleChange) this.shown = this.appearance;
    if (lostReads.length > 0) this.lostReads = [];
    const { persist, messages } = this.output.take(this.lastIndex);
    const { snapshot, committed } = this.store.takeCommitted();
    return { persist, messages, snapshot, committed, reads, lostReads, roleChange };
  }

  // Elections.

  /** A leader is there, as far as this node can tell: nobody needs a vote. */
  private get leaderIsFresh(): boolean {
    return this.leadership !== null || this.nowMs - this.leaderHeardMs < this.options.electionTimeoutMs;
  }

  private awaitElection(wait: keyof typeof electionWaits): void {
    const { low, high } = electionWaits[wait];
    const { electionTimeoutMs, random } = this.options;
    this.electionAtMs = this.nowMs + Math.round(electionTimeoutMs * (low + random.float() * (high - low)));
  }

  private adoptTerm(raftTerm: number, votedFor: NodeId | null): void {
    assert(raftTerm >= this.currentTerm, 'raftTerm never decreases');
    assert(raftTerm > this.currentTerm || this.votedFor === null, 'one vote in a raftTerm');
    this.currentTerm = raftTerm;
    this.votedFor = votedFor;
    this.output.write({ kind: 'vote', raftTerm, votedFor });
  }

  /** Becomes a follower, in a later raftTerm where one is given. */
  private follow(leader: Voter | null, raftTerm = this.currentTerm): void {
    if (raftTerm !== this.currentTerm) this.adoptTerm(raftTerm, null);
    if (this.leadership !== null) this.lostReads.push(...this.leadership.reads.takeAll());
    this.leadership = null;
    this.ballot = null;
    this.currentRole = 'follower';
    this.leaderVoter = leader;
    this.leaderHeardMs = leader === null ? -Infinity : this.nowMs;
    this.awaitElection('follower');
  }

  private preCampaign(): void {
    this.currentRole = 'preCandidate';
    this.leaderVoter = null;
    this.awaitElection('preCandidate');
    this.solicit('preVote', this.currentTerm + 1);
  }

  private solicit(kind: 'preVote' | 'vote', raftTerm: number): void {
    this.ballot = new Ballot(kind, raftTerm, this.self);
    const voters = new Map(this.store.groups.flat().map((voter) => [voterKey(voter), voter]));
    const { lastIndex, lastRaftTerm } = this.store.log;
    for (const voter of voters.values()) {
      if (!sameVoter(voter, this.self)) this.send(voter, { kind, lastIndex, lastRaftTerm }, raftTerm);
    }
    this.goOnIfWon(this.ballot);
  }

  private goOnIfWon(ballot: Ballot): void {
    if (!ballot.isWon(this.store.groups)) return;
    if (ballot.kind === 'vote') return this.lead({ kind: 'noop' });
    this.currentRole = 'candidate';
    this.adoptTerm(ballot.raftTerm, this.self.nodeId);
    this.awaitElection('candidate');
    this.solicit('vote', this.currentTerm);
  }

  private answerPreVote({ sender, raftTerm, lastRaftTerm, lastIndex }: RaftVoteRequest): void {
    if (this.lastIndex === 0) return;
    const covered = this.store.log.isCoveredBy(lastRaftTerm, lastIndex);
    const granted = raftTerm > this.currentTerm && !this.leaderIsFresh && covered;
    this.answer(sender, 'preVoteAnswer', granted, granted ? raftTerm : this.currentTerm);
  }

  /** Also a node that does not know (yet) that it is a voter answers: the candidate counts only voters of its configs. */
  private answerVote({ sender, raftTerm, lastRaftTerm, lastIndex }: RaftVoteRequest): void {
    if (this.lastIndex === 0 || this.leaderIsFresh) return;
    if (raftTerm > this.currentTerm) this.follow(null, raftTerm);
    const mayVote = raftTerm === this.currentTerm && this.leaderVoter === null;
    const free = this.votedFor === null || this.votedFor === sender.nodeId;
    const granted = mayVote && free && this.store.log.isCoveredBy(lastRaftTerm, lastIndex);
    if (granted && this.votedFor === null) this.adoptTerm(raftTerm, sender.nodeId);
    if (granted) this.awaitElection('follower');
    this.answer(sender, 'voteAnswer', granted);
  }

  private answer(to: Voter, kind: RaftVoteAnswer['kind'], granted: boolean, raftTerm = this.currentTerm): void {
    this.send(to, { kind, granted, ...this.store.commitPoint }, raftTerm);
  }

  private countVote(answer: RaftVoteAnswer): void {
    if (!isAsked(this.store.groups, answer.sender)) return;
    this.store.learnCommitted(answer.commitIndex, answer.commitRaftTerm);
    if (!answer.granted && answer.raftTerm > this.currentTerm) return this.follow(null, answer.raftTerm);
    if (!this.ballot?.count(answer)) return;
    if (answer.granted) this.goOnIfWon(this.ballot);
    else if (this.ballot.isContested(this.store.groups)) this.awaitElection('hastened');
  }

  // Leading.

  private lead(first: NewEntry): void {
    this.ballot = null;
    this.currentRole = 'leader';
    this.leaderVoter = this.self;
    const { heartbeatMs, electionTimeoutMs, maxEntriesPerMessage, maxInflight } = this.options;
    const limits = { maxEntriesPerMessage, maxInflight, installResendMs: 2 * electionTimeoutMs };
    const replicator = new Replicator(this.self, this.store, limits, (to, body) => this.send(to, body));
    this.leadership = new Leadership(this.self, replicator, this.nowMs + heartbeatMs);
    this.followMembers(replicator);
    this.append(first);
    if (first.kind === 'noop' && this.store.needsSettling) this.append({ kind: 'config', config: this.config });
  }

  private append(body: NewEntry): Proposed {
    assert(this.leadership !== null, 'only a leader appends');
    const at = this.store.append(body, this.currentTerm);
    if (at.kind === 'config') this.followMembers(this.leadership.replicator);
    return { index: at.index, raftTerm: at.raftTerm };
  }

  /** Replicates to all members; voters of an old config stay until the new one is committed. */
  private followMembers(replicator: Replicator): void {
    replicator.setMembers([...this.store.groups.flat(), ...this.config.learners], this.nowMs);
  }

  private countCopy(message: RaftAccepted | RaftRejected | RaftStale): void {
    const replicator = this.leadership?.replicator;
    if (replicator === undefined || !replicator.knows(message.sender)) return;
    if (message.raftTerm > this.currentTerm) return this.follow(null, message.raftTerm);
    if (message.raftTerm < this.currentTerm) return;
    if (message.kind === 'accepted') replicator.accepted(message, this.nowMs);
    else if (message.kind === 'rejected') replicator.rejected(message, this.nowMs);
    this.advanceCommit();
  }

  /** Commits what can be, then finishes a change of voters: settles it, or resigns where the leader itself was removed. */
  private advanceCommit(): void {
    if (this.leadership === null) return;
    const { replicator } = this.leadership;
    const advanced = this.store.commitByCopies(this.currentTerm, (voter) =>
      sameVoter(voter, this.self) ? this.output.durableIndex : replicator.matchIndexOf(voter),
    );
    const { log } = this.store;
    if (!advanced || log.configIndex > this.commitIndex) return;
    this.followMembers(replicator);
    if (log.votersChanged) {
      this.append({ kind: 'config', config: log.config });
    } else if (!hasVoter(log.config.voters, this.self)) {
      replicator.pump(this.nowMs);
      this.follow(null);
    }
  }

  private followThe(message: RaftAppend | RaftInstall): void {
    const { sender, raftTerm, round } = message;
    if (raftTerm < this.currentTerm) return this.send(sender, { kind: 'stale' });
    if (raftTerm > this.currentTerm || this.leaderVoter === null) this.follow(sender, raftTerm);
    assert(this.leaderVoter !== null && sameVoter(this.leaderVoter, sender), 'one leader in a raftTerm');
    this.leaderHeardMs = this.nowMs;
    this.awaitElection('follower');
    if (message.kind === 'append') this.send(sender, { ...this.store.appendFrom(message), round });
    else this.send(sender, { kind: 'accepted', matchIndex: this.store.install(message.snapshot), round });
  }

  private send(to: Voter, body: Unaddressed<RaftMessage>, raftTerm = this.currentTerm): void {
    this.output.send({ ...body, sender: this.self, receiver: to, raftTerm });
  }
}
