/**
 * Owns what a run's containers look like: the seat that holds a node's network, and the node in it.
 *
 * The node runs without a single capability; only its seat, which runs nothing but `sleep`, may change packet rules.
 * Logs, memory and restarts are bounded: an engine that restarted nodes by itself would undo faults behind our back.
 */
import { GenericContainer, StartupCheckStrategy } from 'testcontainers';
import type { StartupStatus } from 'testcontainers';

/** Ports inside a node's container. */
export interface NodePorts {
  readonly client: number;
  readonly cluster: number;
  readonly http: number;
}

/** The ports of Zaris. */
export const zarisPorts: NodePorts = { client: 7861, cluster: 7811, http: 7802 };

export interface SeatSpec {
  readonly image: string;
  readonly name: string;
  readonly hostname: string;
  readonly network: string;
  readonly address: string;
  /** Container port to host port, published on 127.0.0.1. */
  readonly published: ReadonlyMap<number, number>;
  readonly labels: Record<string, string>;
}

export interface NodeSpec {
  readonly image: string;
  readonly name: string;
  readonly seatId: string;
  readonly volume: string;
  readonly environment: Record<string, string>;
  readonly labels: Record<string, string>;
  readonly command?: readonly string[];
  readonly memoryBytes?: number;
}

const nodeLog = { Type: 'json-file', Config: { 'max-size': '16m', 'max-file': '2' } };
const seatLog = { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '1' } };
const seatMemoryBytes = 64 * 1024 * 1024;
const maxProcesses = 512;

/** Waiting ends as soon as the process was started; whether it serves is asked of its health endpoint. */
class StartedIsEnough extends StartupCheckStrategy {
  override checkStartupState(): Promise<StartupStatus> {
    return Promise.resolve('SUCCESS');
  }
}

/** Holds a network namespace, an address and published ports for the whole run. */
export class SeatContainer extends GenericContainer {
  constructor(spec: SeatSpec) {
    super(spec.image);
    this.withName(spec.name)
      .withHostname(spec.hostname)
      .withLabels(spec.labels)
      .withCommand(['sleep', 'infinity'])
      .withNetworkMode(spec.network)
      .withAutoCleanup(false)
      .withDroppedCapabilities('ALL')
      .withAddedCapabilities('NET_ADMIN')
      .withSecurityOpt('no-new-privileges')
      .withWaitStrategy(new StartedIsEnough());
    this.createOpts.NetworkingConfig = {
      EndpointsConfig: { [spec.network]: { IPAMConfig: { IPv4Address: spec.address } } },
    };
    this.createOpts.ExposedPorts = Object.fromEntries([...spec.published.keys()].map((port) => [`${port}/tcp`, {}]));
    this.hostConfig.PortBindings = Object.fromEntries(
      [...spec.published].map(([inside, outside]) => [
        `${inside}/tcp`,
        [{ HostIp: '127.0.0.1', HostPort: String(outside) }],
      ]),
    );
    this.hostConfig.LogConfig = seatLog;
    this.hostConfig.Memory = seatMemoryBytes;
    this.hostConfig.RestartPolicy = { Name: 'no' };
  }
}

/** One node, living in its seat's network, with its control disk on a volume. */
export class NodeContainer extends GenericContainer {
  constructor(spec: NodeSpec) {
    super(spec.image);
    this.withName(spec.name)
      .withLabels(spec.labels)
      .withEnvironment(spec.environment)
      .withNetworkMode(`container:${spec.seatId}`)
      .withAutoCleanup(false)
      .withDroppedCapabilities('ALL')
      .withSecurityOpt('no-new-privileges')
      .withWaitStrategy(new StartedIsEnough());
    if (spec.command !== undefined) {
      // Whatever entry point the image has: the command is the whole of what runs.
      const [program = '', ...words] = spec.command;
      this.withEntrypoint([program]).withCommand(words);
    }
    this.hostConfig.Binds = [`${spec.volume}:/data`];
    this.hostConfig.LogConfig = nodeLog;
    this.hostConfig.PidsLimit = maxProcesses;
    this.hostConfig.RestartPolicy = { Name: 'no' };
    if (spec.memoryBytes !== undefined) {
      this.hostConfig.Memory = spec.memoryBytes;
      // Without swap the limit is the limit.
      this.hostConfig.MemorySwap = spec.memoryBytes;
    }
  }
}
