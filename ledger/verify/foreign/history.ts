/**
 * A foreign history: operations with their invocation and completion, whatever the file's format, and the pairing of events
 * into operations. Owns the pairing rules; if it were wrong, one client's answer would be judged as another's.
 */

import { UserError } from './user-error.ts';
import type { Value } from './value.ts';

/**
 * `ok`: took effect. `fail`: the format decides (see each reader; readers leave out what did not happen). `info`: unknown,
 * also for an invocation without completion.
 */
export type Outcome = 'ok' | 'fail' | 'info';

/** One operation. Positions number the events of the file and are its real-time order. */
export interface ForeignOperation {
  readonly process: string;
  readonly f: string;
  /** Only kv: the key. */
  readonly key: string | null;
  readonly input: Value;
  /** The completion's value; undefined without completion, or where the completion has none. */
  output: Value | undefined;
  outcome: Outcome;
  readonly invokedAt: number;
  /** Infinity without completion, and for `info`. */
  completedAt: number;
  /** Lines count from 1. */
  readonly invokeLine: number;
  completeLine: number | null;
}

/** One line or map of the file. */
export interface ForeignEvent {
  readonly process: string;
  readonly type: 'invoke' | Outcome;
  readonly f: string;
  readonly key: string | null;
  readonly value: Value | undefined;
  readonly line: number;
}

/** What a reader hands over. */
export interface ForeignHistory {
  /** Operations that say something: without those that did not happen or whose answer is missing by the format's rules. */
  readonly operations: readonly ForeignOperation[];
  /** All operations of the file. */
  readonly total: number;
}

/** Pairs events, given in the file's order. */
export class EventPairing {
  readonly operations: ForeignOperation[] = [];
  private readonly open = new Map<string, ForeignOperation>();
  private position = 0;

  /** The history without the operations for which `saysNothing` holds. */
  without(saysNothing: (operation: ForeignOperation) => boolean): ForeignHistory {
    return {
      operations: this.operations.filter((operation) => !saysNothing(operation)),
      total: this.operations.length,
    };
  }

  /** Throws {@link UserError} for an event that has no place. */
  add(event: ForeignEvent): void {
    const position = this.position++;
    const pending = this.open.get(event.process);
    if (event.type === 'invoke') {
      if (pending !== undefined) {
        throw new UserError(
          `process ${event.process} invokes :${event.f} while its :${pending.f} of line ${pending.invokeLine} is open`,
          event.line,
        );
      }
      const operation: ForeignOperation = {
        process: event.process,
        f: event.f,
        key: event.key,
        input: event.value ?? null,
        output: undefined,
        outcome: 'info',
        invokedAt: position,
        completedAt: Infinity,
        invokeLine: event.line,
        completeLine: null,
      };
      this.operations.push(operation);
      this.open.set(event.process, operation);
      return;
    }
    if (pending === undefined) {
      throw new UserError(`process ${event.process} completes :${event.f} but has nothing open`, event.line);
    }
    if (pending.f !== event.f || pending.key !== event.key) {
      throw new UserError(
        `process ${event.process} completes :${event.f} but its open operation, of line ${pending.invokeLine}, is :${pending.f}` +
          (pending.key === event.key ? '' : ' on another key'),
        event.line,
      );
    }
    this.open.delete(event.process);
    pending.outcome = event.type;
    pending.output = event.value;
    pending.completeLine = event.line;
    if (event.type !== 'info') pending.completedAt = position;
  }
}
