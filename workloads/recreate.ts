/**
 * Keys that are created, deleted and created again by several sessions at once. Whoever loses such a race is told so; if its
 * request took effect later all the same, a value would be read that its writer was told it had not written, or one would be gone
 * that nobody deleted.
 */
import { SessionStreams, type WorkloadContext } from './context.ts';
import { KeyPool } from './key-pool.ts';
import type { Completion, Operation, Workload } from './port.ts';

/** Keys raced for at a time; few, so that creates and deletes of one key meet. */
const racedKeys = 4;
/** Share of reads, whatever the run's read ratio: the next delete takes the evidence away. */
const minReadShare = 0.3;
/** Of the operations that do not read; the others create. More creates than deletes, so that many are refused. */
const deleteShare = 0.4;

export class Recreate implements Workload {
  readonly name = 'recreate';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly pool: KeyPool;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
    this.pool = new KeyPool({ ...context, distribution: 'uniform' }, 'k', racedKeys);
  }

  next(session: number, operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const slot = this.pool.take(session, prng);
    if (slot === null) return null;
    const { key } = slot;
    if (prng.chance(Math.max(minReadShare, this.context.readRatio))) return { f: 'read', key };
    if (prng.chance(deleteShare)) return { f: 'delete', key };
    return { f: 'create', key, value: this.context.values.encode(operationId) };
  }

  completed(session: number, _operationId: number, _operation: Operation, _completion: Completion): void {
    this.pool.release(session);
  }
}
