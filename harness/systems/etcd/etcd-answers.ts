/**
 * What etcd's errors mean for a history.
 *
 * Invariant: `fail` only where the request provably never became a proposal: no connection carried it, or the server refused it before
 * proposing. "Timed out" and "leader changed" come after proposing, so the write may still be committed: unknown.
 */
import type { Completion } from '../../../workloads/port.ts';

const maxErrorChars = 200;

/** Refused by the server before it proposes anything (etcd server/etcdserver/v3_server.go). */
const refusals =
  /etcdserver: (too many requests|request is too large|not capable|permission denied|user name is empty|mvcc: database space exceeded)/;
/** Said by the gRPC client when it had no connection to send the call on. */
const notSent = /No connection established/;

/** First words of every refusal that this adapter calls definite. */
export const definiteRefusals = ['not sent', 'refused', 'not offered'] as const;

/** The completion of a call that ended in this error. */
export function completionOfError(error: unknown): Completion {
  const text = (error instanceof Error ? error.message : String(error)).slice(0, maxErrorChars);
  if (notSent.test(text)) return { kind: 'fail', why: 'refused', error: `not sent: ${text}` };
  if (refusals.test(text)) return { kind: 'fail', why: 'refused', error: `refused: ${text}` };
  return { kind: 'info', error: text };
}
