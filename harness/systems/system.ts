/**
 * The port between the harness and any replicated store: how its nodes are started, how clients connect, how its status
 * is read, and what an acknowledgement of it promises.
 *
 * Invariant: an adapter never turns an unknown outcome into a failure, never reports status that no quorum confirmed, and
 * never hides a replica that did not answer. If it did, the verifier would judge a history that did not happen.
 */
import type { ClusterEvent, StatusSource } from '../../chaos/ports.ts';
import type { StoreClient, Version } from '../../workloads/port.ts';

/** What the system promises, in its own words. */
export interface Contract {
  /** What an acknowledgement promises; one sentence. */
  readonly acknowledgement: string;
  /** False: the system itself declares that acknowledged writes may be lost, and says when. */
  readonly durable: boolean;
  /** When losses are permitted; null for a durable contract. */
  readonly permittedLoss: string | null;
  /** Set: only in a partition that the system itself reports Lost, after every holder of it was taken. */
  readonly lossNeeds?: 'reported-lost';
  /** What else follows from a permitted loss (a deleted value is back, a read goes back …). Judged only under `--contract declared`. */
  readonly permits?: readonly PermittedAnomaly[];
}

/** Findings, besides lost writes, that a contract may declare possible; the names are the verifier's. */
export const permittedAnomalies = [
  'stale',
  'non-monotone',
  'resurrected',
  'duplicated',
  'not-linearizable',
  'ttl',
] as const;
export type PermittedAnomaly = (typeof permittedAnomalies)[number];

/** What the system can do; what it cannot is left out of the run and named in the report. */
export interface Capabilities {
  readonly versions: boolean;
  readonly compareAndSet: boolean;
  readonly create: boolean;
  readonly counters: boolean;
  readonly ttl: boolean;
  /** Single replicas can be asked for their own copy. */
  readonly peek: boolean;
}

/** Where one node can be reached from the harness; fixed for the life of the node, restarts included. */
export interface NodeAddress {
  readonly nodeId: string;
  readonly host: string;
  readonly clientPort: number;
  readonly httpPort: number;
  /** host:port of the client port as the nodes themselves know it, where that differs from the above (published ports). */
  readonly internalClientAddress?: string;
}

/** Addresses of a node, inside the cluster's network and from the host. */
export interface NodeEndpoints {
  readonly nodeId: string;
  /** host:port for the other nodes. */
  readonly clusterAddress: string;
  /** host:port for clients on the harness's host. */
  readonly clientAddress: string;
  readonly httpAddress: string;
  /** host:port of the client and of the http port, inside the cluster's network. */
  readonly internalClientAddress: string;
  readonly internalHttpAddress: string;
}

/** Ports on which a node's program listens. */
export interface ProgramPorts {
  /** Clients. */
  readonly client: number;
  /** The other nodes. */
  readonly cluster: number;
  /** A second port that the harness reaches: health and metrics, or whatever the adapter uses it for. */
  readonly http: number;
}

/** What a command line is made from. Inside a container `host` is every address and `folder` is where the image holds the files. */
export interface NodeContext {
  readonly plan: ClusterPlan;
  readonly nodeId: string;
  readonly index: number;
  readonly nodes: readonly NodeEndpoints[];
  /** Address to listen on. */
  readonly host: string;
  readonly ports: ProgramPorts;
  /** The node's disk; survives a kill, not a wipe. */
  readonly dataDir: string;
  /** The files of a program of kind `folder`. */
  readonly folder: string;
}

/** Where the program comes from. Containers get it as an image; local processes run it from this host. */
export type ProgramSource =
  /** Debian packages on the base image, or a public image that holds the same programs where a registry answers. */
  | {
      readonly kind: 'packages';
      readonly packages: readonly string[];
      readonly publicImage: string | null;
      readonly program: string;
    }
  /** An image by name, yours or a public one. */
  | { readonly kind: 'image'; readonly image: string }
  /** A folder of files that Node.js 24 runs, such as your own server; absolute. */
  | { readonly kind: 'folder'; readonly path: string };

/** How a node shows that it answers: that its kernel takes a connection proves nothing, a frozen process does that too. */
export type Readiness =
  /** GET on the http port; any answer counts. */
  | { readonly kind: 'http'; readonly path: string }
  /** Text sent to the client port; the answer must contain `expect`. */
  | { readonly kind: 'exchange'; readonly send: string; readonly expect: string };

/** What runs on every node. */
export interface NodeProgram {
  readonly source: ProgramSource;
  /** Ports inside a container; a local process is given others in its context. */
  readonly ports: ProgramPorts;
  readonly readiness: Readiness;
  command(context: NodeContext): readonly string[];
}

/** The cluster that is meant when no flag says otherwise. */
export interface SystemShape {
  readonly nodes: number;
  /** Fixed by the system, or null where it is the user's choice. */
  readonly partitions: number | null;
  /** Every node holds every key: the replication factor is the number of nodes. */
  readonly everyNodeHoldsAll: boolean;
}

/** What a new cluster shall look like. */
export interface ClusterPlan {
  readonly clusterId: string;
  readonly nodeCount: number;
  readonly replicationFactor: number;
  readonly minInSync: number;
  readonly partitionCount: number;
}

/** What the cluster says of itself; goes into the certificate instead of the flags. */
export interface SystemFacts {
  readonly build: string;
  readonly replicationFactor: number;
  readonly minInSync: number;
  readonly partitions: number;
  readonly versions: readonly { readonly name: string; readonly value: string }[];
}

/** One replica's own copy of a key; `value` null: absent there. */
export interface PeekedKey {
  readonly key: string;
  readonly value: string | null;
  readonly version: Version | null;
}

/** One replica's answer about one partition. */
export interface Peeked {
  readonly nodeId: string;
  /** Null where the answer does not say. */
  readonly incarnation: number | null;
  /** `primary` where this copy is the one that decides what is committed; anything else otherwise. */
  readonly role: string;
  /** Last applied entry. */
  readonly applied: Version;
  readonly commitSeq: number;
  /** Of all keys and values at `applied`; empty where the system has none. */
  readonly digest: string;
  readonly keyCount: number;
  readonly keys: readonly PeekedKey[];
}

/** A system that runs and can be talked to. */
export interface RunningSystem {
  /** A client of its own for one session; sessions may share connections, never answers. */
  client(session: number): StoreClient;
  /** Live status, as well confirmed by a quorum as the system allows. */
  readonly status: StatusSource;
  /** The partition that holds a key; the unit of placement for bulkheads and batches. */
  partitionOf(key: string): number;
  /** Makes the cluster one (bootstrap) and resolves when every partition is healthy. Rejects when `deadlineMs` of waiting has passed. */
  bootstrap(deadlineMs: number, signal: AbortSignal): Promise<void>;
  facts(): Promise<SystemFacts>;
  /** One replica's own copy of keys of one partition; null when it did not answer. */
  peek(nodeId: string, partition: number, keys: readonly string[]): Promise<Peeked | null>;
  /** What nodes have noticed since the last call, oldest first: elections, promotions, handoffs. Never rejects. */
  events(): Promise<readonly ClusterEvent[]>;
  /** Tells the system of a node that was added and runs; the adapter sees to it that it gets its share of the copies. */
  nodeAdded(address: NodeAddress): void;
  /** Tells the system of a node that was removed for good; the adapter has its copies made anew elsewhere. */
  nodeRemoved?(nodeId: string): void;
  close(): Promise<void>;
}

/** What the adapter is given to connect with. */
export interface ConnectOptions {
  readonly plan: ClusterPlan;
  readonly addresses: readonly NodeAddress[];
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

/** A store that can be certified. */
export interface System {
  readonly name: string;
  readonly contract: (plan: ClusterPlan) => Contract;
  readonly capabilities: Capabilities;
  /** What the client promises of every operation; null where it promises nothing. */
  readonly clientPromises: { readonly maxAttempts: number | null; readonly deadlineMs: number | null };
  /** What runs on a node; absent for a program that comes with the harness. */
  readonly program?: NodeProgram;
  /** Absent: as the command line's defaults say. */
  readonly shape?: SystemShape;
  /** Faults that the system or its adapter cannot stand by design, each with the reason; they are not drawn, and the report says so. */
  readonly unsupportedFaults?: ReadonlyMap<string, string>;
  /**
   * First words of the errors of refusals that are known to have had no effect; a refusal with any other error counts as
   * unknown. Absent: errors that sound like a lost answer count as unknown.
   */
  readonly definiteRefusals?: readonly string[];
  /** The system's own rule for the copies that an acknowledged write needs. */
  defaultMinInSync(replicationFactor: number): number;
  /** Environment of one node's process. */
  nodeEnvironment(
    plan: ClusterPlan,
    nodeId: string,
    index: number,
    nodes: readonly NodeEndpoints[],
  ): Record<string, string>;
  connect(options: ConnectOptions): RunningSystem;
}
