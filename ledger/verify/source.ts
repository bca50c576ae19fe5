/**
 * Where a judgement gets a run from: a ledger's file (ledger/reader.ts) or memory (memory-source.ts, for the simulator and
 * tests). Everything a verdict rests on goes through here, so the same judge serves both.
 */
import type { DigestRow, EpochChangeRow, FaultRow, GapRow, IncarnationRow } from '../rows.ts';
import type { KeyHistory } from './history.ts';

/** What is looked up only for the few operations that a finding names. */
export interface OperationDetails {
  readonly session: number;
  readonly attempts: number;
  readonly error: string | null;
}

export interface HistorySource {
  /** The stored settings of the run under `key`, or undefined. */
  meta(key: string): unknown;
  /** Stages of all faults in the order in which they were recorded. */
  faults(): Iterable<FaultRow>;
  epochChanges(): Iterable<EpochChangeRow>;
  incarnations(): Iterable<IncarnationRow>;
  digests(): Iterable<DigestRow>;
  gaps(): Iterable<GapRow>;
  nodeName(nodeId: number): string;
  details(operationId: number): OperationDetails | null;
  /** Largest number of attempts and longest duration (ns) of any finished operation; asked after the histories were read. */
  extremes(): { readonly attempts: number; readonly durationNs: number };
  /** Every key's history, each key once. The object is valid until the next one. */
  histories(): Iterable<KeyHistory>;
}
