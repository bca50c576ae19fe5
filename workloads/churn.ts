/**
 * Put and delete churn: keys that come and go all the time. A deleted value that is seen again was resurrected, typically
 * by a replica that missed the delete and was promoted.
 */
import { SessionStreams, type WorkloadContext } from './context.ts';
import { KeyPool } from './key-pool.ts';
import type { Completion, Operation, Workload } from './port.ts';
import { learnRegister } from './registers.ts';

/** Share of reads, whatever the run's read ratio: without reads a resurrection would go unseen until the end. */
const minReadShare = 0.3;

export class Churn implements Workload {
  readonly name = 'churn';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly pool: KeyPool;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
    this.pool = new KeyPool(context, 'd');
  }

  next(session: number, operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const slot = this.pool.take(session, prng);
    if (slot === null) return null;
    const { key } = slot;
    if (prng.chance(Math.max(minReadShare, this.context.readRatio))) return { f: 'read', key };
    if (slot.present === true) return { f: 'delete', key };
    return { f: 'write', key, value: this.context.values.encode(operationId) };
  }

  completed(session: number, _operationId: number, operation: Operation, completion: Completion): void {
    learnRegister(this.pool.holding(session), operation, completion);
    this.pool.release(session);
  }
}
