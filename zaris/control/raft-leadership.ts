/**
 * What exists only while a node leads: the state of its peers, the reads that wait, the next heartbeat.
 *
 * Invariant: a new one for every raftTerm led, so nothing that was counted in one leadership counts in another.
 * Worst outcome if wrong: an acknowledgement of an older raftTerm commits an entry of this one.
 */
import type { Voter } from '../model/raft-wire.ts';
import { everyMajority, majorityIndex, sameVoter } from './raft-config.ts';
import { ReadQueue } from './raft-reads.ts';
import type { ConfirmedRead } from './raft-reads.ts';
import type { Replicator } from './raft-replicator.ts';
import type { RaftStore } from './raft-store.ts';

type Groups = readonly (readonly Voter[])[];

export class Leadership {
  readonly replicator: Replicator;
  readonly reads = new ReadQueue();
  private readonly self: Voter;
  nextHeartbeatMs: number;

  constructor(self: Voter, replicator: Replicator, nextHeartbeatMs: number) {
    this.self = self;
    this.replicator = replicator;
    this.nextHeartbeatMs = nextHeartbeatMs;
  }

  /** Until when quorums of all groups, this node included, are known to have been heard. */
  quorumHeardMs(groups: Groups, nowMs: number): number {
    return majorityIndex(groups, (voter) => (sameVoter(voter, this.self) ? nowMs : this.replicator.heardMsOf(voter)));
  }

  /** Sends what is due and returns the reads that are confirmed. `canServe`: an entry of this raftTerm is committed. */
  serve(store: RaftStore, nowMs: number, canServe: boolean): ConfirmedRead[] {
    if (this.reads.hasFresh && canServe) this.reads.begin(++this.replicator.round, store.commitIndex);
    this.replicator.pump(nowMs);
    return this.reads.takeConfirmed((round) =>
      this.isQuorum(store.groups, (voter) => this.replicator.ackedRoundOf(voter) >= round),
    );
  }

  private isQuorum(groups: Groups, holds: (voter: Voter) => boolean): boolean {
    return everyMajority(groups, (voter) => sameVoter(voter, this.self) || holds(voter));
  }
}
