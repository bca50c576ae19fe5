/** What a checker is, and what it is given: looks into every node, and one way to report. */
import type { Answer } from '../../zaris/model/client-wire.ts';
import type { NodeId, PartitionId } from '../../zaris/model/ids.ts';
import type { ControlState } from '../../zaris/control/state.ts';
import type { Effect, NodeEvent, Notice } from '../../zaris/node/contract.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { World } from '../world.ts';
import type { SimNode } from '../world-node.ts';

export interface CheckerContext {
  readonly world: World;
  /** Reports a broken invariant. */
  readonly breach: (where: string, why: string) => void;
}

/** One process of a node that just took a step; the same object for every step, so nobody may keep it. */
export interface Stepped {
  readonly node: SimNode;
  /** Unique among all processes of the run. */
  readonly processName: string;
  readonly state: ControlState;
  readonly event: NodeEvent;
  readonly effects: readonly Effect[];
  /** True when the control state moved in this step. */
  readonly stateMoved: boolean;
}

/** Where a copy stood when it was looked at last. */
export interface CopyMark {
  readonly commitSeq: number;
  readonly lastSeq: number;
  readonly term: number;
  readonly dataLossNumber: number;
}

/** A checker sees every step of every node before its effects are carried out, and every notice. */
export interface Checker {
  stepped?(step: Stepped): void;
  /** A copy's commit index, log end or term moved in this step; `before` is null for one that was not seen before. */
  copyMoved?(step: Stepped, partition: PartitionId, replica: Replica, before: CopyMark | null): void;
  /** An answer to a client's data request that leaves the node. */
  answered?(step: Stepped, answer: Answer): void;
  /** `isKnown`: an edge of which another process told the very same before. */
  noticed?(from: NodeId, notice: Notice, isKnown: boolean): void;
}

/** The newest committed control state that any running process has applied. */
export function newestState(world: World): ControlState | null {
  let newest: ControlState | null = null;
  for (const { running } of world.nodes.values()) {
    const state = running?.node.planes.control.state;
    if (state !== undefined && (newest === null || state.revision > newest.revision)) newest = state;
  }
  return newest;
}
