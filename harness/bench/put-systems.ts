/**
 * The systems whose puts are compared, each started the way its makers would for the promise that is named beside it.
 *
 * Invariant: `promise` says what an acknowledgement of exactly this set-up is worth. Two rates under different promises side by side
 * without them would be a lie.
 */
import type { Writer } from './load.ts';

/** A running system that can be put to. */
export interface PutSystem extends AsyncDisposable {
  readonly name: string;
  /** What an acknowledgement promises; one sentence. */
  readonly promise: string;
  /** Process ids of its servers. */
  readonly pids: readonly number[];
  /** One writer per connection. */
  connect(count: number): Promise<{ readonly writers: readonly Writer[]; readonly close: () => Promise<void> }>;
}

/** Repeats `attempt` until it gives something, at most `timeoutMs`; rejects with the last reason. */
export async function eventually<T>(
  what: string,
  timeoutMs: number,
  signal: AbortSignal,
  attempt: () => Promise<T | null>,
): Promise<T> {
  const untilMs = performance.now() + timeoutMs;
  let why = 'it never answered';
  while (performance.now() < untilMs && !signal.aborted) {
    try {
      const result = await attempt();
      if (result !== null) return result;
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  signal.throwIfAborted();
  throw new Error(`${what} did not come up within ${timeoutMs / 1000} s (${why})`);
}
