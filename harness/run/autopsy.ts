/**
 * Asks every replica directly for its own copy of keys, after it has applied what the primary had committed.
 *
 * A replica that does not answer, or has not caught up, is recorded as such: missing evidence, not agreement.
 */
import type { SystemStatus } from '../../chaos/ports.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Peeked, RunningSystem } from '../systems/system.ts';
import type { RunLedger } from './ports.ts';

/** Keys asked for at once. */
export const keysPerPeek = 500;
/** How long a replica may take to apply what the primary had committed, ms. */
const catchUpLimitMs = 5_000;
const pollMs = 50;
const maxTries = 3;

export interface AutopsyOptions {
  readonly system: Pick<RunningSystem, 'peek'>;
  readonly ledger: Pick<RunLedger, 'replicaRead'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface AutopsyResult {
  /** Answers expected and got, one per replica and batch of keys. */
  readonly asked: number;
  readonly answered: number;
}

/** Asks every replica of the partition for these keys, in batches. */
export async function askReplicas(
  options: AutopsyOptions,
  status: SystemStatus,
  partition: number,
  keys: readonly string[],
): Promise<AutopsyResult> {
  const known = status.partitions.find((each) => each.partition === partition);
  if (known === undefined || known.primary === null) return { asked: 1, answered: 0 };
  const { primary } = known;
  const others = known.replicas.filter((nodeId) => nodeId !== primary);
  let asked = 0;
  let answered = 0;
  for (let from = 0; from < Math.max(1, keys.length) && !options.signal.aborted; from += keysPerPeek) {
    const batch = keys.slice(from, from + keysPerPeek);
    const first = await peek(options, primary, partition, batch, 0);
    const committed = first?.commitSeq ?? 0;
    const answers = await Promise.all(others.map((nodeId) => peek(options, nodeId, partition, batch, committed)));
    for (const [index, nodeId] of [primary, ...others].entries()) {
      const peeked = index === 0 ? first : (answers[index - 1] ?? null);
      const caughtUp = first !== null && peeked !== null && peeked.applied[1] >= committed;
      asked++;
      if (caughtUp) answered++;
      options.ledger.replicaRead({ atMs: options.clock.nowMs(), nodeId, partition, keys: batch, peeked, caughtUp });
    }
  }
  return { asked, answered };
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
  for (let tries = 0; ; ) {
    const answer = await options.system.peek(nodeId, partition, keys);
    if (answer === null) tries++;
    else peeked = answer;
    if (answer !== null && answer.applied[1] >= committed) return answer;
    if (tries >= maxTries || options.clock.nowMs() > untilMs || options.signal.aborted) return peeked;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
