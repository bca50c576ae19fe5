/** Shared set-up of the driver's tests: a memory cluster on virtual time. */
import { Prng } from '../../lib/prng.ts';
import { type ChaosOptions, type ChaosOutcome, startChaos } from '../driver.ts';
import type { FaultRecord } from '../journal.ts';
import type { EventSource } from '../ports.ts';
import { parseSchedule } from '../schedule-file.ts';
import type { Schedule } from '../schedule.ts';
import { MemoryCluster, type MemoryClusterOptions } from './memory-cluster.ts';
import { VirtualTime } from './virtual-time.ts';

const silentEvents: EventSource = { subscribe: () => () => undefined };

/** A cluster on virtual time with a driver's options and the journal it writes. */
export interface World {
  readonly time: VirtualTime;
  readonly cluster: MemoryCluster;
  readonly records: FaultRecord[];
  readonly options: ChaosOptions;
}

/** A world that plays this schedule. */
export function world(
  schedule: Schedule,
  settings: Partial<MemoryClusterOptions> & Partial<Pick<ChaosOptions, 'events' | 'policy'>> = {},
  makeCluster: (options: MemoryClusterOptions) => MemoryCluster = (options) => new MemoryCluster(options),
): World {
  const time = new VirtualTime();
  const { events, policy, ...rest } = settings;
  const cluster = makeCluster({
    nodeCount: 5,
    partitionCount: 16,
    replicationFactor: 3,
    catchUpMs: 1_500,
    clock: time,
    sleeper: time,
    ...rest,
  });
  time.every(100, () => cluster.tick());
  const records: FaultRecord[] = [];
  const options: ChaosOptions = {
    schedule,
    cluster,
    status: cluster,
    journal: {
      append: async (record) => {
        await time.sleep(2);
        records.push(record);
      },
    },
    events: events ?? silentEvents,
    clock: time,
    sleeper: time,
    prng: new Prng(schedule.seed).fork('driver'),
    ...(policy === undefined ? {} : { policy }),
  };
  return { time, cluster, records, options };
}

/** Plays to the end. */
export async function play(made: World): Promise<ChaosOutcome> {
  return made.time.run(startChaos(made.options).done);
}

/** A schedule written by hand; the last 10 s are for healing. */
export const scenario = (events: unknown[], durationMs = 60_000): Schedule =>
  parseSchedule(JSON.stringify({ seed: 1, durationMs, healFromMs: durationMs - 10_000, events }));

export const stepsOf = (records: readonly FaultRecord[], faultId: string): string[] =>
  records.filter((record) => record.faultId === faultId).map((record) => record.step);

/** Steps of a fault that was confirmed and whose heal was verified. */
export const wholeLife = ['planned', 'injecting', 'injected', 'confirmed', 'healing', 'healed', 'heal-verified'];
