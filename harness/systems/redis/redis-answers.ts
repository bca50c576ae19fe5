/**
 * What Redis's answers and errors mean for a history.
 *
 * Invariant: `fail` only where the server itself said, in answer to this very command, that it did not run it. Whatever came from the
 * client's side after the command was handed over (timeout, closed connection) is unknown.
 */
import type { Completion } from '../../../workloads/port.ts';

/** Longest error text that a completion carries. */
const maxErrorChars = 200;

/** First words of refusals that Redis gives before it runs a command (redis.io, error replies; `processCommand` in server.c). */
const refusals = [
  'READONLY',
  'NOREPLICAS',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'OOM',
  'NOAUTH',
  'NOPERM',
  'CLUSTERDOWN',
  'MOVED',
  'BUSY',
  'WRONGTYPE',
] as const;

/** Refusals after which another node should be asked for. */
export const elsewhere = /^(READONLY|NOREPLICAS|LOADING|MASTERDOWN)\b/;

/** First words of every refusal that this adapter calls definite. */
export const definiteRefusals: readonly string[] = ['not sent', 'not offered', ...refusals];

/** Thrown by the client when it holds no connection: the command never left this process. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError';
}

/** The completion of a command that ended in this error. */
export function completionOfError(error: unknown): Completion {
  const text = (error instanceof Error ? error.message : String(error)).slice(0, maxErrorChars);
  if (error instanceof NotSentError) return { kind: 'fail', why: 'refused', error: `not sent: ${text}` };
  const isReply = error instanceof Error && error.name === 'ReplyError';
  const [word] = text.split(' ', 1);
  if (isReply && refusals.some((known) => known === word)) return { kind: 'fail', why: 'refused', error: text };
  return { kind: 'info', error: text };
}
