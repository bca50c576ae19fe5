/**
 * Protocol moments: counts the cluster's events until the one that a fault waits for.
 *
 * Invariant: an event counts only after the last `since` event of the same partition, and only once per waiting fault. If old
 * events counted, "in the middle of catch-up" would mean "some time after the first catch-up".
 */
import type { ClusterEvent, EventSource } from './ports.ts';
import type { Moment, TriggerStage } from './schedule.ts';

type EventMoment = Extract<Moment, { kind: 'after-event' }>;

const partitionOf = (event: ClusterEvent): number | null =>
  typeof event.fields['partition'] === 'number' ? event.fields['partition'] : null;

/** Counts for one fault; pure but for its counters. Partitions are counted apart. */
export class MomentCounter {
  private readonly moment: EventMoment;
  /** Per partition (null: events without one): events since the last `since`; absent until the first `since`. */
  private readonly counts = new Map<number | null, number>();

  constructor(moment: EventMoment) {
    this.moment = moment;
  }

  /** True when this event is the awaited one. */
  observe(event: ClusterEvent): boolean {
    const { moment } = this;
    const partition = partitionOf(event);
    if (moment.partition !== null && partition !== moment.partition) return false;
    if (moment.since !== null && event.name === moment.since) {
      this.counts.set(partition, 0);
      if (moment.event !== moment.since) return false;
    }
    if (event.name !== moment.event) return false;
    const before = this.counts.get(partition);
    if (moment.since !== null && before === undefined) return false;
    this.counts.set(partition, (before ?? 0) + 1);
    // Without a partition the events of all partitions count together.
    const total =
      moment.since === null && moment.partition === null
        ? [...this.counts.values()].reduce((sum, count) => sum + count, 0)
        : (before ?? 0) + 1;
    return total >= moment.count;
  }
}

/** Why a wait ended. `partition` is that of the event that came. */
export type Arrival =
  | { readonly kind: 'came'; readonly partition: number | null }
  | { readonly kind: 'never'; readonly reason: string };

interface StageWaiter {
  readonly faultId: string;
  readonly stage: TriggerStage;
  readonly resolve: (arrival: Arrival) => void;
}

/** Where faults wait for events of the cluster and for stages of other faults. */
export class TriggerBoard {
  private readonly source: EventSource;
  private readonly reached = new Set<string>();
  private readonly over = new Map<string, string>();
  private waiters: StageWaiter[] = [];

  constructor(source: EventSource) {
    this.source = source;
  }

  /** Resolves when the moment comes, or with `never` once `signal` is aborted. */
  waitForEvent(moment: EventMoment, signal: AbortSignal): Promise<Arrival> {
    const counter = new MomentCounter(moment);
    return new Promise((resolve) => {
      const finish = (arrival: Arrival): void => {
        unsubscribe();
        signal.removeEventListener('abort', onAbort);
        resolve(arrival);
      };
      const onAbort = (): void => finish({ kind: 'never', reason: `${moment.event} never came` });
      const unsubscribe = this.source.subscribe((event) => {
        if (counter.observe(event)) finish({ kind: 'came', partition: partitionOf(event) });
      });
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort);
    });
  }

  /** Resolves when the other fault reaches the stage, or with `never` when it cannot any more. */
  waitForStage(faultId: string, stage: TriggerStage, signal: AbortSignal): Promise<Arrival> {
    if (this.reached.has(`${faultId} ${stage}`)) return Promise.resolve({ kind: 'came', partition: null });
    const ended = this.over.get(faultId);
    if (ended !== undefined) return Promise.resolve({ kind: 'never', reason: ended });
    return new Promise((resolve) => {
      this.waiters.push({ faultId, stage, resolve });
      const onAbort = (): void => resolve({ kind: 'never', reason: `${faultId} was not ${stage} in time` });
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** To be told of every stage. */
  stageReached(faultId: string, stage: TriggerStage): void {
    this.reached.add(`${faultId} ${stage}`);
    this.release((waiter) => waiter.faultId === faultId && waiter.stage === stage, { kind: 'came', partition: null });
  }

  /** To be told when a fault ends, however it ends; stages it has not reached by then never come. */
  faultOver(faultId: string, how: string): void {
    this.over.set(faultId, `${faultId} ${how}`);
    this.release((waiter) => waiter.faultId === faultId, { kind: 'never', reason: `${faultId} ${how}` });
  }

  private release(test: (waiter: StageWaiter) => boolean, arrival: Arrival): void {
    const released = this.waiters.filter(test);
    this.waiters = this.waiters.filter((waiter) => !test(waiter));
    for (const waiter of released) waiter.resolve(arrival);
  }
}
