/**
 * What chaos needs from the world: a cluster whose nodes it can hurt, the live status that the fault budget is read
 * from, and a journal that every stage is written to before the action it announces. Implemented by docker/ (the real
 * thing), harness/ (process cluster) and sim/.
 */

/** Either end of a link: a node's id, or `client` for the harness and its clients. */
export type Endpoint = string;

export type NodeState =
  | { readonly kind: 'running'; readonly since: number; readonly instance: string }
  | { readonly kind: 'paused'; readonly instance: string }
  | { readonly kind: 'exited'; readonly instance: string; readonly exitCode: number; readonly oomKilled: boolean }
  | { readonly kind: 'absent' };

/** Result of a look at a link or a node; `unknown` is no evidence either way. `atMs` is monotonic. */
export interface ProbeResult {
  readonly outcome: 'reachable' | 'unreachable' | 'unknown';
  readonly atMs: number;
  readonly evidence: string;
}

/** A running cluster. Every method is idempotent and rejects with an Error whose message is one sentence. */
export interface Cluster {
  readonly kind: 'docker' | 'process' | 'sim';
  nodeIds(): readonly string[];
  /** Starts a node that was created and is not running. Resolves once its process runs (not once it has joined). */
  startNode(nodeId: string): Promise<void>;
  /** Creates and starts one more node; returns its id. */
  addNode(): Promise<string>;
  removeNode(nodeId: string): Promise<void>;
  /** SIGKILL. Resolves once the process is dead. */
  kill(nodeId: string): Promise<void>;
  /** SIGTERM, then SIGKILL after `graceMs`. */
  stop(nodeId: string, graceMs: number): Promise<void>;
  pause(nodeId: string): Promise<void>;
  resume(nodeId: string): Promise<void>;
  /** Recreates the node without its disk; leaves it stopped. */
  wipe(nodeId: string): Promise<void>;
  /** The complete set of one-way cuts that shall hold; whatever else of ours stands is removed. Packets only; new and old connections. */
  setCuts(cuts: readonly { readonly from: Endpoint; readonly to: Endpoint }[]): Promise<void>;
  state(nodeId: string): Promise<NodeState>;
  /** Does a new connection (and its answer) get through from one end to the other? */
  probeLink(from: Endpoint, to: Endpoint): Promise<ProbeResult>;
  /** Does the node answer its health endpoint right now? */
  probeNode(nodeId: string): Promise<ProbeResult>;
  /** What this host cannot do, by fault kind, with the reason. */
  unsupported(): Promise<ReadonlyMap<string, string>>;
}

/** The system's own view of its replication, read live; what the budget and target selection go by. */
export interface SystemStatus {
  readonly atMs: number;
  readonly leader: string | null;
  readonly voters: readonly string[];
  readonly nodes: readonly { readonly nodeId: string; readonly incarnation: number; readonly alive: boolean }[];
  readonly minInSync: number;
  readonly partitions: readonly PartitionStatus[];
}

export interface PartitionStatus {
  readonly partition: number;
  readonly epoch: number;
  readonly term: number;
  readonly primary: string | null;
  readonly preferredPrimary: string | null;
  readonly replicas: readonly string[];
  /** Node ids whose current incarnation is in the in-sync set. */
  readonly inSync: readonly string[];
  readonly eligible: readonly string[];
  readonly joining: readonly string[];
  readonly health: string;
  readonly serving: boolean;
}

export interface StatusSource {
  /** Null when no node gave a quorum-confirmed answer in time. */
  status(): Promise<SystemStatus | null>;
}
