/** What clients are told by a primary: times to live, records of repeats, reads and who may answer them. */
import { describe, expect, it } from 'vitest';
import type { Mutation } from '../model/client-wire.ts';
import { PartitionTestWorld } from './partition-test-world.ts';

const put = (value: string, ttlMs?: number): Mutation =>
  ttlMs === undefined ? { kind: 'put', key: 'k', value } : { kind: 'put', key: 'k', value, ttlMs };

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
