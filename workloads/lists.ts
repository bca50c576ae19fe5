/**
 * List appends by compare-and-set: the value of a key is the list of the values that were appended, in order, each naming
 * its operation. An acknowledged append missing from a later list is a loss, one that stands twice a duplicate.
 */
import { SessionStreams, type WorkloadContext } from './context.ts';
import { KeyPool, type Slot } from './key-pool.ts';
import type { Completion, Operation, Workload } from './port.ts';
import { learnRegister } from './registers.ts';

/** Stands between the elements of a list value. */
export const listSeparator = ' ';
/** A list of this many elements is finished, so that values stay short. */
export const maxListLength = 24;

/** The elements of a list value, oldest first. */
export const listElements = (value: string): string[] => value.split(listSeparator);

export class Lists implements Workload {
  readonly name = 'lists';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly pool: KeyPool;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
    this.pool = new KeyPool(context, 'l');
  }

  next(session: number, operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const slot = this.pool.take(session, prng);
    if (slot === null) return null;
    const { key } = slot;
    // A version without its value (after a failed condition) must be read before it can be appended to.
    if (prng.chance(this.context.readRatio) || (slot.newest !== null && slot.value === null)) return { f: 'read', key };
    const element = this.context.values.element(operationId);
    if (slot.newest === null || slot.value === null) return { f: 'create', key, value: element };
    return { f: 'cas', key, value: slot.value + listSeparator + element, expected: slot.newest };
  }

  completed(session: number, _operationId: number, operation: Operation, completion: Completion): void {
    const slot = this.pool.holding(session);
    learnRegister(slot, operation, completion);
    this.pool.release(session, isFull(slot));
  }
}

function isFull(slot: Slot): boolean {
  return slot.value !== null && listElements(slot.value).length >= maxListLength;
}
