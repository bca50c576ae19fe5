/**
 * Overwritten registers: writes, compare-and-set, reads and deletes by many sessions on shared keys. Finds stale reads,
 * lost updates and resurrected values; most writes are superseded before the end, so reads carry the evidence.
 */
import { learn, SessionStreams, type WorkloadContext } from './context.ts';
import { KeyPool } from './key-pool.ts';
import type { Completion, Operation, Workload } from './port.ts';

/** Of the operations that do not read. The rest are plain writes. */
const casShare = 0.35;
const deleteShare = 0.08;
/** Where the version is known, deletes that name it. */
const conditionalDeleteShare = 0.04;

export class Registers implements Workload {
  readonly name = 'registers';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly pool: KeyPool;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
    this.pool = new KeyPool(context, 'r');
  }

  next(session: number, operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const slot = this.pool.take(session, prng);
    if (slot === null) return null;
    const { key } = slot;
    if (prng.chance(this.context.readRatio)) return { f: 'read', key };
    const choice = prng.float();
    if (choice < conditionalDeleteShare && slot.present === true && slot.newest !== null)
      return { f: 'delete', key, expected: slot.newest };
    if (choice < deleteShare) return { f: 'delete', key };
    const value = this.context.values.encode(operationId);
    if (choice < deleteShare + casShare && slot.present === true && slot.newest !== null) {
      return { f: 'cas', key, value, expected: slot.newest };
    }
    return { f: 'write', key, value };
  }

  completed(session: number, _operationId: number, operation: Operation, completion: Completion): void {
    const slot = this.pool.holding(session);
    learnRegister(slot, operation, completion);
    this.pool.release(session);
  }
}

/** Updates what is known of a plain register (or of any key with whole-value writes) after an operation. */
export function learnRegister(slot: Parameters<typeof learn>[0], operation: Operation, completion: Completion): void {
  if (completion.kind === 'info') return;
  if (completion.kind === 'fail') {
    if (completion.why === 'condition') learn(slot, completion, completion.version ? true : null, null);
    return;
  }
  switch (operation.f) {
    case 'read':
    case 'add':
      learn(slot, completion, completion.value !== null && completion.value !== undefined, completion.value ?? null);
      return;
    case 'write':
    case 'create':
    case 'cas':
      learn(slot, completion, true, operation.value);
      return;
    case 'delete':
      learn(slot, completion, false, null);
  }
}
