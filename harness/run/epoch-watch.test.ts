import { describe, expect, it } from 'vitest';
import type { ClusterEvent, PartitionStatus, SystemStatus } from '../../chaos/ports.ts';
import { type EpochChange, EpochWatch } from './epoch-watch.ts';

const partition = (epoch: number, termNumber: number, primary: string, health = 'Healthy'): PartitionStatus => ({
  partition: 0,
  epoch,
  term: termNumber,
  primary,
  preferredPrimary: 'n1',
  replicas: ['n1', 'n2', 'n3'],
  inSync: [primary],
  eligible: [],
  joining: [],
  health,
  serving: true,
});
const edge = (name: string, epoch: number, termNumber: number, primary: string, nodeId = 'n1'): ClusterEvent => ({
  name: `edge-${name}`,
  nodeId,
  atMs: epoch * 10,
  fields: { partition: 0, epoch, term: termNumber, primary: `${primary}#7`, health: 'Recovering' },
});

/** Plays looks one after the other: what the status shows, and which notices have come since. */
async function watch(
  looks: readonly { readonly status: PartitionStatus | null; readonly events?: readonly ClusterEvent[] }[],
): Promise<{ changes: EpochChange[]; events: ClusterEvent[] }> {
  const changes: EpochChange[] = [];
  const heard: ClusterEvent[] = [];
  let look = 0;
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const watcher = new EpochWatch({
    clock: { nowMs: () => performance.now(), wallMs: () => 0 },
    status: {
      status: async (): Promise<SystemStatus | null> => {
        const shown = looks[Math.min(look, looks.length - 1)]?.status ?? null;
        return shown === null
          ? null
          : {
              atMs: performance.now(),
              leader: 'n1',
              voters: [],
              nodes: [{ nodeId: 'n1', incarnation: 1, alive: true }],
              minInSync: 2,
              partitions: [shown],
            };
      },
    },
    events: async () => {
      const events = looks[look]?.events ?? [];
      if (++look >= looks.length) resolve();
      return events;
    },
    onEpoch: (change) => changes.push(change),
    onIncarnation: () => undefined,
    onEvent: (event) => heard.push(event),
  });
  watcher.start();
  await over;
  await watcher.stop();
  return { changes, events: heard };
}

const told = (changes: readonly EpochChange[]): string[] =>
  changes.map(
    ({ epoch, kind, primary, missed }) => `${epoch} ${kind} ${primary}${missed > 0 ? ` (${missed} missed)` : ''}`,
  );

describe('the epoch watch', () => {
  it('tells every edge once and in order, however many nodes report it and in which order', async () => {
    const { changes, events } = await watch([
      { status: partition(5, 5, 'n1') },
      {
        status: partition(8, 6, 'n2'),
        events: [
          edge('serving', 7, 6, 'n2'),
          edge('promotion', 6, 6, 'n2'),
          edge('promotion', 6, 6, 'n2', 'n3'),
          edge('in-sync', 8, 6, 'n2'),
        ],
      },
    ]);
    expect(told(changes)).toEqual(['5 edge n1', '6 failover n2', '7 edge n2', '8 edge n2']);
    expect(changes[1]).toMatchObject({ incarnation: 7, atMs: 60 });
    expect(events.filter((event) => event.name === 'edge-promotion')).toHaveLength(1);
    expect(events.filter((event) => event.name === 'failover')).toHaveLength(1);
  });

  it('calls a handoff what a notice says was released, and nothing else', async () => {
    const { changes } = await watch([
      { status: partition(5, 5, 'n1') },
      { status: partition(6, 6, 'n2'), events: [edge('handoff', 6, 6, 'n2')] },
    ]);
    expect(told(changes)).toEqual(['5 edge n1', '6 handoff n2']);
  });

  it('takes a change of term without a notice for a failover, and counts the edges nobody reported', async () => {
    const { changes } = await watch([{ status: partition(5, 5, 'n1') }, { status: partition(9, 8, 'n3') }]);
    expect(told(changes)).toEqual(['5 edge n1', '9 failover n3 (3 missed)']);
  });

  it('counts the same node assigned again as a failover', async () => {
    const { changes } = await watch([
      { status: partition(5, 5, 'n1') },
      { status: null, events: [edge('promotion', 6, 6, 'n1')] },
    ]);
    expect(told(changes)).toEqual(['5 edge n1', '6 failover n1']);
  });

  it('ignores what lies before its first status', async () => {
    const { changes } = await watch([
      { status: partition(5, 5, 'n1'), events: [edge('promotion', 1, 1, 'n2'), edge('promotion', 5, 5, 'n1')] },
    ]);
    expect(told(changes)).toEqual(['5 edge n1']);
  });
});
