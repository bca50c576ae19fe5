/** The shape of a verdict on a foreign history, the same for all models, so that tools can read it. */

/** A place in the file. For `chist`, lines are record numbers, counted from 1. */
export interface OperationPlace {
  readonly line: number;
  readonly completeLine: number | null;
  readonly process: string;
  readonly text: string;
}

/** Why a history is invalid: the smallest prefix that cannot be explained. */
export interface ForeignEvidence {
  /** The key, where the history has keys. */
  readonly key: string | null;
  /** The operation whose completion ends that prefix. */
  readonly operation: OperationPlace | null;
  /** Completed operations of the key in the prefix, the last one included; null where it was not worked out. */
  readonly prefixOperations: number | null;
  /** False where the budget ended the search for a smaller prefix. */
  readonly isSmallest: boolean;
  readonly reason: string;
  /** What the state could have been when the operation had to take effect. */
  readonly statesPossible: readonly string[];
  readonly isStatesComplete: boolean;
  /** Operations that together contradict each other. */
  readonly witnesses: readonly OperationPlace[];
  /** All keys that cannot be explained, the first ones by name. */
  readonly invalidKeys: number;
  readonly firstInvalidKeys: readonly string[];
}

/** A model's judgement. `keys` is 1 where there are none. */
export type Judgement =
  | { readonly verdict: 'valid'; readonly keys: number; readonly notes: Readonly<Record<string, number>> }
  | { readonly verdict: 'invalid'; readonly keys: number; readonly evidence: ForeignEvidence }
  | { readonly verdict: 'unknown'; readonly keys: number; readonly reason: string };

/** Most keys named in `firstInvalidKeys`, and most elements in a list of evidence. */
export const maxNamed = 20;
