/**
 * The load: many sessions, each one operation at a time, until told to stop.
 *
 * A session's read may overlap a delete by the retirer only after the generator finished the key; generators promise that.
 */
import type { Clock } from '../../lib/clock.ts';
import type { StoreClient, Workload } from '../../workloads/port.ts';
import type { Executor } from './executor.ts';
import { Pacer } from './pacer.ts';

/** Pause of a session that has nothing to do now, ms. */
const idleMs = 10;

export interface LoadOptions {
  readonly workload: Workload;
  readonly executor: Executor;
  readonly clients: readonly StoreClient[];
  readonly clock: Clock;
  readonly ratePerSecond: number;
  readonly maxOperations: number;
}

export class Load {
  private readonly options: LoadOptions;
  private readonly pacer: Pacer;
  private stopping = false;
  private started = 0;
  private running: Promise<void> | null = null;

  constructor(options: LoadOptions) {
    this.options = options;
    this.pacer = new Pacer(options.ratePerSecond, options.clock);
  }

  /** Starts every session. The promise settles when all have ended; it rejects when the ledger fails. */
  start(): Promise<void> {
    this.running ??= this.runAll();
    return this.running;
  }

  /** Lets the open operations end and starts no more. */
  stop(): void {
    this.stopping = true;
    this.pacer.stop();
  }

  private async runAll(): Promise<void> {
    try {
      await Promise.all(this.options.clients.map((client, session) => this.runSession(client, session)));
    } finally {
      this.stop();
    }
  }

  private async runSession(client: StoreClient, session: number): Promise<void> {
    const { workload, executor, maxOperations } = this.options;
    while (!this.stopping) {
      const turn = this.pacer.turn();
      if (turn !== null) await turn;
      if (this.stopping) return;
      if (this.started >= maxOperations) {
        this.stop();
        return;
      }
      const operationId = executor.nextOperationId;
      const operation = workload.next(session, operationId);
      if (operation === null) {
        await new Promise((resolve) => setTimeout(resolve, idleMs));
        continue;
      }
      this.started++;
      const completion = await executor.run(client, session, operation);
      workload.completed(session, operationId, operation, completion);
    }
  }
}
