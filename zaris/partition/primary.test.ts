/** What clients are told by a primary: times to live, records of repeats, reads and who may answer them. */
import { describe, expect, it } from 'vitest';
import type { Mutation } from '../model/client-wire.ts';
import type { Entry } from '../model/entry.ts';
import { partitionId, seq, term } from '../model/ids.ts';
import { PartitionTestWorld } from './partition-test-world.ts';

const put = (value: string, ttlMs?: number): Mutation =>
  ttlMs === undefined ? { kind: 'put', key: 'k', value } : { kind: 'put', key: 'k', value, ttlMs };
const create: Mutation = { kind: 'put', key: 'k', value: 'mine', ifAbsent: true };
const count: Mutation = { kind: 'add', key: 'k', delta: 1 };

describe('a time to live', () => {
  it('a value overwritten without a time to live stays', () => {
    const world = new PartitionTestWorld();
    world.mutate(1, put('a', 1_000));
    world.mutate(2, put('b'));
    world.run(3_000);
    expect(world.get('k')(), 'after the time of the value before').toMatchObject({ status: 'Ok', value: 'b' });
  });

  it('a value overwritten with another time to live has that one, be it longer or shorter', () => {
    const world = new PartitionTestWorld();
    world.mutate(1, put('a', 1_000));
    world.mutate(2, put('b', 5_000));
    world.run(3_000);
    expect(world.get('k')(), 'after the time of the value before').toMatchObject({ status: 'Ok', value: 'b' });
    world.run(3_000);
    expect(world.get('k')(), 'after its own').toMatchObject({ status: 'NotFound' });
    world.mutate(3, put('c', 60_000));
    world.mutate(4, put('d', 1_000));
    world.run(3_000);
    expect(world.get('k')(), 'after its own, the shorter one').toMatchObject({ status: 'NotFound' });
  });

  it('an expiry does not take the value that is being written over the expired one', () => {
    const world = new PartitionTestWorld();
    world.mutate(1, put('a', 500));
    world.run(400);
    world.isCut = true;
    const written = world.mutate(2, put('b'));
    // The old value expires while the new one is on its way to the other copy.
    world.run(300);
    world.isCut = false;
    world.run(1_000);
    expect(written()).toMatchObject({ status: 'Ok' });
    expect(world.get('k')(), 'an acknowledged value').toMatchObject({ status: 'Ok', value: 'b' });
  });
});

describe('repeats at a primary', () => {
  it('a repeat that was refused stays refused, though its first attempt comes later and could run', () => {
    const world = new PartitionTestWorld();
    world.mutate(1, put('theirs'));
    expect(world.mutate(2, create, 2)()).toMatchObject({ status: 'Conflict' });
    world.ask((id) => ({
      op: 'mutate',
      id,
      partition: partitionId(0),
      once: { clientId: 'other', sequence: 1, lowWatermark: 1 },
      mutation: { kind: 'delete', key: 'k' },
      attempt: 1,
    }));
    expect(world.mutate(2, create)(), 'the first attempt, late').toMatchObject({ status: 'Conflict' });
    expect(world.get('k')(), 'what was refused').toMatchObject({ status: 'NotFound' });
  });

  it('what a client has given up does not run behind a later mutation that is still pending', () => {
    const world = new PartitionTestWorld();
    world.isCut = true;
    const second = world.mutate(2, put('second'));
    const late = world.mutate(1, put('first'));
    expect(late(), 'at once: it waits for nothing').toMatchObject({ status: 'InvalidInput' });
    world.isCut = false;
    world.run(500);
    expect(second()).toMatchObject({ status: 'Ok' });
    expect(world.get('k')()).toMatchObject({ status: 'Ok', value: 'second' });
  });

  it('a client that goes on keeps its records, however long ago it came', () => {
    const world = new PartitionTestWorld({ timings: { clientIdleMs: 5_000 } });
    world.mutate(1, count);
    world.run(4_900);
    expect(world.mutate(2, count)()).toMatchObject({ status: 'Ok', value: '2' });
    world.run(500);
    expect(world.mutate(2, count, 2)(), 'its repeat').toMatchObject({ status: 'Ok', value: '2' });
  });

  it('a client idle until now keeps the record of what it has pending', () => {
    const world = new PartitionTestWorld({ timings: { clientIdleMs: 5_000 } });
    world.mutate(1, count);
    world.run(4_900);
    world.isCut = true;
    const first = world.mutate(2, count);
    // Nothing of it is applied since its time is over; what is logged now comes after its mutation.
    world.run(300);
    world.isCut = false;
    world.run(1_000);
    expect(first()).toMatchObject({ status: 'Ok', value: '2' });
    expect(world.mutate(2, count, 2)(), 'its repeat').toMatchObject({ status: 'Ok', value: '2' });
  });
});

describe('reads at a primary', () => {
  it('a scan by pages shows every key', () => {
    const world = new PartitionTestWorld();
    const keys = ['k0', 'k1', 'k2', 'k3', 'k4'];
    keys.forEach((key, index) => world.mutate(index + 1, { kind: 'put', key, value: 'v' }));
    const seen: string[] = [];
    for (let hasMore = true; hasMore;) {
      const after = seen.at(-1);
      const from = after === undefined ? {} : { after };
      const page = world.ask((id) => ({ op: 'scan', id, partition: partitionId(0), prefix: 'k', limit: 2, ...from }))();
      seen.push(...(page?.items ?? []).map(({ key }) => key));
      hasMore = page?.more === true;
    }
    expect(seen).toEqual(keys);
  });

  it('a process that stood still answers nothing under the lease that ran out meanwhile', () => {
    const world = new PartitionTestWorld();
    world.mutate(1, put('a'));
    expect(world.get('k')(), 'under the lease').toMatchObject({ status: 'Ok' });
    // Another may lead by now. The read comes before the first tick.
    world.nowMs += 1_000;
    expect(world.get('k')()).toBeUndefined();
  });

  it('a member that may be promoted without a word is asked for its lease, also where it is not in sync', () => {
    const world = new PartitionTestWorld({ isFollowerDropped: true });
    expect(world.get('k')(), 'while it answers').toMatchObject({ status: 'NotFound' });
    world.isCut = true;
    world.run(400);
    expect(world.get('k')(), 'when it may lead already').toBeUndefined();
  });

  it('a read whose term is over by the word of control is refused', () => {
    const world = new PartitionTestWorld();
    world.mutate(1, put('old'));
    world.isCut = true;
    world.run(400);
    const read = world.get('k');
    const { gate } = world.primary.desk;
    gate.beginConfirm(7);
    gate.confirmed(7, false);
    expect(read()).toMatchObject({ status: 'Unavailable', outcome: 'NotExecuted' });
  });
});

describe('a promotion', () => {
  it('takes what a more complete copy holds in place of its own entries of an older term', () => {
    const entry = (at: number, inTerm: number, value: string): Entry => ({
      seq: seq(at),
      term: term(inTerm),
      effect: { kind: 'put', key: `k${at}`, value },
    });
    // Of term 3 nothing was acknowledged: the primary of term 4 began without it, and may have acknowledged what it logged.
    const own = [entry(1, 2, 'same'), entry(2, 3, 'lost'), entry(3, 3, 'lost')];
    const theirs = [entry(1, 2, 'same'), entry(2, 4, 'acked'), entry(3, 4, 'acked')];
    const world = new PartitionTestWorld({ inherited: [own, theirs] });
    expect(['k1', 'k2', 'k3'].map((key) => world.get(key)()?.value)).toEqual(['same', 'acked', 'acked']);
  });
});
