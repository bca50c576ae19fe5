/** What a simulated world is made of, and the state that it keeps of each node. */
import type { Prng } from '../lib/prng.ts';
import type { NodeId } from '../zaris/model/ids.ts';
import type { DiskState } from '../zaris/model/raft-wire.ts';
import type { Effect, NodeEvent } from '../zaris/node/contract.ts';
import type { Node } from '../zaris/node/node.ts';
import type { NodeOptions, NodeParts } from '../zaris/node/options.ts';
import type { NetworkOptions } from './network.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly nodeCount: number;
  readonly network: NetworkOptions;
  /** Time of an fsync: minimum and mean extra, ms. */
  readonly fsyncMs: number;
  readonly meanFsyncExtraMs: number;
  /** Time that a node needs for each event, ms, by node; 0 where none is named. A slow node works off its queue in order. */
  readonly serviceMs?: Readonly<Record<string, number>>;
  readonly node?: Pick<NodeOptions, 'timings' | 'control'>;
  readonly parts?: NodeParts;
  /** Makes a node; broken stores bring their own. */
  readonly makeNode?: (options: NodeOptions, disk: DiskState, random: Prng, parts: NodeParts) => Node;
}

/** The process that runs on a node. */
export interface Running {
  readonly node: Node;
  readonly instance: number;
  /** Effects wait here while a persist is under way. */
  readonly queue: Effect[];
  persisting: boolean;
  wakeAtMs: number;
  /** A slow node has events until then. */
  busyUntilMs: number;
}

export interface SimNode {
  readonly nodeId: NodeId;
  /** Place in the order of creation; part of the trace hash. */
  readonly index: number;
  readonly serviceMs: number;
  /** What survives a crash: synced writes only. */
  disk: DiskState;
  running: Running | null;
  paused: boolean;
  /** What arrived while paused: it lies in the sockets. */
  parked: NodeEvent[];
  starts: number;
  /** True once it was removed for good. */
  removed: boolean;
}
