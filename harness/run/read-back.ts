/**
 * The final read of every live key through the client, ledgered like any operation.
 *
 * A key that could not be read is missing evidence: it is counted and makes the run inconclusive, never passed over.
 */
import type { StoreClient } from '../../workloads/port.ts';
import type { Executor } from './executor.ts';

/** Tries per key before it is given up. */
const maxTries = 5;
const pauseMs = 200;

export interface ReadBackResult {
  readonly expected: number;
  readonly done: number;
}

export interface ReadBackOptions {
  readonly executor: Executor;
  readonly clients: readonly StoreClient[];
  /** Session number of the first client; the sessions of the load are not used again, one may still be open. */
  readonly firstSession: number;
  readonly keys: Iterable<string>;
  readonly expected: number;
  readonly signal: AbortSignal;
  readonly onProgress: (done: number, expected: number) => void;
}

/** Reads every key once, successfully where it can be had. */
export async function readBack(options: ReadBackOptions): Promise<ReadBackResult> {
  const keys = options.keys[Symbol.iterator]();
  let done = 0;
  const reader = async (client: StoreClient, index: number): Promise<void> => {
    for (let next = keys.next(); next.done !== true; next = keys.next()) {
      if (options.signal.aborted) return;
      if (await readOnce(options, client, options.firstSession + index, next.value)) done++;
      options.onProgress(done, options.expected);
    }
  };
  await Promise.all(options.clients.map(reader));
  return { expected: options.expected, done };
}

async function readOnce(options: ReadBackOptions, client: StoreClient, session: number, key: string): Promise<boolean> {
  for (let attempt = 1; attempt <= maxTries && !options.signal.aborted; attempt++) {
    const completion = await options.executor.run(client, session, 'read-back', { f: 'read', key });
    if (completion.kind === 'ok') return true;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return false;
}
