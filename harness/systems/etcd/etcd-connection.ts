/**
 * One connection to one member of an etcd cluster: the etcd3 package without its retries, and with a limit for every call.
 *
 * Invariant: a call is sent at most once. The package would otherwise send a put again to another member after an unknown
 * outcome, and one write could take effect under two revisions.
 */
import { Etcd3, type IOptions } from 'etcd3';

/** Longest wait for an answer, ms; etcd's own limit for a proposal is 7 s with its default timings. */
export const answerTimeoutMs = 4_000;
/** Pings notice a silent peer; etcd allows one every 5 s. */
const pingEveryMs = 6_000;
const pingTimeoutMs = 2_000;
const reconnectMs = 250;

type Policy = NonNullable<NonNullable<IOptions['faultHandling']>['global']>;

/** Runs what it is given, once. */
const once = {
  execute: async (work: (context: { signal: AbortSignal }) => unknown) =>
    work({ signal: new AbortController().signal }),
  onSuccess: () => ({ dispose: () => undefined }),
  onFailure: () => ({ dispose: () => undefined }),
} as unknown as Policy;

/** Opens a connection; nothing is sent before it is used. */
export function connectMember(host: string, port: number): Etcd3 {
  return new Etcd3({
    hosts: `${host}:${port}`,
    faultHandling: { global: once, host: () => once },
    defaultCallOptions: ({ isStream }) => (isStream ? {} : { deadline: Date.now() + answerTimeoutMs }),
    grpcOptions: {
      'grpc.keepalive_time_ms': pingEveryMs,
      'grpc.keepalive_timeout_ms': pingTimeoutMs,
      'grpc.initial_reconnect_backoff_ms': reconnectMs,
      'grpc.min_reconnect_backoff_ms': reconnectMs,
      'grpc.max_reconnect_backoff_ms': reconnectMs,
    },
  });
}
