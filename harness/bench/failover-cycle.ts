/**
 * One kill, and one planned handoff there and back, on a cluster under load; and what the writers saw of it.
 *
 * A kill is measured per partition that the victim led: from the victim's death to the first acknowledgement under a later term. A handoff
 * likewise: the longest wait of any single write around the change of owner.
 */
import type { SystemStatus } from '../../chaos/ports.ts';
import { type BenchContext, pause } from './bench-context.ts';
import { HoldWatch } from './handoff-holds.ts';
import type { Acknowledgement, PartitionWriters } from './partition-writers.ts';
import type { ZarisCluster } from './zaris-cluster.ts';

export interface FailoverScene {
  readonly context: BenchContext;
  readonly cluster: ZarisCluster;
  readonly writers: PartitionWriters;
  /** Death of a node as the cluster saw it, where it can; by node id. */
  readonly deaths: Map<string, number>;
}

const wholeTimeoutMs = 90_000;
const pollMs = 200;
const firstAckTimeoutMs = 40_000;
const graceMs = 30_000;

/** What still keeps the cluster from being whole, or null. */
function lacking(status: SystemStatus): string | null {
  const dead = status.nodes.filter(({ alive }) => !alive).map(({ nodeId }) => nodeId);
  if (dead.length > 0) return `${dead.join(', ')} not alive`;
  const odd = status.partitions.filter(
    ({ health, serving, primary, preferredPrimary }) =>
      health !== 'Healthy' || !serving || primary !== preferredPrimary,
  );
  const [first] = odd;
  if (first === undefined) return status.leader === null ? 'no control leader' : null;
  return `${odd.length} partitions, the first ${JSON.stringify(first)}`;
}

/** Waits until every partition is healthy and led by its preferred primary. */
export async function whenWhole(scene: FailoverScene): Promise<SystemStatus> {
  const { context, cluster } = scene;
  const untilMs = performance.now() + wholeTimeoutMs;
  for (;;) {
    const status = await cluster.system.status.status();
    const lack = status === null ? 'no status' : lacking(status);
    if (status !== null && lack === null) return status;
    if (performance.now() > untilMs)
      throw new Error(`the cluster was not whole again after ${wholeTimeoutMs / 1000} s: ${lack}`);
    await pause(pollMs, context.signal);
  }
}

const ledBy = (status: SystemStatus, nodeId: string): Map<number, number> =>
  new Map(
    status.partitions.filter(({ primary }) => primary === nodeId).map(({ partition, term }) => [partition, term]),
  );

/** Waits for the first acknowledgement of each partition under a later term than the given one. */
function firstUnderLaterTerm(scene: FailoverScene, terms: ReadonlyMap<number, number>): Promise<Map<number, number>> {
  const found = new Map<number, number>();
  const { writers, context } = scene;
  return new Promise((resolve, reject) => {
    const finish = (): void => {
      clearTimeout(timer);
      writers.onAcknowledged = () => undefined;
      context.signal.removeEventListener('abort', onAbort);
    };
    const onAbort = (): void => {
      finish();
      reject(context.signal.reason as Error);
    };
    const timer = setTimeout(() => {
      finish();
      reject(
        new Error(
          `${terms.size - found.size} of ${terms.size} partitions had no acknowledged write ${firstAckTimeoutMs / 1000} s after the kill`,
        ),
      );
    }, firstAckTimeoutMs);
    context.signal.addEventListener('abort', onAbort, { once: true });
    writers.onAcknowledged = ({ partition, term, atMs }) => {
      const before = terms.get(partition);
      if (before === undefined || term <= before || found.has(partition)) return;
      found.set(partition, atMs);
      if (found.size < terms.size) return;
      finish();
      resolve(found);
    };
  });
}

/** What one kill cost. */
export interface KillResult {
  readonly victim: string;
  readonly wasLeader: boolean;
  /** Death to first acknowledged write, for each partition that it led. */
  readonly outagesMs: readonly number[];
}

/** Kills, measures, starts the victim again (its way back is not waited for). */
export async function killOnce(scene: FailoverScene, victim: string, status: SystemStatus): Promise<KillResult> {
  const { cluster, deaths } = scene;
  const firsts = firstUnderLaterTerm(scene, ledBy(status, victim));
  firsts.catch(() => undefined);
  deaths.delete(victim);
  const askedAtMs = performance.now();
  await cluster.nodes.kill(victim);
  // A signal that we sent ourselves kills at once; an engine takes its time, and tells when it was done.
  const diedAtMs = deaths.get(victim) ?? askedAtMs;
  const outagesMs = [...(await firsts).values()].map((atMs) => atMs - diedAtMs);
  await cluster.nodes.startNode(victim);
  return { victim, wasLeader: status.leader === victim, outagesMs };
}

/**
 * Silences a node without killing it (its connections stay open), measures, and has it speak again. Counted from the moment of asking: an engine
 * takes some milliseconds of its own.
 */
export async function silenceOnce(
  scene: FailoverScene,
  victim: string,
  status: SystemStatus,
  how: { readonly silence: () => Promise<void>; readonly heal: () => Promise<void> },
): Promise<KillResult> {
  const firsts = firstUnderLaterTerm(scene, ledBy(status, victim));
  firsts.catch(() => undefined);
  const askedAtMs = performance.now();
  await how.silence();
  try {
    const outagesMs = [...(await firsts).values()].map((atMs) => atMs - askedAtMs);
    return { victim, wasLeader: status.leader === victim, outagesMs };
  } finally {
    await how.heal();
  }
}

/** What a planned handoff of some partitions cost their writers: the longest wait of one write per partition. */
export interface HandoffResult {
  readonly awayMs: readonly number[];
  readonly backMs: readonly number[];
  /** Partitions whose write around the change needed more than one attempt: it was refused, not held. */
  readonly refused: number;
  /** What the nodes themselves held writes for, both ways. */
  readonly holdsMs: readonly number[];
  /** The same over a stretch in which nothing happened, for comparison. */
  readonly quietMs: readonly number[];
}

/** Longest wait of a write per partition: of the last before its owner changed, the first after, and those between. */
class WaitWatch {
  private readonly last = new Map<number, Acknowledgement>();
  readonly atChange: number[] = [];
  refused = 0;
  readonly longest = new Map<number, number>();

  constructor(writers: PartitionWriters, partitions: ReadonlySet<number>, terms: ReadonlyMap<number, number>) {
    writers.onAcknowledged = (ack) => {
      if (!partitions.has(ack.partition)) return;
      const waitMs = ack.atMs - ack.startedAtMs;
      const before = this.last.get(ack.partition);
      this.longest.set(ack.partition, Math.max(waitMs, this.longest.get(ack.partition) ?? 0));
      if (ack.term > (before?.term ?? terms.get(ack.partition) ?? 0)) {
        if (ack.attempts > 1) this.refused++;
        this.atChange.push(Math.max(waitMs, before === undefined ? 0 : before.atMs - before.startedAtMs));
      }
      this.last.set(ack.partition, ack);
    };
  }
}

const quietWindowMs = 1_000;

/** Stops a node gracefully, starts it, and waits until it has its partitions back. */
export async function handOffOnce(scene: FailoverScene, nodeId: string, status: SystemStatus): Promise<HandoffResult> {
  const { cluster, writers, context } = scene;
  const led = ledBy(status, nodeId);
  const partitions = new Set(led.keys());
  const quiet = new WaitWatch(writers, partitions, led);
  await pause(quietWindowMs, context.signal);
  await using watch = new HoldWatch(cluster.system);
  const away = new WaitWatch(writers, partitions, led);
  await cluster.nodes.stop(nodeId, graceMs);
  await pause(quietWindowMs, context.signal);
  const between = new Map<number, number>();
  for (const { partition, term } of (await cluster.system.status.status())?.partitions ?? [])
    between.set(partition, term);
  const back = new WaitWatch(writers, partitions, between);
  await cluster.nodes.startNode(nodeId);
  await whenWhole(scene);
  await pause(quietWindowMs, context.signal);
  writers.onAcknowledged = () => undefined;
  return {
    awayMs: away.atChange,
    backMs: back.atChange,
    holdsMs: watch.holds(),
    refused: away.refused + back.refused,
    quietMs: [...quiet.longest.values()],
  };
}
