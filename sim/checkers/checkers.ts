/** All invariant checkers as one observer of the world. */
import type { NodeId } from '../../zaris/model/ids.ts';
import type { Effect, NodeEvent, Notice } from '../../zaris/node/contract.ts';
import type { SimNode, World } from '../world.ts';

export interface CheckerContext {
  readonly world: World;
  /** Reports a broken invariant. */
  readonly breach: (where: string, why: string) => void;
}

/** A checker sees every step of every node before its effects are carried out, and every notice. */
export interface Checker {
  stepped?(node: SimNode, event: NodeEvent, effects: readonly Effect[]): void;
  noticed?(from: NodeId, notice: Notice): void;
}

export interface Checkers {
  stepped(node: SimNode, event: NodeEvent, effects: readonly Effect[]): void;
  noticed(from: NodeId, notice: Notice): void;
}

export function checkersOf(_context: CheckerContext): Checkers {
  return { stepped() {}, noticed() {} };
}
