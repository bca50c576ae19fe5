/**
 * How many rows of each table somebody handed to a ledger, or a ledger holds: compared, they tell that some are missing. One shape for both
 * sides; a table that only one of them counted would never be compared.
 */

/** Rows by table, as handed over; `operations` are outcomes, `intents` what was announced. */
export interface RowCounts {
  intents: number;
  operations: number;
  faults: number;
  epochChanges: number;
  finalReads: number;
  replicaReads: number;
  digests: number;
  retirements: number;
}

export const noRows = (): RowCounts => ({
  intents: 0,
  operations: 0,
  faults: 0,
  epochChanges: 0,
  finalReads: 0,
  replicaReads: 0,
  digests: 0,
  retirements: 0,
});
