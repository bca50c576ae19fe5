/**
 * Runs one operation under the ledger: intent committed, then sent, then the outcome handed over.
 *
 * Invariant: nothing reaches the store without a committed intent, and whatever a client throws is `info`. If either broke,
 * the history would lack a write that took effect, or call one failed that did.
 */
import type { Completion, Operation, StoreClient } from '../../workloads/port.ts';
import { messageOf } from '../errors.ts';
import type { ClientAudit } from './client-audit.ts';
import type { KeyRegister } from './key-register.ts';
import type { LiveCheck } from './live-check.ts';
import { type RunLedger, unawaited } from './ports.ts';
import type { RunClock } from './run-clock.ts';
import type { Tally } from './tally.ts';

export interface ExecutorOptions {
  readonly ledger: Pick<RunLedger, 'intent' | 'outcome' | 'nextOperationId'>;
  readonly clock: RunClock;
  readonly keys: Pick<KeyRegister, 'begin' | 'end'>;
  readonly tally: Tally;
  readonly liveCheck: LiveCheck;
  readonly audit: ClientAudit;
  readonly onAcknowledged: (partition: number, node: string) => void;
}

export class Executor {
  private readonly options: ExecutorOptions;
  private reservedId: number | null = null;
  /** When each session's open operation was sent; what a stuck client is noticed by. */
  private readonly openSince = new Map<number, number>();

  constructor(options: ExecutorOptions) {
    this.options = options;
  }

  /** The id that the next operation will get; a value may be made from it in the same turn. */
  get nextOperationId(): number {
    return (this.reservedId ??= this.options.ledger.nextOperationId());
  }

  /** Sessions whose operation has been open for longer than `ageMs`. */
  stuckSessions(ageMs: number): number[] {
    const beforeMs = this.options.clock.nowMs() - ageMs;
    return [...this.openSince].filter(([, sinceMs]) => sinceMs < beforeMs).map(([session]) => session);
  }

  /** Runs `operation` under the next id. Rejects only when the ledger does. A canary is kept out of the tally. */
  async run(client: StoreClient, session: number, operation: Operation, canary = false): Promise<Completion> {
    const { ledger, clock, keys, tally, liveCheck, audit } = this.options;
    const operationId = this.nextOperationId;
    this.reservedId = null;
    keys.begin(operation.key);
    tally.inFlight++;
    try {
      const intent = { operationId, session, operation, atNs: clock.nowNs() };
      await ledger.intent(canary ? { ...intent, canary } : intent);
      const invokedAtMs = clock.nowMs();
      this.openSince.set(session, invokedAtMs);
      const completion = audit.taken(await settled(client, operation));
      unawaited(ledger.outcome({ session, completion, invokeNs: clock.nsOf(invokedAtMs), returnNs: clock.nowNs() }));
      if (!canary) tally.ended(operation, completion);
      liveCheck.saw(operation, completion, canary);
      if (completion.kind === 'ok' && operation.f !== 'read' && completion.partition !== undefined) {
        this.options.onAcknowledged(completion.partition, completion.node ?? '');
      }
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
