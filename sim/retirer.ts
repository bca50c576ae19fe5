/**
 * Retires finished keys so that a run of hours stays within its cap of live keys: each is read through the client and from every
 * replica, recorded, and only then deleted by a ledgered delete. A key leaves the book only after its delete was settled.
 */
import { present } from '../lib/assert.ts';
import { type PartitionId, partitionId } from '../zaris/model/ids.ts';
import { partitionOf } from '../zaris/model/segments.ts';
import type { SimClient } from './client-host.ts';
import { askReplicas, committedIn, isLevel, readKey } from './finish.ts';
import { nsOf, runOperation } from './load.ts';
import type { SimRun } from './run-seed.ts';

/** Share of the cap above which keys are retired. */
const startShare = 0.5;
const batchKeys = 256;
const everyMs = 500;
const readTries = 3;
/** How long the copies of what was read are waited for, and how often they are looked at, ms. */
const catchUpBoundMs = 1_000;
const catchUpEveryMs = 50;
/** What is deleted must have been looked at not longer ago than this, ms. */
const freshMs = 2_000;

/** A key of which every copy was asked. */
interface Confirmed {
  readonly key: string;
  readonly askedMs: number;
}

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

  private later(afterMs = everyMs): void {
    this.run.world.at(this.run.world.nowMs + afterMs, () => this.look());
  }

  private look(): void {
    const { keys, options } = this.run;
    if (this.isStopped) return;
    const batch = keys.liveCount > options.maxLiveKeys * startShare ? keys.takeFinished(batchKeys) : [];
    const groups = Map.groupBy(batch, (key) => partitionId(partitionOf(key, options.partitions)));
    const confirmed: Confirmed[] = [];
    let open = groups.size;
    if (open === 0) this.later();
    for (const [partition, group] of groups)
      this.read(partition, group, (keysOfGroup) => {
        const askedMs = this.run.world.nowMs;
        for (const key of keysOfGroup) confirmed.push({ key, askedMs });
        if (--open > 0) return;
        // At once where more are waiting, unless nothing came of these: whatever holds them up holds up the next ones too.
        const isBusy = batch.length === batchKeys && confirmed.length > 0;
        this.deleteNext(confirmed, 0, isBusy ? 0 : everyMs);
      });
  }

  /** Reads the keys of one partition and asks every replica for them. `done` is given those that may be deleted; the others are given back. */
  private read(partition: PartitionId, group: readonly string[], done: (confirmed: readonly string[]) => void): void {
    const { run, client } = this;
    // A node that is down cannot answer for its copy: no key need be read for it.
    if (!isLevel(run, partition, 0)) {
      this.giveBack(group);
      done([]);
      return;
    }
    const read: string[] = [];
    let open = group.length;
    for (const key of group) {
      readKey(run, { client, key, phase: 'retire', tries: readTries }, (completion) => {
        if (completion.kind === 'ok') read.push(key);
        else this.giveBack([key]);
        if (--open === 0) this.confirm(partition, read, done);
      });
    }
  }

  /** A copy lags until it hears of a commit, with the next write or beat: what it would say before is no evidence. */
  private confirm(partition: PartitionId, read: readonly string[], done: (confirmed: readonly string[]) => void): void {
    const { run } = this;
    const { world } = run;
    const committed = committedIn(run, partition);
    const untilMs = world.nowMs + catchUpBoundMs;
    const look = (): void => {
      const now = committedIn(run, partition);
      // Positions of one reign say nothing of the next.
      const isMoved = committed === null || (now !== null && now.term !== committed.term);
      if (!isMoved && isLevel(run, partition, committed.seq)) {
        if (askReplicas(run, partition, read, 'retire', committed.seq)) return done(read);
      } else if (!isMoved && world.nowMs < untilMs && !this.isStopped) {
        world.at(world.nowMs + catchUpEveryMs, look);
        return;
      }
      this.giveBack(read);
      done([]);
    };
    look();
  }

  /** One after the other: the session has one operation open at a time. */
  private deleteNext(batch: readonly Confirmed[], index: number, pauseMs: number): void {
    const next = batch[index];
    if (next === undefined) {
      this.later(pauseMs);
      return;
    }
    const { key, askedMs } = next;
    if (this.isStopped || this.run.world.nowMs - askedMs > freshMs) {
      this.giveBack([key]);
      this.deleteNext(batch, index + 1, pauseMs);
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
        this.deleteNext(batch, index + 1, pauseMs);
      },
    );
  }

  /** To be retired another time. */
  private giveBack(batch: readonly string[]): void {
    for (const key of batch) this.run.keys.finished(key);
  }
}
