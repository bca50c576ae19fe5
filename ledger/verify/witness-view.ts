/** What the witness of versions knows of a key, as the rules built on it need it. */
import type { KeyAnalysis } from './analysis.ts';
import type { VersionCodes } from './version-codes.ts';

/** What is known of the key at a version. */
export const stateCode = { unknown: 0, present: 1, absent: 2 } as const;

export interface WitnessView {
  readonly codes: VersionCodes;
  /** Effective mutators: code of the version that they wrote; NaN unknown. */
  readonly effect: Float64Array;
  /** Place in the sequence, in ranks × 4; NaN: none. */
  readonly position: Float64Array;
  /** Greatest position of anything that had returned when the row was invoked. */
  readonly floor: Float64Array;
  /** Number of versions of the key; the next three hold as many. */
  readonly versionCount: number;
  /** Codes of `stateCode`. */
  readonly states: Uint8Array;
  /** Row that wrote the version; -1 unknown or a delete without a known performer. */
  readonly effectRows: Int32Array;
  /** 1: an acknowledged delete reported the version. */
  readonly deleted: Uint8Array;
  /** A client's row that says: at this version there was nothing. */
  showsAbsence(analysis: KeyAnalysis, i: number): boolean;
}
