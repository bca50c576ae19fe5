/**
 * The contract between the client core and the world that runs it: events in, effects out, in order.
 *
 * `ClientCore.step(event, nowMs) → ClientEffect[]` is synchronous and deterministic; `nowMs` is monotonic. The world dials, writes,
 * reads and keeps time, and never repeats a request by itself: a second copy of one that the core thinks sent once would be safe for a
 * mutation only by luck.
 */
import type { AckMode, AdminCommand, Answer, ClientRequest, Mutation } from '../model/client-wire.ts';
import type { NodeId, PartitionId } from '../model/ids.ts';
import type { Status } from '../model/status.ts';
import type { ClusterView } from '../model/view.ts';
import { defaultRetryPolicy, type RetryPolicy } from './retry.ts';

/** One node, by name (its address comes from the map) or by address. */
export type CallTarget = { readonly nodeId: NodeId } | { readonly address: string };

export type CallOperation =
  | { readonly kind: 'get'; readonly key: string }
  | { readonly kind: 'mutate'; readonly mutation: Mutation; readonly mode?: AckMode }
  | {
      readonly kind: 'scan';
      readonly partition: PartitionId;
      readonly prefix: string;
      readonly after?: string;
      readonly limit: number;
    }
  /** These three ask one node, once; nothing is retried. */
  | {
      readonly kind: 'peek';
      readonly target: CallTarget;
      readonly partition: PartitionId;
      readonly keys: readonly string[];
    }
  | { readonly kind: 'admin'; readonly target: CallTarget; readonly command: AdminCommand }
  | { readonly kind: 'view'; readonly target: CallTarget };

export type ClientEvent =
  /** First event. */
  | { readonly kind: 'start' }
  /** `callId` is the world's, unique. `timeoutMs` Infinity: no deadline. Defaults are the options'. */
  | {
      readonly kind: 'call';
      readonly callId: number;
      readonly operation: CallOperation;
      readonly timeoutMs?: number;
      readonly maxAttempts?: number;
    }
  /** The caller gave up; the call is settled as `Cancelled` at once. Unknown ids are ignored. */
  | { readonly kind: 'cancel'; readonly callId: number }
  /** Settles as soon as a usable view is known; a `ready` effect answers. */
  | { readonly kind: 'connected'; readonly connection: number }
  /** Never connected, closed or broken. `refused`: who we are was refused (certificate); the client gives up for good. */
  | { readonly kind: 'disconnected'; readonly connection: number; readonly reason: string; readonly refused?: boolean }
  | { readonly kind: 'answers'; readonly connection: number; readonly answers: readonly Answer[] }
  /** The time of the last `wake` has come (early or repeated ticks are harmless). */
  | { readonly kind: 'tick' }
  /** Settles everything as `Closed` and drops every connection. */
  | { readonly kind: 'close' };

export type ClientEffect =
  /** Dial. `nodeId` is null for an address that was configured, not announced by a node. Answered by `connected` or `disconnected`. */
  | { readonly kind: 'connect'; readonly connection: number; readonly nodeId: NodeId | null; readonly address: string }
  /** Close and forget; no `disconnected` is expected. */
  | { readonly kind: 'disconnect'; readonly connection: number }
  | { readonly kind: 'send'; readonly connection: number; readonly request: ClientRequest }
  | { readonly kind: 'settle'; readonly callId: number; readonly result: CallResult }
  /** A usable view is known for the first time. */
  | { readonly kind: 'ready'; readonly view: ClusterView }
  /** Feed `tick` at this time; replaces the earlier wake. */
  | { readonly kind: 'wake'; readonly atMs: number };

/**
 * How a call ended. A status of an answer, or: `TransportError` (the last attempt got no answer), `DeadlineExceeded` (an attempt was
 * under way), `Cancelled`, `Closed`, `Overloaded` (too many calls at once; never sent).
 */
export type CallStatus = Status | 'TransportError' | 'DeadlineExceeded' | 'Cancelled' | 'Closed' | 'Overloaded';

export interface CallResult {
  readonly status: CallStatus;
  /** The last answer of any attempt, if there was one. */
  readonly answer: Answer | null;
  /** True for a mutation of which an attempt may have run and no answer settled it. */
  readonly inDoubt: boolean;
  readonly attempts: number;
  readonly elapsedMs: number;
  /** One sentence, where there is more to say than the status. */
  readonly reason?: string;
}

export interface ClientOptions {
  /** Unique among all clients that ever talk to the cluster. */
  readonly clientId: string;
  readonly seeds: readonly string[];
  readonly token?: string;
  readonly retry: RetryPolicy;
  /** Default deadline of a call; Infinity: none. */
  readonly requestTimeoutMs: number;
  /** Longest wait of one call for a newer map before its next attempt. */
  readonly mapRefreshWaitMs: number;
  /** Least time between two refresh requests. */
  readonly refreshDebounceMs: number;
  /** How long a node may hold a view request that has no news. */
  readonly viewWaitMs: number;
  /** An attempt this old makes the client look for a newer map. */
  readonly slowAttemptMs: number;
  readonly keepAliveMs: number;
  /** A peer silent for this long is dead; also the bound on connecting. */
  readonly deadPeerMs: number;
  readonly reconnectMinMs: number;
  readonly reconnectMaxMs: number;
  /** Requests under way on one connection; more wait in line. */
  readonly maxInFlight: number;
  /** Calls under way or waiting in all. */
  readonly maxCalls: number;
  /** Retries let through at once, and per second after that. */
  readonly retryBurst: number;
  readonly retriesPerSecond: number;
}

/** Everything but who the client is and whom it knows. */
export const defaultClientOptions: Omit<ClientOptions, 'clientId' | 'seeds' | 'token'> = {
  retry: defaultRetryPolicy,
  requestTimeoutMs: 60_000,
  mapRefreshWaitMs: 15_000,
  refreshDebounceMs: 500,
  viewWaitMs: 5_000,
  slowAttemptMs: 500,
  keepAliveMs: 1_000,
  deadPeerMs: 3_000,
  reconnectMinMs: 50,
  reconnectMaxMs: 1_000,
  maxInFlight: 256,
  maxCalls: 100_000,
  retryBurst: 1_000,
  retriesPerSecond: 500,
};

/** Counters since the client began. */
export interface ClientStatistics {
  calls: number;
  attempts: number;
  retries: number;
  /** View requests sent. */
  refreshes: number;
  /** Attempts that went to another owner than the one before. */
  redirects: number;
  transportErrors: number;
  connects: number;
  deadPeers: number;
  inDoubt: number;
  /** How attempts ended, by status. */
  readonly attemptEnds: Record<string, number>;
  /** How calls ended, by status. */
  readonly callEnds: Record<string, number>;
}

export const newStatistics = (): ClientStatistics => ({
  calls: 0,
  attempts: 0,
  retries: 0,
  refreshes: 0,
  redirects: 0,
  transportErrors: 0,
  connects: 0,
  deadPeers: 0,
  inDoubt: 0,
  attemptEnds: {},
  callEnds: {},
});
