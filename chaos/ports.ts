/**
 * What chaos needs from the world: a cluster whose nodes it can hurt, the live status that the fault budget is read
 * from, and a journal that every stage is written to before the action it announces. Implemented by docker/ (the real
 * thing), harness/ (process cluster) and sim/.
 */

/** Either end of a link: a node's id, or `client` for the harness and its clients. */
export type Endpoint = string;

/** One rule on the packets of one direction of a link. Data first: what shall hold, not how it is done. */
export type LinkRule =
  /** Packets vanish, of new and of old connections. */
  | { readonly kind: 'drop'; readonly from: Endpoint; readonly to: Endpoint }
  /** New connections from `from` are refused with a reset; packets of old ones are answered with one. */
  | { readonly kind: 'reset'; readonly from: Endpoint; readonly to: Endpoint }
  | { readonly kind: 'loss'; readonly from: Endpoint; readonly to: Endpoint; readonly percent: number }
  | {
      readonly kind: 'delay';
      readonly from: Endpoint;
      readonly to: Endpoint;
      readonly delayMs: number;
      readonly jitterMs: number;
    }
  | { readonly kind: 'rate'; readonly from: Endpoint; readonly to: Endpoint; readonly bytesPerSecond: number };

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

/** Result of looking for the effect of a rule that does not simply block. `unknown` is no evidence either way. */
export interface EffectProbe {
  readonly effect: 'seen' | 'absent' | 'unknown';
  readonly atMs: number;
  readonly evidence: string;
}

/** How far a node's clocks stand from the host's. A clock fault moves the first and must leave the second alone. */
export interface ClockProbe {
  readonly wallOffsetMs: number;
  readonly monotonicOffsetMs: number;
  readonly atMs: number;
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
  /** What this host cannot do, by fault kind (or by shape, for partitions), with the reason. */
  unsupported(): Promise<ReadonlyMap<string, string>>;

  /**
   * What nodes stand on and no fault of ours touches: null while it is there, else one sentence that says what is gone. A node that died with
   * it was not killed by itself. Rejects when that cannot be told.
   */
  foundation?(): Promise<string | null>;

  // Optional: a fault that needs a method which is missing is reported as skipped, with that reason.

  /**
   * Generalises `setCuts`: the complete set of rules that shall hold. Where it exists, the driver calls it instead of
   * `setCuts`, with the cuts as `drop` rules. A node that is started later must find its rules standing.
   */
  setLinkRules?(rules: readonly LinkRule[]): Promise<void>;
  /** Looks for the effect of a standing `loss`, `delay` or `rate` rule (drop and reset are seen by `probeLink`). */
  probeRule?(rule: LinkRule): Promise<EffectProbe>;
  /** Does one packet get through one way? Tells a one-way cut from a two-way one, which no TCP connection can. */
  probePacket?(from: Endpoint, to: Endpoint): Promise<ProbeResult>;
  /** Moves the wall clock that the node's process sees, by this much from the true one; 0 puts it right again. */
  setClockOffset?(nodeId: string, offsetMs: number): Promise<void>;
  probeClock?(nodeId: string): Promise<ClockProbe>;
  /** Makes the kernel kill the node's process for memory. Resolves once it is dead; `state` then says `oomKilled`. */
  oom?(nodeId: string): Promise<void>;
}

/** The system's own view of its replication, read live; what the budget and target selection go by. */
export interface SystemStatus {
  readonly atMs: number;
  readonly leader: string | null;
  readonly voters: readonly string[];
  /** Disk identity of each voter, where known: who comes back without its disk is another voter. */
  readonly voterDisks?: Readonly<Record<string, string>>;
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

/** Something that happened in the cluster or at its clients (a node's notice, an acknowledgement); what triggers wait for. */
export interface ClusterEvent {
  readonly name: string;
  readonly fields: Readonly<Record<string, string | number | boolean | null>>;
  readonly nodeId: string;
  readonly atMs: number;
}

/** A stream of events from now on; the returned function ends the subscription. */
export interface EventSource {
  subscribe(listener: (event: ClusterEvent) => void): () => void;
}

/** Waiting as an argument. Resolves after `ms`, or early once `signal` is aborted; never rejects. */
export interface Sleeper {
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
