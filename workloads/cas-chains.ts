/**
 * Compare-and-set chains: a key is created once and then only ever advanced by compare-and-set on the version last seen.
 * Each acknowledged step names its predecessor, so one lost or reordered step breaks the chain visibly.
 */
import { SessionStreams, type WorkloadContext } from './context.ts';
import { KeyPool } from './key-pool.ts';
import type { Completion, Operation, Workload } from './port.ts';
import { learnRegister } from './registers.ts';

export class CasChains implements Workload {
  readonly name = 'cas';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly pool: KeyPool;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
    this.pool = new KeyPool(context, 'x');
  }

  next(session: number, operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const slot = this.pool.take(session, prng);
    if (slot === null) return null;
    const { key } = slot;
    if (prng.chance(this.context.readRatio)) return { f: 'read', key };
    const value = this.context.values.encode(operationId);
    if (slot.newest !== null && slot.present !== false) return { f: 'cas', key, value, expected: slot.newest };
    return { f: 'create', key, value };
  }

  completed(session: number, _operationId: number, operation: Operation, completion: Completion): void {
    learnRegister(this.pool.holding(session), operation, completion);
    this.pool.release(session);
  }
}
