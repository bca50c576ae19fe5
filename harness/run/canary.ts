/**
 * The real canary: keys written under the ledger and then deleted by a client that the ledger does not know of. Live check,
 * read-back and autopsy must each report exactly these; a run whose canary was not caught proves nothing by finding nothing.
 */
import type { StoreClient } from '../../workloads/port.ts';
import { encodeValue } from '../../ledger/values.ts';
import type { Executor } from './executor.ts';

/** First letter of canary keys; no workload uses it. */
export const canaryPrefix = 'c';
/** Keys that are planted in a run. */
export const canaryCount = 8;
const maxTries = 20;
const pauseMs = 250;

export interface CanaryOptions {
  readonly executor: Executor;
  readonly client: StoreClient;
  readonly session: number;
  readonly runTag: string;
  readonly valueBytes: number;
  readonly signal: AbortSignal;
  /** Called for each key once it is deleted. */
  readonly onDeleted?: (key: string) => void;
}

export const canaryKeys = (): readonly string[] =>
  Array.from({ length: canaryCount }, (_, index) => `${canaryPrefix}${index}`);

/** Writes the canary keys under the ledger; returns those that were acknowledged. */
export async function plantCanary(options: CanaryOptions): Promise<readonly string[]> {
  const { executor, client, session, signal } = options;
  const planted: string[] = [];
  for (const key of canaryKeys()) {
    if (signal.aborted) break;
    const value = encodeValue(options.runTag, executor.nextOperationId, options.valueBytes);
    const completion = await executor.run(client, session, { f: 'write', key, value }, true);
    if (completion.kind === 'ok') planted.push(key);
  }
  return planted;
}

/** Deletes them behind the ledger's back, then reads them under the ledger, for the live check. Returns those deleted. */
export async function releaseCanary(options: CanaryOptions, planted: readonly string[]): Promise<readonly string[]> {
  const { executor, client, session, signal } = options;
  const deleted: string[] = [];
  for (const key of planted) {
    if (!(await deleteKey(client, key, signal))) continue;
    deleted.push(key);
    options.onDeleted?.(key);
    for (let attempt = 0; attempt < maxTries && !signal.aborted; attempt++) {
      const read = await executor.run(client, session, { f: 'read', key }, true);
      if (read.kind === 'ok') break;
    }
  }
  return deleted;
}

async function deleteKey(client: StoreClient, key: string, signal: AbortSignal): Promise<boolean> {
  for (let attempt = 0; attempt < maxTries && !signal.aborted; attempt++) {
    const completion = await client.execute({ f: 'delete', key });
    // Gone already: an earlier try ran and its answer was lost.
    if (completion.kind === 'ok' || (completion.kind === 'fail' && completion.why === 'condition')) return true;
    // A store that has lost the partition refuses, and says of the key that it is gone.
    const read = await client.execute({ f: 'read', key });
    if (read.kind === 'ok' && read.value === null) return true;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return false;
}
