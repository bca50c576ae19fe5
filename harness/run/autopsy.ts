/**
 * Asks every replica directly for its own copy of keys, after it has applied what the primary had committed.
 *
 * A replica that does not answer, or has not caught up, is recorded as such: missing evidence, not agreement. What was committed only a copy
 * that is primary can say: a node that was restarted meanwhile is empty, knows of nothing committed, and would make every gap look complete.
 * Before a key is retired only complete answers under one and the same primary are recorded: without them it stays, and is asked for again,
 * at the latest at the end.
 */
import type { PartitionStatus, SystemStatus } from '../../chaos/ports.ts';
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
  readonly system: Pick<RunningSystem, 'peek' | 'status'>;
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

/** Asks every replica of the partition for these keys, in batches, and records every answer and every silence. `status` must be fresh. */
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
    const first = await peek(options, primary, partition, batch, (copy) => copy.role === 'primary');
    const committed = first?.role === 'primary' ? first.commitSeq : null;
    const answers = await Promise.all(
      others.map((nodeId) => peek(options, nodeId, partition, batch, (copy) => copy.applied[1] >= (committed ?? 0))),
    );
    const copies = [first, ...answers];
    const current = copies.filter((peeked) => peeked !== null && committed !== null && peeked.applied[1] >= committed);
    asked += copies.length;
    answered += current.length;
    if (options.phase === 'retire') {
      const isComplete = current.length === copies.length;
      if (!isComplete) continue;
      if (!(await isUnmoved(options, known))) {
        answered -= current.length;
        continue;
      }
    }
    for (const [index, nodeId] of [primary, ...others].entries()) {
      record(options, nodeId, partition, batch, copies[index] ?? null, committed);
    }
    await options.ledger.flush();
  }
  return { asked, answered };
}

/** True when the partition has the primary that it had, in the same term: no answer can be of another reign. */
async function isUnmoved({ system }: AutopsyOptions, { partition, primary, term }: PartitionStatus): Promise<boolean> {
  const status = await system.status.status();
  const now = status?.partitions.find((each) => each.partition === partition);
  return now !== undefined && now.primary === primary && now.term === term;
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
  if (peeked === null || commitSeq === null) {
    const reason = peeked === null ? 'no answer' : 'no primary said what was committed';
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
          reason,
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

/** Asks until the copy is as it should be, within a bound; the last answer, whatever it is. */
async function peek(
  options: AutopsyOptions,
  nodeId: string,
  partition: number,
  keys: readonly string[],
  isGood: (copy: Peeked) => boolean,
): Promise<Peeked | null> {
  const untilMs = options.clock.nowMs() + catchUpLimitMs;
  let peeked: Peeked | null = null;
  for (let silences = 0; ;) {
    const answer = await options.system.peek(nodeId, partition, keys);
    if (answer === null) silences++;
    else peeked = answer;
    if (answer !== null && isGood(answer)) return answer;
    if (silences >= maxTries || options.clock.nowMs() > untilMs || options.signal.aborted) return peeked;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
