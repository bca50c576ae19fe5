/**
 * The port between workloads and any store: operations in, completions out.
 *
 * A completion is `ok` (took effect, acknowledged), `fail` (definitely had no effect) or `info` (unknown). A client that
 * is not sure answers `info`; an `info` reported as `fail` makes every later verdict a lie.
 */

/** Order of a key's values where the store gives one: Zaris (term, seq), etcd (0, revision). Compared lexicographically. */
export type Version = readonly [major: number, minor: number];

export const compareVersions = (a: Version, b: Version): number => a[0] - b[0] || a[1] - b[1];

/** One call of a client. Values are text. `key` is text. */
export type Operation =
  | { readonly f: 'read'; readonly key: string }
  /** Unconditional write. A workload of unique keys uses it once per key. */
  | { readonly f: 'write'; readonly key: string; readonly value: string; readonly ttlMs?: number }
  /** Write only when the key is absent. */
  | { readonly f: 'create'; readonly key: string; readonly value: string }
  /** Write only when the current version is `expected`. */
  | { readonly f: 'cas'; readonly key: string; readonly value: string; readonly expected: Version }
  | { readonly f: 'delete'; readonly key: string; readonly expected?: Version }
  /** Counter; an absent key counts as 0. */
  | { readonly f: 'add'; readonly key: string; readonly delta: number };

export type OperationKind = Operation['f'];

/** What is known of who answered; all optional, for reports. */
export interface Served {
  readonly partition?: number;
  readonly epoch?: number;
  readonly node?: string;
  /** Attempts that the client made inside, at least 1. */
  readonly attempts?: number;
}

export type Completion =
  | (Served & {
      readonly kind: 'ok';
      /** read: the value, null when absent. add: the new sum as text. Others: absent. */
      readonly value?: string | null;
      /** The version written, or read; null or absent where there is none. */
      readonly version?: Version | null;
    })
  | (Served & {
      readonly kind: 'fail';
      /** `condition`: the condition did not hold (an observation where `version` stands beside it). `refused`: not run. */
      readonly why: 'condition' | 'refused' | 'invalid';
      readonly error: string;
      readonly version?: Version | null;
    })
  | (Served & { readonly kind: 'info'; readonly error: string });

/** One logical client of the store; one operation at a time is the caller's duty. */
export interface StoreClient {
  /** Never rejects: what goes wrong is a completion. */
  execute(operation: Operation): Promise<Completion>;
  close(): Promise<void>;
}

/** A seeded generator of operations for many sessions. Synchronous; `completed` follows each `next` of a session. */
export interface Workload {
  readonly name: string;
  /** The next operation of this session, or null when it has none now. `operationId` is unique in the run. */
  next(session: number, operationId: number): Operation | null;
  completed(session: number, operationId: number, operation: Operation, completion: Completion): void;
}
