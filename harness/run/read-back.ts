/**
 * The read-back: keys read through the client, once the cluster is whole again or before they are retired.
 *
 * A key that could not be read is missing evidence: it is counted and makes the run inconclusive, never passed over.
 */
import type { Phase } from '../../ledger/rows.ts';
import type { Completion, StoreClient } from '../../workloads/port.ts';
import { messageOf } from '../errors.ts';
import type { RunLedger } from './ports.ts';
import type { RunClock } from './run-clock.ts';

/** Tries per key before it is given up. */
const maxTries = 5;
const pauseMs = 200;

export interface ReadBackResult {
  readonly expected: number;
  readonly done: number;
}

export interface ReadBackOptions {
  readonly ledger: Pick<RunLedger, 'finalRead'>;
  readonly clock: RunClock;
  readonly clients: readonly StoreClient[];
  readonly phase: Phase;
  readonly keys: Iterable<string>;
  readonly expected: number;
  readonly signal: AbortSignal;
  readonly onRead: (key: string, completion: Completion) => void;
}

/** Reads every key once, successfully where it can be had; one read at a time per client. */
export async function readBack(options: ReadBackOptions): Promise<ReadBackResult> {
  const keys = options.keys[Symbol.iterator]();
  let done = 0;
  const reader = async (client: StoreClient): Promise<void> => {
    for (let next = keys.next(); next.done !== true; next = keys.next()) {
      if (options.signal.aborted) return;
      if (await readKey(options, client, next.value)) done++;
    }
  };
  await Promise.all(options.clients.map(reader));
  return { expected: options.expected, done };
}

async function readKey(options: ReadBackOptions, client: StoreClient, key: string): Promise<boolean> {
  const { ledger, clock, phase, signal } = options;
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const invokeNs = clock.nowNs();
    const completion = await read(client, key);
    const isLast = attempt === maxTries || signal.aborted;
    if (completion.kind === 'ok' || isLast) {
      await ledger.finalRead({ key, phase, invokeNs, returnNs: clock.nowNs(), completion });
      options.onRead(key, completion);
      return completion.kind === 'ok';
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return false;
}

async function read(client: StoreClient, key: string): Promise<Completion> {
  try {
    return await client.execute({ f: 'read', key });
  } catch (error) {
    return { kind: 'info', error: `client threw: ${messageOf(error)}` };
  }
}
