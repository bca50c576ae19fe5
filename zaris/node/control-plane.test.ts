/**
 * In which order a control leader's entries and writes leave it: its followers need not wait for its disk, its raftTerm must. And when
 * it answers a control read.
 */
import { describe, expect, it } from 'vitest';
import { Prng } from '../../lib/prng.ts';
import { foldDiskWrite } from '../control/raft-disk.ts';
import { type Incarnation, type NodeId, nodeId, partitionId } from '../model/ids.ts';
import { type DiskState, emptyDisk } from '../model/raft-wire.ts';
import type { Effect, NodeEvent } from './contract.ts';
import { Node } from './node.ts';

const first = nodeId('n1');
const second = nodeId('n2');
const ids = [first, second, nodeId('n3')];
const settings = { clusterId: 'c', replicationFactor: 3, minInSync: 2, partitionCount: 4, initialNodes: 3 };
const isAppend = (effect: Effect): boolean =>
  effect.kind === 'send' && effect.message.kind === 'raft' && effect.message.message.kind === 'append';
const carriesEntries = (effect: Effect): boolean =>
  effect.kind === 'send' &&
  effect.message.kind === 'raft' &&
  effect.message.message.kind === 'append' &&
  effect.message.message.entries.length > 0;

/**
 * Three nodes with so many voters, bootstrapped, run until they serve; then the first one starts again from its disk and they serve again. Every list of
 * effects that a step gave; and how to go on.
 */
function runCluster(maxVoters: number) {
  const disks = new Map<string, DiskState>(ids.map((id) => [id, emptyDisk]));
  const start = (id: NodeId, nonce: string): Node => {
    const peers = ids.filter((other) => other !== id);
    const options = { nodeId: id, clientAddress: `${id}:1`, clusterAddress: `${id}:2`, peers, control: { maxVoters } };
    return new Node({ ...options, newDiskId: `disk ${id}`, nonce }, disks.get(id) ?? emptyDisk, new Prng(1));
  };
  const nodes = new Map(ids.map((id) => [id, start(id, `first ${id}`)]));
  const steps: Effect[][] = [];
  let nowMs = 0;
  let waiting: { readonly to: NodeId; readonly event: NodeEvent }[] = [];
  const feed = (to: NodeId, event: NodeEvent): Effect[] => {
    const effects = nodes.get(to)?.step(event, nowMs) ?? [];
    steps.push(effects);
    for (const effect of effects) {
      if (effect.kind === 'persist') {
        for (const write of effect.writes) disks.set(to, foldDiskWrite(disks.get(to) ?? emptyDisk, write));
        waiting.push({ to, event: { kind: 'persisted', ticket: effect.ticket } });
      } else if (effect.kind === 'send')
        waiting.push({ to: effect.to, event: { kind: 'message', from: to, message: effect.message } });
    }
    return effects;
  };
  const run = (untilMs: number): void => {
    for (; nowMs < untilMs; nowMs += 5) {
      for (const id of ids) feed(id, { kind: 'tick' });
      const now = waiting;
      waiting = [];
      for (const { to, event } of now) feed(to, event);
    }
    expect(
      nodes
        .get(second)
        ?.view()
        .partitions.map(({ serving }) => serving),
    ).toEqual([true, true, true, true]);
  };
  for (const id of ids) feed(id, { kind: 'start' });
  const bootstrap = { op: 'admin', id: 1, command: { kind: 'bootstrap', settings } } as const;
  feed(first, { kind: 'request', connection: 1, request: bootstrap });
  run(10_000);
  waiting = waiting.filter(({ to }) => to !== first);
  nodes.set(first, start(first, `again ${first}`));
  feed(first, { kind: 'start' });
  run(25_000);
  return { steps, nodes, feed, run };
}

// With a single voter a leader takes its raftTerm and its followers in one step.
describe.each([3, 1])('what a control leader among %i voters sends and writes in one step', (maxVoters) => {
  const { steps } = runCluster(maxVoters);

  it('leaves for the followers before its own disk is asked for it', () => {
    const both = steps.filter(
      (effects) => effects.some(carriesEntries) && effects.some(({ kind }) => kind === 'persist'),
    );
    const isEarly = (effects: Effect[]): boolean =>
      effects.findIndex(carriesEntries) < effects.findIndex(({ kind }) => kind === 'persist');
    expect(both.filter(isEarly).length).toBeGreaterThan(3);
  });

  it('waits for the disk where the raftTerm is among the writes, and so does everything but entries', () => {
    let persists = 0;
    for (const effects of steps) {
      const at = effects.findIndex(({ kind }) => kind === 'persist');
      const persist = effects[at];
      if (persist?.kind !== 'persist') continue;
      persists++;
      const raft = effects.slice(0, at).filter((effect) => effect.kind === 'send' && effect.message.kind === 'raft');
      expect(raft.every(isAppend)).toBe(true);
      if (persist.writes.some(({ kind }) => kind !== 'entries')) expect(raft).toEqual([]);
    }
    expect(persists).toBeGreaterThan(3);
  });
});

describe('a control read', () => {
  it('is answered only after a majority has confirmed that its leader still leads', () => {
    const { steps, nodes, feed, run } = runCluster(3);
    const leader = nodes.get(first)?.identity().controlLeader as NodeId;
    expect(leader, 'the first one was started again').not.toBe(first);
    const answers = (lists: readonly Effect[][]): Effect[] =>
      lists.flat().filter((effect) => effect.kind === 'send' && effect.message.kind === 'terms-answer');
    const asker = nodes.get(first)?.identity().incarnation as Incarnation;
    const query = { kind: 'terms-query', from: asker, queryId: 1, partitions: [partitionId(0)] } as const;
    const before = steps.length;
    // Another may lead by now, and have replaced the primary that asks.
    const atOnce = feed(leader, { kind: 'message', from: first, message: query });
    expect(answers([atOnce]), 'on its own word').toEqual([]);
    run(26_000);
    expect(answers(steps.slice(before)), 'with the others').toHaveLength(1);
  });
});
