/**
 * Times and bounds of the data plane. None of them decides whether a write is kept; they decide how soon something happens.
 * The lease pair is the exception: `leaseMs` counts at the holder from its send, the grantor waits `leaseMs` times
 * (1 + `clockDrift`) from its receipt, which is later.
 */
export interface Timings {
  /** A primary's beat to every holder of its partitions. */
  readonly beatMs: number;
  readonly leaseMs: number;
  /** Relative drift allowed between two monotonic clocks. */
  readonly clockDrift: number;
  /** Without an acknowledgement for this long a replica is proposed to leave the in-sync set. */
  readonly silentReplicaMs: number;
  /** An unanswered append is sent again after this. */
  readonly resendMs: number;
  /** A new primary waits this long for possession answers of members that do not answer. */
  readonly possessionMs: number;
  /** A more complete source that does not answer is given up after this. */
  readonly sourceMs: number;
  /** A proposal to the control leader is repeated after this. */
  readonly reproposeMs: number;
  /** A read that waited this long for the lease asks the control plane instead. */
  readonly confirmAfterMs: number;
  /** A parked request is refused after this. */
  readonly parkMs: number;
  /** A handoff's drain is given up after this. */
  readonly drainMs: number;
  /** In sync and healthy for this long before a preferred primary gets its partition back. */
  readonly holdDownMs: number;
  /** Idle exactly-once records go after this; servers close connections silent for half of it. */
  readonly clientIdleMs: number;
  /** Tombstone of nothing: how often a primary looks for expired keys and idle clients. */
  readonly sweepMs: number;
  readonly logKeepEntries: number;
  readonly logKeepBytes: number;
  /** Hard bound on entries kept for a learner that is far behind; past it the learner starts again. */
  readonly logBoundEntries: number;
  readonly appendEntries: number;
  readonly appendBytes: number;
  /** Unacknowledged entries in flight to one follower. */
  readonly windowEntries: number;
  readonly snapshotItems: number;
  readonly snapshotBytes: number;
  /** Uncommitted entries a primary holds before it refuses new writes. */
  readonly pendingEntries: number;
  readonly parkedRequests: number;
}

export const defaultTimings: Timings = {
  beatMs: 80,
  leaseMs: 320,
  clockDrift: 0.05,
  silentReplicaMs: 1_000,
  resendMs: 250,
  possessionMs: 300,
  sourceMs: 1_000,
  reproposeMs: 250,
  confirmAfterMs: 60,
  parkMs: 5_000,
  drainMs: 1_000,
  holdDownMs: 2_000,
  clientIdleMs: 15 * 60_000,
  sweepMs: 100,
  logKeepEntries: 4_096,
  logKeepBytes: 8 * 1024 * 1024,
  logBoundEntries: 50_000,
  appendEntries: 512,
  appendBytes: 256 * 1024,
  windowEntries: 4_096,
  snapshotItems: 1_024,
  snapshotBytes: 256 * 1024,
  pendingEntries: 20_000,
  parkedRequests: 2_000,
};
