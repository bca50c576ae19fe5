/**
 * Retires finished keys so that a run of hours stays within its cap of live keys: each is read through the client and from every
 * replica, recorded, and only then deleted by a ledgered delete. A key leaves the book only after its delete was settled.
 */
import { present } from '../lib/assert.ts';
import { partitionId } from '../zaris/model/ids.ts';
import { partitionOf } from '../zaris/model/segments.ts';
import type { SimClient } from './client-host.ts';
import { askReplicas, isLevel, readKey } from './finish.ts';
import { nsOf, runOperation } from './load.ts';
import type { SimRun } from './run-seed.ts';

/** Share of the cap above which keys are retired. */
const startShare = 0.5;
const batchKeys = 64;
const everyMs = 500;
const readTries = 3;

export class Retirer {
  private readonly run: SimRun;
  private readonly session: number;
  private readonly client: SimClient;
  private isStopped = false;

  constructor(run: SimRun, session: number) {
    this.run = run;
    this.session = session;
    this.client = present(run.clients[0], 'client');
    this.later();
  }

  stop(): void {
    this.isStopped = true;
  }

  private later(): void {
    this.run.world.at(this.run.world.nowMs + everyMs, () => this.look());
  }

  private look(): void {
    const { keys, options } = this.run;
    if (this.isStopped) return;
    const batch = keys.liveCount > options.maxLiveKeys * startShare ? keys.takeFinished(batchKeys) : [];
    if (batch.length === 0) this.later();
    else this.retire(batch, 0);
  }

  /** One after the other: the session has one operation open at a time. */
  private retire(batch: readonly string[], index: number): void {
    const key = batch[index];
    if (key === undefined) {
      this.later();
      return;
    }
    const { run, client, session } = this;
    const { world, history, keys } = run;
    const next = (): void => this.retire(batch, index + 1);
    const giveBack = (): void => {
      keys.finished(key);
      next();
    };
    if (this.isStopped) return giveBack();
    const partition = partitionId(partitionOf(key, run.options.partitions));
    readKey(run, { client, key, phase: 'retire', tries: readTries }, (completion) => {
      // A copy that lags is asked another time: what it would say now is no evidence.
      if (completion.kind !== 'ok' || !isLevel(run, partition) || !askReplicas(run, partition, [key], 'retire'))
        return giveBack();
      history.retire({ key, atNs: nsOf(world.nowMs), exposed: false });
      runOperation(
        { ...run, timeoutMs: run.options.requestTimeoutMs },
        { client, session, operation: { f: 'delete', key } },
        (deleted) => {
          // A value that had expired was gone already. A delete in doubt leaves the key to the final read-back.
          if (deleted.kind === 'ok' || (deleted.kind === 'fail' && deleted.why === 'condition')) {
            keys.retired(key);
            history.released(key);
          }
          next();
        },
      );
    });
  }
}
