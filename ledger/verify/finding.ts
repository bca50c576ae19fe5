/**
 * What a checker reports, in the words of DESIGN §2, and the way it reports: an index into a history, never a sentence alone,
 * so that a report can show the operation, the reads around it and the replicas.
 */

/** `unknown` is a key that no checker could decide; never a pass. */
export const findingKinds = [
  'lost',
  'stale',
  'resurrected',
  'phantom',
  'duplicated',
  'diverged',
  'corrupt',
  'non-monotone',
  'not-linearizable',
  'ttl',
  'fencing',
  'client-promise',
  'unknown',
] as const;
export type FindingKind = (typeof findingKinds)[number];

/** Which rule failed; stable names, for tests, groups and baselines. */
export type FindingRule =
  | 'interval'
  | 'version-witness'
  | 'zones'
  | 'failed-write-read'
  | 'unwritten-value'
  | 'read-before-write'
  | 'checksum'
  | 'list-content'
  | 'two-versions'
  | 'version-reused'
  | 'cas-predecessor'
  | 'condition-refused'
  | 'created-twice'
  | 'ttl-early'
  | 'ttl-late'
  | 'counter-sum'
  | 'replica'
  | 'two-primaries'
  | 'epoch-went-back'
  | 'digest'
  | 'attempts'
  | 'deadline'
  | 'search';

/** One violation inside a key's history: rows by index. */
export interface RowFinding {
  readonly kind: FindingKind;
  readonly rule: FindingRule;
  /** The operation that is lost, stale, doubled …; -1 where none can be named. */
  readonly subject: number;
  /** The row that shows it; -1 where it is the subject itself. */
  readonly witness: number;
  /** One sentence of the checker: what it expected and what it found. */
  readonly reason: string;
}

/** A read, read-back or replica's answer that bears on a finding. */
export interface Sighting {
  readonly operationId: number | null;
  readonly session: number | null;
  readonly atNs: number;
  /** Operation whose value was seen; null absent. */
  readonly observed: number | null;
  readonly number: number | null;
  readonly version: readonly [number, number] | null;
  readonly node: string | null;
  readonly epoch: number | null;
  readonly source: 'operation' | 'final' | 'retire' | 'replica';
}

export interface OperationFacts {
  readonly operationId: number;
  readonly session: number;
  readonly f: string;
  readonly outcome: 'ok' | 'fail' | 'info';
  readonly invokeNs: number;
  /** Null when it was never acknowledged. */
  readonly returnNs: number | null;
  readonly version: readonly [number, number] | null;
  readonly partition: number | null;
  readonly epoch: number | null;
  readonly node: string | null;
  readonly attempts: number;
}

export interface ReplicaFacts {
  readonly node: string;
  readonly atNs: number;
  readonly answer: 'has-it' | 'absent' | 'older' | 'newer' | 'other' | 'no-answer';
  readonly observed: number | null;
  readonly version: readonly [number, number] | null;
}

/** A violation with all its circumstances, ready for a report. */
export interface Finding {
  readonly kind: FindingKind;
  readonly rule: FindingRule;
  readonly reason: string;
  readonly keyId: number | null;
  readonly key: string | null;
  readonly partition: number | null;
  readonly operation: OperationFacts | null;
  readonly witness: Sighting | null;
  readonly lastSeen: Sighting | null;
  readonly firstMissed: Sighting | null;
  readonly replicas: readonly ReplicaFacts[];
  /** Faults open between the operation's invocation and its acknowledgement. */
  readonly openFaults: readonly string[];
}
