/**
 * Statuses of an answer (DESIGN §4, Statuses). Transient ones are refusals: `outcome` says whether the refused
 * operation certainly did not run. Taking an `Unknown` for a `NotExecuted` would turn a write in doubt into a "failed" one.
 */

export const finalStatuses = ['Ok', 'NotFound', 'Conflict', 'InvalidInput', 'Lost', 'Unauthorized'] as const;
export const transientStatuses = [
  'Moved',
  'OwnershipChanging',
  'ReplicaWriteRejected',
  'Migrating',
  'Unavailable',
] as const;

/** Answers that settle an operation. `Lost`: every copy of the partition is gone. */
export type FinalStatus = (typeof finalStatuses)[number];
/** Refusals worth another attempt. */
export type TransientStatus = (typeof transientStatuses)[number];
export type Status = FinalStatus | TransientStatus;

/** What a refusal says about the operation it refuses. */
export type Outcome = 'NotExecuted' | 'Unknown';

export const isTransient = (status: Status): status is TransientStatus =>
  (transientStatuses as readonly string[]).includes(status);
