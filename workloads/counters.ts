/**
 * Counters: additions of small positive numbers, and reads. The final sum must lie between the acknowledged additions and
 * those plus the unknown ones: below is a lost addition, above a doubled one.
 */
import { SessionStreams, type WorkloadContext } from './context.ts';
import { KeyPool } from './key-pool.ts';
import type { Completion, Operation, Workload } from './port.ts';

/** Largest single addition. */
const maxDelta = 9;

export class Counters implements Workload {
  readonly name = 'counters';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly pool: KeyPool;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
    this.pool = new KeyPool(context, 'n');
  }

  next(session: number, _operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const slot = this.pool.take(session, prng);
    if (slot === null) return null;
    if (prng.chance(this.context.readRatio)) return { f: 'read', key: slot.key };
    return { f: 'add', key: slot.key, delta: prng.between(1, maxDelta) };
  }

  completed(session: number, _operationId: number, _operation: Operation, _completion: Completion): void {
    this.pool.release(session);
  }
}
