/** What the harness and its warden (the process that holds the proxies) say to each other. */
import type { Endpoint, LinkRule } from '../../../chaos/ports.ts';
import type { Effect } from './rule-effects.ts';

/** Ports of a node, where it listens itself or where it is reached through the proxy. */
export interface NodePorts {
  readonly client: number;
  readonly cluster: number;
  readonly http: number;
}

/** A process, told apart from any later one with the same id. */
export interface ProcessName {
  readonly pid: number;
  readonly startTicks: string;
}

export type WardenCommand =
  /** The clients' end of every link, which nodes are probed towards. */
  | { readonly kind: 'add-client' }
  /** `sourceAddress`: where its connections come from; empty where this host has one loopback address only. */
  | { readonly kind: 'add-node'; readonly nodeId: string; readonly sourceAddress: string; readonly ports: NodePorts }
  | { readonly kind: 'remove-node'; readonly nodeId: string }
  | { readonly kind: 'set-rules'; readonly rules: readonly LinkRule[] }
  | { readonly kind: 'packet'; readonly from: Endpoint; readonly to: Endpoint }
  | { readonly kind: 'rule'; readonly rule: LinkRule }
  /** These processes end when the harness does. The complete list. */
  | { readonly kind: 'guard'; readonly processes: readonly ProcessName[] }
  /** The harness is going to end, and everything shall stay. */
  | { readonly kind: 'keep' };

/** The answer to each kind of command. */
export interface WardenAnswers {
  readonly 'add-client': { readonly probePort: number };
  readonly 'add-node': { readonly ports: NodePorts; readonly probePort: number };
  readonly 'remove-node': null;
  readonly 'set-rules': null;
  readonly packet: { readonly tookMs: number | null };
  readonly rule: Effect;
  readonly guard: null;
  readonly keep: null;
}

export interface WardenRequest {
  readonly id: number;
  readonly command: WardenCommand;
}

export interface WardenReply {
  readonly id: number;
  readonly answer?: WardenAnswers[WardenCommand['kind']];
  readonly error?: string;
}
