/**
 * A cluster as the run loop holds it: the chaos port, the addresses for clients, and its end.
 */
import type { Cluster } from '../../chaos/ports.ts';
import type { ClusterPlan, NodeAddress, NodeEndpoints, NodeProgram } from '../systems/system.ts';

/** Something about the build or the host that the certificate names. */
export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

export interface RunCluster {
  readonly cluster: Cluster;
  /** Where clients reach the nodes; fixed for the life of a node. */
  addresses(): readonly NodeAddress[];
  /** What runs: image or command. */
  readonly build: string;
  readonly engine: string | null;
  readonly versions: readonly NamedValue[];
  /** The end of what a node wrote, for findings. */
  logTail(nodeId: string): Promise<string>;
  /** Leaves it running, marked so that no sweep takes it. Returns how to remove it. */
  keep(): Promise<string>;
  /** Removes everything; may be called again, also after a start that failed half-way. */
  dispose(): Promise<void>;
}

/** A program of the system under test, as a cluster starts it. */
export interface ClusterProgram {
  readonly program: NodeProgram;
  readonly plan: ClusterPlan;
  readonly unsupportedFaults: ReadonlyMap<string, string>;
}

/** Where a user's own image comes from. */
export type OwnImage =
  | { readonly kind: 'image'; readonly image: string }
  | { readonly kind: 'build'; readonly folder: string };

/** What a cluster is opened with. */
export interface OpenClusterOptions {
  readonly runId: string;
  readonly nodeCount: number;
  readonly logsDir: string;
  /** Environment of a node's process, given the addresses of all. */
  readonly environment: (nodeId: string, index: number, nodes: readonly NodeEndpoints[]) => Record<string, string>;
  readonly nodeEntry: string | null;
  /** An image of the user's own, by name or to be built, for the program that would run anyway. */
  readonly own?: OwnImage;
  /** What runs on the nodes instead of Zaris; with the faults that it cannot stand. */
  readonly program?: ClusterProgram;
  /** Take over what a dead harness left of this run instead of starting anew; rejects with EnvironmentError where there is nothing to take over. */
  readonly adopt?: boolean;
  /** The nodes' wall clocks may be moved, where the cluster can; default false. */
  readonly movableClocks?: boolean;
  readonly clock: { nowMs(): number; wallMs(): number };
  readonly say: (line: string) => void;
  /** Aborted by a second signal. */
  readonly signal: AbortSignal;
  /** Told when a killed node's process was seen dead (monotonic ms), which is sooner than the kill's promise; where the cluster can tell. */
  readonly onDeath?: (nodeId: string, atMs: number) => void;
}
