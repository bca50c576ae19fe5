/**
 * Retires finished keys so that a run of hours stays within its cap of live keys: each is read through the client and from
 * every replica, recorded, and only then deleted by a ledgered delete.
 *
 * Invariant: a key leaves the register only after its delete was acknowledged; until then the final read-back asks for it.
 * Retiring a key whose partition saw no failover since is recorded as unexposed, so that it strengthens no bound.
 */
import type { StoreClient } from '../../workloads/port.ts';
import type { RunningSystem } from '../systems/system.ts';
import { askReplicas } from './autopsy.ts';
import type { EpochWatch } from './epoch-watch.ts';
import type { Executor } from './executor.ts';
import type { KeyRegister } from './key-register.ts';
import type { LiveCheck } from './live-check.ts';
import { type RunLedger, unawaited } from './ports.ts';
import { readBack } from './read-back.ts';
import type { RunClock } from './run-clock.ts';

/** Keys of one partition that are retired together. */
const batchKeys = 64;
/** Share of the cap above which keys are retired, exposed ones first. */
const startShare = 0.5;
/** Share of the cap above which unexposed keys are retired too. */
const unexposedShare = 0.8;
const idleMs = 200;

export interface RetirerOptions {
  readonly executor: Executor;
  readonly keys: KeyRegister;
  readonly watch: EpochWatch;
  readonly system: RunningSystem;
  readonly ledger: RunLedger;
  readonly liveCheck: LiveCheck;
  readonly clock: RunClock;
  readonly client: StoreClient;
  /** Session number of its deletes. */
  readonly session: number;
  readonly partitionCount: number;
  readonly signal: AbortSignal;
}

/** Runs until `signal` is aborted. */
export async function retireKeys(options: RetirerOptions): Promise<void> {
  const { keys, signal } = options;
  while (!signal.aborted) {
    const partition = keys.liveCount > keys.maxLiveKeys * startShare ? choosePartition(options) : null;
    if (partition === null) {
      await new Promise((resolve) => setTimeout(resolve, idleMs));
      continue;
    }
    await retireBatch(options, partition.index, partition.exposed);
  }
}

/** The partition with most finished keys that have lived through a failover; near the cap, with most finished keys. */
function choosePartition(options: RetirerOptions): { readonly index: number; readonly exposed: boolean } | null {
  const { keys, watch } = options;
  let best: { index: number; exposed: boolean } | null = null;
  let bestCount = 0;
  for (let index = 0; index < options.partitionCount; index++) {
    const failoverMs = watch.lastFailoverOf(index);
    const count = failoverMs === null ? 0 : keys.finishedBefore(index, failoverMs);
    if (count > bestCount) [best, bestCount] = [{ index, exposed: true }, count];
  }
  if (best !== null || keys.liveCount < keys.maxLiveKeys * unexposedShare) return best;
  for (let index = 0; index < options.partitionCount; index++) {
    const count = keys.finishedBefore(index, Infinity);
    if (count > bestCount) [best, bestCount] = [{ index, exposed: false }, count];
  }
  return best;
}

async function retireBatch(options: RetirerOptions, partition: number, exposed: boolean): Promise<void> {
  const { executor, keys, watch, system, ledger, clock, client, session, signal, liveCheck } = options;
  const beforeMs = exposed ? (watch.lastFailoverOf(partition) ?? 0) : Infinity;
  const batch = keys.takeFinished(partition, batchKeys, beforeMs);
  const read = new Set<string>();
  await readBack({
    ledger,
    clock,
    signal,
    clients: [client],
    phase: 'retire',
    keys: batch,
    expected: batch.length,
    onRead: (key, completion) => {
      liveCheck.saw({ f: 'read', key }, completion);
      if (completion.kind === 'ok') read.add(key);
    },
  });
  const readable = batch.filter((key) => read.has(key));
  // Asked for now: reading may have taken long, and nodes fell and came back meanwhile.
  const status = await system.status.status();
  const copies =
    status === null
      ? null
      : await askReplicas({ system, ledger, clock, phase: 'retire', signal }, status, partition, readable);
  const complete = copies !== null && copies.answered === copies.asked;
  for (const key of batch) {
    if (!complete || !read.has(key) || signal.aborted) {
      keys.finished(key);
      continue;
    }
    liveCheck.forget(key);
    unawaited(ledger.retire({ key, atNs: clock.nowNs(), exposed }));
    const deleted = await executor.run(client, session, { f: 'delete', key });
    // A value that had expired was gone already.
    const isGone = deleted.kind === 'ok' || (deleted.kind === 'fail' && deleted.why === 'condition');
    if (!isGone) continue;
    keys.retired(key);
    unawaited(ledger.release(key));
  }
  if (!complete && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, idleMs));
}
