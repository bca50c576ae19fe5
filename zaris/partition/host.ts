/**
 * What a partition's replica needs from the node around it. Everything it does to the world goes through here, in order.
 */
import type { PartitionCommand, Placement } from '../control/commands.ts';
import type { PartitionRuntime } from '../control/state.ts';
import type { Answer } from '../model/client-wire.ts';
import type { Member, NodeId, PartitionId } from '../model/ids.ts';
import type { DataMessage } from '../model/peer-wire.ts';
import type { ProtocolRules } from './rules.ts';
import type { Timings } from './timings.ts';

/** A data message without its ends; the host fills in both incarnations. */
export type Outgoing = DataMessage extends infer M ? (M extends DataMessage ? Omit<M, 'from' | 'to'> : never) : never;

export interface ReplicaHost {
  readonly self: Member;
  readonly rules: ProtocolRules;
  readonly timings: Timings;
  readonly minInSync: number;
  send(to: Member, message: Outgoing): void;
  reply(connection: number, answer: Answer): void;
  /** Asks the control leader; each command compares its epoch, so repeats are harmless. */
  propose(command: PartitionCommand): void;
  notice(
    level: 'debug' | 'info' | 'warn' | 'error',
    name: string,
    fields: Record<string, string | number | boolean | null>,
  ): void;
  /** A broken invariant: stops the node (in builds that test the verifier: does nothing). */
  invariant(condition: boolean, why: string): void;
  /** Committed runtime as applied on this node. */
  runtime(partition: PartitionId): Readonly<PartitionRuntime>;
  placement(partition: PartitionId): Placement;
  current(nodeId: NodeId): Member | null;
  isCurrent(member: Member): boolean;
  isAlive(member: Member): boolean;
  /** Neither draining nor leaving. */
  mayLead(member: Member): boolean;
  /** True while this member is draining its primaries. */
  readonly draining: boolean;
  /** Contact with the control leader is recent enough to go on as a primary. */
  sessionHeld(nowMs: number): boolean;
  /** One more handoff may start on this node now. */
  handoffSlot(): boolean;
}
