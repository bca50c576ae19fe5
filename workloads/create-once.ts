/**
 * Create-once: several sessions race to create the same key; at most one may win, and whoever won stays. A retried create
 * that conflicts with itself, two winners, or a winner that is replaced are findings.
 */
import { SessionStreams, type WorkloadContext } from './context.ts';
import { KeyPool } from './key-pool.ts';
import type { Completion, Operation, Workload } from './port.ts';

/** Operations on one key, creates and reads together, before it is finished. */
const operationsPerRace = 8;
/** Keys raced for at a time; few, so that creates really meet. */
const racedKeys = 16;

export class CreateOnce implements Workload {
  readonly name = 'create';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly pool: KeyPool;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
    this.pool = new KeyPool(
      { ...context, operationsPerKey: operationsPerRace, distribution: 'uniform' },
      'o',
      racedKeys,
    );
  }

  next(session: number, operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const slot = this.pool.take(session, prng);
    if (slot === null) return null;
    if (slot.uses > operationsPerRace / 2 && prng.chance(0.5)) return { f: 'read', key: slot.key };
    return { f: 'create', key: slot.key, value: this.context.values.encode(operationId) };
  }

  completed(session: number, _operationId: number, _operation: Operation, _completion: Completion): void {
    this.pool.release(session);
  }
}
