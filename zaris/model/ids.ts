/**
 * Identities and counters of the protocol, branded so that one is never passed for another.
 *
 * A member is (nodeId, incarnation): a restarted process is a new member, since its memory is empty. Everything that
 * counts copies counts members, never node names; confusing the two loses writes (DESIGN §4, Incarnations).
 */

declare const brand: unique symbol;
type Branded<T, B extends string> = T & { readonly [brand]: B };

/** Stable name of a node, such as "n1". */
export type NodeId = Branded<string, 'NodeId'>;
/** One start of a node's process, given out by the control plane when it registers; 1, 2, 3 … per node. */
export type Incarnation = Branded<number, 'Incarnation'>;
/** +1 on every edge of a partition's runtime. */
export type Epoch = Branded<number, 'Epoch'>;
/** The epoch at the last primary assignment of a partition; fences its replication. */
export type Term = Branded<number, 'Term'>;
/** Position in a partition's log; 1 is the first entry. */
export type Seq = Branded<number, 'Seq'>;
/** Index of a partition, 0-based. */
export type PartitionId = Branded<number, 'PartitionId'>;

export const nodeId = (value: string): NodeId => value as NodeId;
export const incarnation = (value: number): Incarnation => value as Incarnation;
export const epoch = (value: number): Epoch => value as Epoch;
export const term = (value: number): Term => value as Term;
export const seq = (value: number): Seq => value as Seq;
export const partitionId = (value: number): PartitionId => value as PartitionId;

/** One start of one node. */
export interface Member {
  readonly nodeId: NodeId;
  readonly incarnation: Incarnation;
}

export const sameMember = (a: Member, b: Member): boolean => a.nodeId === b.nodeId && a.incarnation === b.incarnation;

export const hasMember = (members: readonly Member[], member: Member): boolean =>
  members.some((other) => sameMember(other, member));

export const withoutMember = (members: readonly Member[], member: Member): Member[] =>
  members.filter((other) => !sameMember(other, member));

/** "n1#3", for logs and reports. */
export const memberName = (member: Member): string => `${member.nodeId}#${member.incarnation}`;

/** Version of a value: (term, seq) of the log entry that wrote it; strictly increasing per key, never reused. */
export interface Version {
  readonly term: Term;
  readonly seq: Seq;
}

/** Negative, zero or positive as `a` is older than, equal to or newer than `b`. */
export function compareVersions(a: Version, b: Version): number {
  return a.term - b.term || a.seq - b.seq;
}
