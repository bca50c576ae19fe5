/**
 * Asks every replica directly for its own copy of keys, after it has applied what the primary had committed.
 *
 * A replica that does not answer, or has not caught up, is recorded as such: missing evidence, not agreement. Before a key is retired only
 * complete answers are recorded: without them it stays, and is asked for again, at the latest at the end.
 */
import type { SystemStatus } from '../../chaos/ports.ts';
import type { Phase } from '../../ledger/rows.ts';
import type { Peeked, RunningSystem } from '../systems/system.ts';
import { type RunLedger, unawaited } from './ports.ts';
import type { RunClock } from './run-clock.ts';

/** Keys asked for at once. */
export const keysPerPeek = 500;
/** How long a replica may take to apply what the primary had committed, ms. */
const catchUpLimitMs = 5_000;
const pollMs = 50;
/** Times that a silent replica is asked. */
const maxTries = 3;

export interface AutopsyOptions {
  readonly system: Pick<RunningSystem, 'peek'>;
  readonly ledger: Pick<RunLedger, 'replicaRead' | 'digest' | 'flush'>;
  readonly clock: RunClock;
  readonly phase: Phase;
  readonly signal: AbortSignal;
}

export interface AutopsyResult {
  /** Answers expected and got, one per replica and batch of keys. */
  readonly asked: number;
  readonly answered: number;
}

/** Asks every replica of the partition for these keys, in batches, and records every answer and every silence. */
export async function askReplicas(
  options: AutopsyOptions,
  status: SystemStatus,
  partition: number,
  keys: readonly string[],
): Promise<AutopsyResult> {
  const known = status.partitions.find((each) => each.partition === partition);
  const primary = known?.primary ?? null;
  if (known === undefined || primary === null) return { asked: 1, answered: 0 };
  const others = known.replicas.filter((nodeId) => nodeId !== primary);
  let asked = 0;
  let answered = 0;
  for (let from = 0; from < Math.max(1, keys.length) && !options.signal.aborted; from += keysPerPeek) {
    const batch = keys.slice(from, from + keysPerPeek);
    const first = await peek(options, primary, partition, batch, 0);
    const committed = first?.commitSeq ?? null;
    const answers = await Promise.all(others.map((nodeId) => peek(options, nodeId, partition, batch, committed ?? 0)));
    const copies = [first, ...answers];
    const current = copies.filter((peeked) => peeked !== null && committed !== null && peeked.applied[1] >= committed);
    asked += copies.length;
    answered += current.length;
    if (options.phase === 'retire' && current.length < copies.length) continue;
    for (const [index, nodeId] of [primary, ...others].entries()) {
      record(options, nodeId, partition, batch, copies[index] ?? null, committed);
    }
    await options.ledger.flush();
  }
  return { asked, answered };
}

function record(
  options: AutopsyOptions,
  nodeId: string,
  partition: number,
  keys: readonly string[],
  peeked: Peeked | null,
  commitSeq: number | null,
): void {
  const { ledger, clock, phase } = options;
  const atNs = clock.nowNs();
  if (peeked === null) {
    for (const key of keys) {
      unawaited(
        ledger.replicaRead({
          key,
          phase,
          node: nodeId,
          incarnation: null,
          role: 'unknown',
          atNs,
          kind: 'missing',
          reason: 'no answer',
        }),
      );
    }
    return;
  }
  const { incarnation, role } = peeked;
  for (const { key, value, version } of peeked.keys) {
    unawaited(
      ledger.replicaRead({
        key,
        phase,
        node: nodeId,
        incarnation,
        role,
        atNs,
        kind: 'answered',
        value,
        version,
        appliedSeq: peeked.applied[1],
        commitSeq,
      }),
    );
  }
  if (peeked.digest === '') return;
  const [appliedTerm, appliedSeq] = peeked.applied;
  unawaited(
    ledger.digest({
      partition,
      node: nodeId,
      incarnation,
      role,
      atNs,
      appliedTerm,
      appliedSeq,
      digest: peeked.digest,
      keyCount: peeked.keyCount,
    }),
  );
}

/** Asks until the copy has applied `committed`, within a bound; the last answer, whatever it is. */
async function peek(
  options: AutopsyOptions,
  nodeId: string,
  partition: number,
  keys: readonly string[],
  committed: number,
): Promise<Peeked | null> {
  const untilMs = options.clock.nowMs() + catchUpLimitMs;
  let peeked: Peeked | null = null;
  for (let silences = 0; ;) {
    const answer = await options.system.peek(nodeId, partition, keys);
    if (answer === null) silences++;
    else peeked = answer;
    if (answer !== null && answer.applied[1] >= committed) return answer;
    if (silences >= maxTries || options.clock.nowMs() > untilMs || options.signal.aborted) return peeked;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
