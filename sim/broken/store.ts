/**
 * What a deliberately wrong store is: the shipped node with something exchanged from outside and its own asserts off, and the
 * options of the runs that are to show it. The shipped code has no switch for any of it.
 */
import type { BudgetPolicy } from '../../chaos/budget.ts';
import type { FindingKind } from '../../ledger/verify/finding.ts';
import type { Prng } from '../../lib/prng.ts';
import type { DiskState } from '../../zaris/model/raft-wire.ts';
import type { Effect, NodeEvent } from '../../zaris/node/contract.ts';
import { Node } from '../../zaris/node/node.ts';
import type { NodeOptions } from '../../zaris/node/options.ts';
import type { Primary } from '../../zaris/partition/primary.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import { type ProtocolRules, soundRules } from '../../zaris/partition/rules.ts';
import type { Pins } from '../options.ts';

export interface BrokenStore {
  readonly name: string;
  /** What it does wrong, one sentence. */
  readonly doc: string;
  /** It is caught when the verifier reports one of these. */
  readonly expects: readonly FindingKind[];
  /** Options of the runs that are to catch it: ordinary ones, chosen so that it shows soon. */
  readonly pins: Pins;
  readonly policy?: BudgetPolicy;
  readonly rules?: Partial<ProtocolRules>;
  /** Exchanges methods of this one node; called before its first step. */
  readonly alter?: (node: Node) => void;
  /** Rewrites what leaves the node. */
  readonly effects?: (effects: Effect[], events: readonly NodeEvent[]) => Effect[];
}

/** A node of the broken store. */
export function brokenNode(store: BrokenStore, options: NodeOptions, disk: DiskState, random: Prng): Node {
  const node = new Node(options, disk, random, { rules: { ...soundRules, ...store.rules }, onBrokenInvariant() {} });
  store.alter?.(node);
  const { effects } = store;
  if (effects !== undefined) {
    const stepAll = node.stepAll.bind(node);
    node.stepAll = (events, nowMs) => effects(stepAll(events, nowMs), events);
  }
  return node;
}

/** Methods of an object, private ones too, to be exchanged on this one object. */
export type Inside = Record<string, unknown>;
export const inside = (object: object): Inside => object as Inside;

/** Exchanges a method of one object; the new one is given the old one, bound. */
export function exchange<A extends unknown[], R>(
  object: object,
  name: string,
  make: (original: (...args: A) => R) => (...args: A) => R,
): void {
  const methods = inside(object);
  const original = (methods[name] as (...args: A) => R).bind(object);
  methods[name] = make(original);
}

/** Calls `change` with every replica that the node ever makes. */
export function everyReplica(node: Node, change: (replica: Replica) => void): void {
  const replicas = inside(node.planes.data)['replicas'] as Map<number, Replica>;
  exchange<[number, Replica], unknown>(replicas, 'set', (set) => (partition, replica) => {
    change(replica);
    return set(partition, replica);
  });
}

/** Calls `change` with every primary that the node ever makes. */
export function everyPrimary(node: Node, change: (primary: Primary) => void): void {
  const primaries = inside(node.planes.data)['primaries'] as Map<number, Primary>;
  exchange<[number, Primary], unknown>(primaries, 'set', (set) => (partition, primary) => {
    change(primary);
    return set(partition, primary);
  });
}
