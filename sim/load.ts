/**
 * The load of a simulated run: sessions with one operation at a time each, driven by the shipped generators through the shipped
 * client core. Everything is a call on the event heap; nothing here awaits.
 *
 * Invariant: an operation stands in the history before it is sent. A result becomes a completion by the adapter that the
 * containers use, so an outcome in doubt can never be called a failure here.
 */
import { callOf, completionOf } from '../harness/systems/zaris-completions.ts';
import type { Prng } from '../lib/prng.ts';
import type { Completion, Operation, Workload } from '../workloads/port.ts';
import { operationResult } from '../zaris/client/result.ts';
import type { SimClient } from './client-host.ts';
import type { SimHistory } from './history.ts';
import type { SimKeyBook } from './key-book.ts';
import type { World } from './world.ts';

/** Pause of a session that has nothing to do now, ms. */
const idleMs = 50;

/** Nanoseconds of the history for a virtual time. */
export const nsOf = (atMs: number): number => Math.round(atMs * 1e6);

export interface LoadParts {
  readonly world: World;
  readonly history: SimHistory;
  readonly keys: SimKeyBook;
  readonly workload: Workload;
  /** One per session; several sessions may share one client. */
  readonly clients: readonly SimClient[];
  readonly random: Prng;
  /** Mean pause between two operations of a session, ms. */
  readonly thinkMs: number;
  readonly maxOperations: number;
  readonly timeoutMs: number;
  /** Told of every completion. */
  readonly onCompleted?: (operation: Operation, completion: Completion) => void;
}

/** Runs one operation under the history. */
export function runOperation(
  parts: Pick<LoadParts, 'world' | 'history' | 'keys' | 'timeoutMs'>,
  call: {
    readonly client: SimClient;
    readonly session: number;
    readonly operation: Operation;
    readonly canary?: boolean;
  },
  done: (completion: Completion, operationId: number) => void,
): void {
  const { world, history, keys } = parts;
  const { client, session, operation } = call;
  const operationId = history.intent(session, operation, nsOf(world.nowMs), call.canary ?? false);
  const partition = keys.begin(operation.key);
  client.call(
    callOf(operation),
    (result) => {
      const completion = completionOf(operation, operationResult(result));
      history.outcome(operationId, completion, nsOf(world.nowMs));
      keys.end(partition);
      done(completion, operationId);
    },
    parts.timeoutMs,
  );
}

export class SimLoad {
  private readonly parts: LoadParts;
  private stopping = false;
  /** Sessions with an operation under way. */
  open = 0;
  started = 0;

  constructor(parts: LoadParts) {
    this.parts = parts;
  }

  start(): void {
    for (const [session, client] of this.parts.clients.entries()) {
      const random = this.parts.random.fork(`session ${session}`);
      this.later(session, client, random, random.exponential(this.parts.thinkMs));
    }
  }

  /** Lets the open operations end and starts no more. */
  stop(): void {
    this.stopping = true;
  }

  private later(session: number, client: SimClient, random: Prng, afterMs: number): void {
    const { world } = this.parts;
    world.at(world.nowMs + afterMs, () => this.next(session, client, random));
  }

  private next(session: number, client: SimClient, random: Prng): void {
    const { parts } = this;
    if (this.stopping || this.started >= parts.maxOperations) return;
    const operation = parts.workload.next(session, parts.history.nextOperationId);
    if (operation === null) {
      this.later(session, client, random, idleMs);
      return;
    }
    this.started += 1;
    this.open += 1;
    runOperation(parts, { client, session, operation }, (completion, operationId) => {
      this.open -= 1;
      parts.workload.completed(session, operationId, operation, completion);
      parts.onCompleted?.(operation, completion);
      this.later(session, client, random, random.exponential(parts.thinkMs));
    });
  }
}
