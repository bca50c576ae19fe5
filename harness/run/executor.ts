/**
 * Runs one operation under the ledger: intent committed, then sent, then the outcome handed over.
 *
 * Invariant: nothing reaches the store without a committed intent, and whatever a client throws is `info`. If either broke,
 * the history would lack a write that took effect, or call one failed that did.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Completion, Operation, StoreClient } from '../../workloads/port.ts';
import { messageOf } from '../errors.ts';
import type { KeyRegister } from './key-register.ts';
import type { LiveCheck } from './live-check.ts';
import type { OperationPurpose, RunLedger } from './ports.ts';
import type { Tally } from './tally.ts';

export interface ExecutorOptions {
  readonly ledger: RunLedger;
  readonly clock: Clock;
  readonly keys: KeyRegister;
  readonly tally: Tally;
  readonly liveCheck: LiveCheck;
  readonly partitionOf: (key: string) => number;
}

export class Executor {
  private readonly options: ExecutorOptions;
  private lastOperationId = 0;
  /** When each session's open operation was sent; what a stuck client is noticed by. */
  private readonly openSince = new Map<number, number>();

  constructor(options: ExecutorOptions) {
    this.options = options;
  }

  /** The id that the next operation will get; ids start at 1 and have no holes. */
  get nextOperationId(): number {
    return this.lastOperationId + 1;
  }

  /** Sessions whose operation has been open for longer than `ageMs`. */
  stuckSessions(ageMs: number): number[] {
    const beforeMs = this.options.clock.nowMs() - ageMs;
    return [...this.openSince].filter(([, sinceMs]) => sinceMs < beforeMs).map(([session]) => session);
  }

  /** Runs `operation` under the next id. Rejects only when the ledger does. */
  async run(client: StoreClient, session: number, purpose: OperationPurpose, operation: Operation): Promise<Completion> {
    const { ledger, clock, keys, tally, liveCheck, partitionOf } = this.options;
    const operationId = ++this.lastOperationId;
    keys.begin(operation.key);
    tally.inFlight++;
    try {
      await ledger.intent({ operationId, session, purpose, partition: partitionOf(operation.key), operation, atMs: clock.nowMs() });
      const invokedAtMs = clock.nowMs();
      this.openSince.set(session, invokedAtMs);
      const completion = await settled(client, operation);
      const returnedAtMs = clock.nowMs();
      ledger.outcome({ operationId, invokedAtMs, returnedAtMs, completion });
      tally.ended(operation, completion);
      tally.losses += liveCheck.saw(operation, completion);
      return completion;
    } finally {
      this.openSince.delete(session);
      tally.inFlight--;
      keys.end(operation.key);
    }
  }
}

async function settled(client: StoreClient, operation: Operation): Promise<Completion> {
  try {
    return await client.execute(operation);
  } catch (error) {
    return { kind: 'info', error: `client threw: ${messageOf(error)}` };
  }
}
