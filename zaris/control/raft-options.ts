/** What a voter is made with and asked for: settings, their defaults, the intervals drawn from them; roles and proposals. */
import type { Prng } from '../../lib/prng.ts';
import type { NodeId } from '../model/ids.ts';
import type { Voter } from '../model/raft-wire.ts';

export type RaftRole = 'follower' | 'preCandidate' | 'candidate' | 'leader';

/** What others see of a voter. */
export interface Appearance {
  readonly role: RaftRole;
  readonly leader: NodeId | null;
  readonly isReady: boolean;
}

/** Where a proposal stands; it is committed when the entry at `index` comes out of `committed` with this raftTerm. */
export interface Proposed {
  readonly index: number;
  readonly raftTerm: number;
}

export interface RaftOptions {
  /** This node with the disk it has now. */
  readonly self: Voter;
  readonly random: Prng;
  /** Silence after which a leader is taken for gone; drawn between this and twice this for each election. Default 600. */
  readonly electionTimeoutMs?: number;
  /** Default 100. */
  readonly heartbeatMs?: number;
  /** Entries given out since the last snapshot after which `compactionDue` turns true. Default 10,000. */
  readonly snapshotEvery?: number;
  /** Default 128. */
  readonly maxEntriesPerMessage?: number;
  /** Messages with entries that a follower may owe an answer for. Default 16. */
  readonly maxInflight?: number;
}

/** `given` with every default filled in. */
export function withRaftDefaults(given: RaftOptions): Required<RaftOptions> {
  return {
    self: given.self,
    random: given.random,
    electionTimeoutMs: given.electionTimeoutMs ?? 600,
    heartbeatMs: given.heartbeatMs ?? 100,
    snapshotEvery: given.snapshotEvery ?? 10_000,
    maxEntriesPerMessage: given.maxEntriesPerMessage ?? 128,
    maxInflight: given.maxInflight ?? 16,
  };
}

/** Waits, drawn between `low` and `high` election timeouts. */
export const electionWaits = {
  /** After a sign of a leader, a vote given, or a start. */
  follower: { low: 1, high: 2 },
  /** Pre-votes disturb nobody, so they are soon asked for again. */
  preCandidate: { low: 0.25, high: 0.5 },
  /** After votes that were not answered. */
  candidate: { low: 0.5, high: 1 },
  /** After the leader's connection was closed, or (pre-)votes were refused: 30 to 120 ms with the default timeout. */
  hastened: { low: 0.05, high: 0.2 },
} as const;

/** Entries a leader holds uncommitted before it refuses more. */
export const maxUncommittedEntries = 100_000;
