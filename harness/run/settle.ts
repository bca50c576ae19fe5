/** Waits until the whole cluster is healthy again; a cluster that does not come back within the limit is `not-recovered`. */
import type { StatusSource, SystemStatus } from '../../chaos/ports.ts';
import type { Clock } from '../../lib/clock.ts';

const pollMs = 200;
/** Healthy for this long without a break counts as settled. */
const calmMs = 1_000;

export type Settled =
  | { readonly kind: 'settled'; readonly status: SystemStatus; readonly afterMs: number }
  /** `status` is the last that was told, null when none was. */
  | { readonly kind: 'not-settled'; readonly reason: string; readonly status: SystemStatus | null };

/** One sentence that says what keeps the status from being healthy, or null when it is. */
export function unhealthyReason(status: SystemStatus | null): string | null {
  if (status === null) return 'no node gave a confirmed status';
  if (status.partitions.length === 0) return 'the cluster has no partitions';
  const dead = status.nodes.filter((node) => !node.alive).map((node) => node.nodeId);
  if (dead.length > 0) return `nodes ${dead.join(', ')} are not alive`;
  // What is Lost stays so: waiting changes nothing, and the verifier has its own word on it.
  const bad = status.partitions.filter(
    (partition) => partition.health !== 'Lost' && (partition.health !== 'Healthy' || !partition.serving),
  );
  if (bad.length === 0) return null;
  const shown = bad
    .slice(0, 4)
    .map((partition) => `${partition.partition} ${partition.health}`)
    .join(', ');
  return `${bad.length} of ${status.partitions.length} partitions are not healthy (${shown}${bad.length > 4 ? ', …' : ''})`;
}

/** Resolves when the cluster has been healthy for a while, or when `limitMs` has passed or `signal` is aborted. */
export async function settle(
  source: StatusSource,
  clock: Clock,
  limitMs: number,
  signal?: AbortSignal,
): Promise<Settled> {
  const startedMs = clock.nowMs();
  let healthySinceMs: number | null = null;
  for (;;) {
    const status = await source.status();
    const nowMs = clock.nowMs();
    const reason = unhealthyReason(status);
    if (reason !== null) healthySinceMs = null;
    else healthySinceMs ??= nowMs;
    if (status !== null && healthySinceMs !== null && nowMs - healthySinceMs >= calmMs) {
      return { kind: 'settled', status, afterMs: healthySinceMs - startedMs };
    }
    if (nowMs - startedMs > limitMs || signal?.aborted === true) {
      return { kind: 'not-settled', reason: reason ?? 'it did not stay healthy', status };
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
