/** What a cluster of containers is made from, and where its nodes are reached. */
import type { ProbeResult } from '../chaos/ports.ts';
import type { Clock } from '../lib/clock.ts';
import type { NodePorts } from './containers.ts';
import type { Engine } from './engine.ts';
import type { Effect } from './node-life.ts';

/** Where a node is reached: `ip` from the other nodes (and from this host), the host ports on 127.0.0.1. */
export interface NodeAddress {
  readonly nodeId: string;
  readonly ip: string;
  readonly ports: NodePorts;
  readonly hostClientPort: number;
  readonly hostHttpPort: number;
}

export interface DockerClusterOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Unique name of the run; lower-case letters, digits, `-` and `_`. */
  readonly runId: string;
  /** The node image, and the base that seats are made from. */
  readonly image: string;
  readonly base: string;
  /** Default 5. */
  readonly nodeCount?: number;
  readonly ports?: NodePorts;
  readonly healthPath?: string;
  /** How a node is seen to answer, where it has no health endpoint. */
  readonly probe?: (address: NodeAddress) => Promise<ProbeResult>;
  /** Instead of the image's own; the same for all nodes, or made from the addresses of all. */
  readonly command?:
    | readonly string[]
    | ((nodeId: string, index: number, addresses: ReadonlyMap<string, NodeAddress>) => readonly string[]);
  /** Faults that what runs on the nodes cannot stand, each with the reason. */
  readonly unsupportedFaults?: ReadonlyMap<string, string>;
  readonly memoryBytes?: number;
  /** Environment of a node's process; asked again whenever its container is made anew. */
  readonly environment: (
    nodeId: string,
    index: number,
    addresses: ReadonlyMap<string, NodeAddress>,
  ) => Record<string, string>;
  /** Start nodes under libfaketime, so that their wall clocks can be moved; costs them time per look at the clock. Default false. */
  readonly clockFaults?: boolean;
  /** Folder for the logs of every incarnation. */
  readonly logsDir: string;
  readonly onEffect?: (effect: Effect) => void;
  readonly say?: (line: string) => void;
}
