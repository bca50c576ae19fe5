/**
 * Retires finished keys so that a run of hours stays within its cap of live keys: each is read through the client and from every
 * replica, recorded, and only then deleted by a ledgered delete. A key leaves the book only after its delete was settled.
 */
import { present } from '../lib/assert.ts';
import { type PartitionId, partitionId } from '../zaris/model/ids.ts';
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

type Group = readonly [PartitionId, readonly string[]];

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
    const groups = Map.groupBy(batch, (key) => partitionId(partitionOf(key, options.partitions)));
    this.retireGroups([...groups], 0);
  }

  private retireGroups(groups: readonly Group[], index: number): void {
    const group = groups[index];
    if (group === undefined) this.later();
    else this.retireGroup(group, () => this.retireGroups(groups, index + 1));
  }

  /** Keys of one partition: all are read, then every replica is asked, then one after the other is deleted. */
  private retireGroup([partition, batch]: Group, next: () => void): void {
    const { run, client } = this;
    // A copy lags until it hears of the last commit. What it would say now is no evidence, and no key need be read for it.
    if (this.isStopped || !isLevel(run, partition)) {
      this.giveBack(batch);
      next();
      return;
    }
    const read: string[] = [];
    let open = batch.length;
    for (const key of batch) {
      readKey(run, { client, key, phase: 'retire', tries: readTries }, (completion) => {
        if (completion.kind === 'ok') read.push(key);
        else this.giveBack([key]);
        if (--open === 0) this.retireRead(partition, read, next);
      });
    }
  }

  private retireRead(partition: PartitionId, batch: readonly string[], next: () => void): void {
    const { run } = this;
    if (batch.length > 0 && isLevel(run, partition) && askReplicas(run, partition, batch, 'retire'))
      this.deleteNext(batch, 0, next);
    else {
      this.giveBack(batch);
      next();
    }
  }

  /** One after the other: the session has one operation open at a time. */
  private deleteNext(batch: readonly string[], index: number, next: () => void): void {
    const key = batch[index];
    if (key === undefined) {
      next();
      return;
    }
    const { run, client, session } = this;
    const { world, history, keys } = run;
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
        this.deleteNext(batch, index + 1, next);
      },
    );
  }

  /** To be retired another time. */
  private giveBack(batch: readonly string[]): void {
    for (const key of batch) this.run.keys.finished(key);
  }
}
