import { describe, expect, it } from 'vitest';
import { Prng } from '../../lib/prng.ts';
import { incarnation, nodeId } from '../model/ids.ts';
import { partitionOf } from '../model/segments.ts';
import { ClientTestWorld } from './client-test-world.ts';
import type { CallOperation, CallResult } from './contract.ts';

const get = (key: string): CallOperation => ({ kind: 'get', key });
const put = (key: string, value: string): CallOperation => ({ kind: 'mutate', mutation: { kind: 'put', key, value } });
const add = (key: string, delta: number): CallOperation => ({ kind: 'mutate', mutation: { kind: 'add', key, delta } });
/** Keys whose partitions are owned by `owner` in the first view. */
const keysOf = (world: ClientTestWorld, owner: string, count: number): string[] => {
  const keys: string[] = [];
  for (let index = 0; keys.length < count; index++) {
    const key = `key-${index}`;
    if (world.view.partitions[partitionOf(key, 12)]?.primary?.nodeId === owner) keys.push(key);
  }
  return keys;
};

describe('routing and pipelining', () => {
  it('finds owners from two seeds, with one connection per node for many calls', () => {
    const world = new ClientTestWorld(1);
    const client = world.client('c');
    for (let index = 0; index < 500; index++) world.call(client, put(`k${index}`, `v${index}`));
    world.runUntil(100);
    expect(world.settled.size).toBe(500);
    for (const { result } of world.settled.values())
      expect(result).toMatchObject({ status: 'Ok', inDoubt: false, attempts: 1 });
    expect(client.core.statistics.connects).toBe(3);
    expect(client.core.statistics.refreshes).toBeLessThanOrEqual(2);
  });

  it('never has more in flight on a connection than its bound', () => {
    const world = new ClientTestWorld(2);
    const client = world.client('c', { maxInFlight: 8 });
    world.runUntil(10);
    const [key] = keysOf(world, 'n1', 1);
    world.rule = (request) => (request.op === 'get' ? 'ignore' : null);
    world.isRecording = true;
    for (let index = 0; index < 100; index++) world.call(client, get(key as string), { timeoutMs: 200 });
    world.runUntil(150);
    expect(world.sent.filter(({ request }) => request.op === 'get')).toHaveLength(8);
    world.runUntil(5000);
    expect(world.settled.size).toBe(100);
  });

  it('refuses calls beyond its bound instead of growing', () => {
    const world = new ClientTestWorld(2);
    const client = world.client('c', { maxCalls: 5 });
    for (let index = 0; index < 7; index++) world.call(client, get('k'));
    world.runUntil(100);
    const statuses = [...world.settled.values()].map(({ result }) => result.status);
    expect(statuses.filter((status) => status === 'Overloaded')).toHaveLength(2);
    expect(world.settled.size).toBe(7);
  });
});

describe('retries', () => {
  it('makes three attempts and stops, long before a 60 s deadline', () => {
    const world = new ClientTestWorld(3);
    const client = world.client('c');
    world.runUntil(10);
    world.rule = (request) =>
      request.op === 'get'
        ? { status: 'Unavailable', outcome: 'NotExecuted', epoch: world.view.partitions[0]!.epoch }
        : null;
    const id = world.call(client, get('k'));
    // Attempt 2 is the second Unavailable in a row: it waits for the map, which stays as it is.
    world.runUntil(60_000);
    const { result, atMs } = world.settled.get(id)!;
    expect(result).toMatchObject({ status: 'Unavailable', attempts: 3 });
    expect(atMs).toBeGreaterThan(15_000);
    expect(atMs).toBeLessThan(16_000);
    expect(client.core.statistics.refreshes).toBeLessThan(35);
  });

  it('never hides a final answer behind a retry', () => {
    for (const status of ['NotFound', 'Conflict', 'InvalidInput', 'Lost'] as const) {
      const world = new ClientTestWorld(4);
      const client = world.client('c');
      world.rule = (request) => (request.op === 'mutate' ? { status } : null);
      const id = world.call(client, put('k', 'v'));
      world.runUntil(1000);
      expect(world.settled.get(id)!.result).toMatchObject({ status, attempts: 1, inDoubt: false });
    }
  });

  it('ends at the deadline to the tick, with the last refusal or as exceeded', () => {
    const world = new ClientTestWorld(5);
    const client = world.client('c');
    world.runUntil(10);
    world.rule = (request) => (request.op === 'mutate' ? { status: 'Migrating', outcome: 'NotExecuted' } : null);
    const refused = world.call(client, put('k', 'v'), { timeoutMs: 300 });
    world.runUntil(200);
    world.rule = (request) => (request.op === 'mutate' ? 'ignore' : null);
    const silent = world.call(client, put('k', 'v'), { timeoutMs: 300 });
    world.runUntil(1000);
    expect(world.settled.get(refused)).toMatchObject({ atMs: 310, result: { status: 'Migrating', inDoubt: false } });
    expect(world.settled.get(silent)).toMatchObject({
      atMs: 500,
      result: { status: 'DeadlineExceeded', inDoubt: true },
    });
  });

  it('one attempt only when asked for one', () => {
    const world = new ClientTestWorld(6);
    const client = world.client('c');
    world.rule = (request) => (request.op === 'get' ? { status: 'Moved', outcome: 'NotExecuted' } : null);
    const id = world.call(client, get('k'), { maxAttempts: 1 });
    world.runUntil(1000);
    expect(world.settled.get(id)!.result).toMatchObject({ status: 'Moved', attempts: 1 });
  });

  it('follows a moved partition at once when the refusal proves the map older', () => {
    const world = new ClientTestWorld(7);
    const client = world.client('c');
    world.runUntil(1000);
    const [key] = keysOf(world, 'n1', 1);
    world.moveAll('n1', 'n3');
    const id = world.call(client, put(key as string, 'v'));
    world.runUntil(2000);
    const { result, atMs } = world.settled.get(id)!;
    expect(result).toMatchObject({ status: 'Ok', attempts: 2, inDoubt: false });
    expect(atMs - 1000).toBeLessThan(130);
    expect(client.core.statistics.redirects).toBe(1);
  });

  it('a reset of a connection whose owner lives costs one backoff, not the wait for a new epoch', () => {
    const world = new ClientTestWorld(8);
    const client = world.client('c');
    const [key] = keysOf(world, 'n1', 1);
    world.call(client, get(key as string));
    world.runUntil(1000);
    world.rule = (request) => (request.op === 'mutate' && world.nowMs < 1001 ? 'ignore' : null);
    const id = world.call(client, put(key as string, 'v'));
    world.after(2, () => world.reset('n1', client));
    world.runUntil(3000);
    expect(world.settled.get(id)!.result).toMatchObject({ status: 'Ok', attempts: 2 });
    expect(world.settled.get(id)!.atMs).toBeLessThan(1200);
  });

  it('does not take a restarted owner for its predecessor: it waits for the new epoch', () => {
    const world = new ClientTestWorld(8);
    const client = world.client('c');
    const [key] = keysOf(world, 'n1', 1);
    world.call(client, get(key as string));
    world.runUntil(1000);
    const reborn = { nodeId: nodeId('n1'), incarnation: incarnation(2) };
    const isReborn = (): boolean => world.nowMs > 1001;
    world.rule = (request, node) => {
      if (request.op === 'get' && !isReborn()) return 'ignore';
      return request.op === 'hello' && node === 'n1' && isReborn() ? { status: 'Ok', member: reborn } : null;
    };
    const id = world.call(client, get(key as string));
    world.after(2, () => world.reset('n1', client));
    world.runUntil(4000);
    expect(client.core.statistics.connects).toBeGreaterThan(3);
    expect(world.settled.has(id)).toBe(false);
    world.moveAll('n1', 'n2');
    world.runUntil(4100);
    expect(world.settled.get(id)!.result.attempts).toBe(2);
  });
});

describe('in doubt', () => {
  it('is only what no answer settled', () => {
    const world = new ClientTestWorld(9);
    const client = world.client('c');
    world.runUntil(10);
    let sends = 0;
    const outcomes = ['Unknown', 'NotExecuted', 'NotExecuted'] as const;
    world.rule = (request) =>
      request.op === 'mutate'
        ? { status: 'Unavailable', outcome: outcomes[sends++ % 3] as 'Unknown', epoch: world.view.partitions[0]!.epoch }
        : null;
    const doubtful = world.call(client, put('k', 'v'));
    world.runUntil(40_000);
    expect(world.settled.get(doubtful)!.result).toMatchObject({ status: 'Unavailable', attempts: 3, inDoubt: true });
    sends = 1;
    const clear = world.call(client, put('k', 'v'), { maxAttempts: 2 });
    world.runUntil(80_000);
    expect(world.settled.get(clear)!.result).toMatchObject({ status: 'Unavailable', inDoubt: false });
  });

  it('a repeat keeps its sequence; the watermark waits for it and passes it once it is given up', () => {
    const world = new ClientTestWorld(10);
    const client = world.client('c');
    world.runUntil(10);
    world.isRecording = true;
    const [key] = keysOf(world, 'n1', 1);
    world.rule = (request) => (request.op === 'mutate' && request.once.sequence === 1 ? 'ignore' : null);
    const first = world.call(client, put(key as string, 'first'), { timeoutMs: 5000 });
    world.call(client, put(key as string, 'second'));
    world.after(100, () => world.reset('n1', client));
    world.runUntil(6000);
    world.call(client, put(key as string, 'third'));
    world.runUntil(7000);
    const onces = world.sent.flatMap(({ request }) =>
      request.op === 'mutate' ? [[request.once.sequence, request.once.lowWatermark, request.attempt]] : [],
    );
    expect(onces).toEqual([
      [1, 1, 1],
      [2, 1, 1],
      [1, 1, 2],
      [3, 3, 1],
    ]);
    expect(world.settled.get(first)!.result).toMatchObject({ status: 'DeadlineExceeded', inDoubt: true, attempts: 2 });
  });

  it('a late answer of an attempt that the map ended settles the call', () => {
    const world = new ClientTestWorld(11);
    const client = world.client('c');
    world.runUntil(10);
    const [key] = keysOf(world, 'n1', 1);
    // The old owner has run it and answers late; the new one never answers at all.
    world.latencyMs = 20;
    const id = world.call(client, put(key as string, 'v'));
    world.runUntil(35);
    world.rule = (request) => (request.op === 'mutate' ? 'ignore' : null);
    world.latencyMs = 0.5;
    world.call(client, { kind: 'view', target: { nodeId: nodeId('n2') } });
    world.moveAll('n1', 'n3');
    world.runUntil(45);
    expect(client.core.statistics.attemptEnds['TransportError']).toBe(1);
    world.runUntil(500);
    expect(world.settled.get(id)!.result).toMatchObject({ status: 'Ok', inDoubt: false });
  });

  it('cancelling an attempt under way leaves it in doubt, cancelling a waiting call does not', () => {
    const world = new ClientTestWorld(12);
    const client = world.client('c');
    const parked = world.call(client, put('k', 'v'));
    world.feed(client, { kind: 'cancel', callId: parked });
    world.runUntil(10);
    world.rule = (request) => (request.op === 'mutate' ? 'ignore' : null);
    const sent = world.call(client, put('k', 'v'));
    world.runUntil(20);
    world.feed(client, { kind: 'cancel', callId: sent });
    expect(world.settled.get(parked)!.result).toMatchObject({ status: 'Cancelled', inDoubt: false });
    expect(world.settled.get(sent)!.result).toMatchObject({ status: 'Cancelled', inDoubt: true });
  });

  it('closing settles everything', () => {
    const world = new ClientTestWorld(13);
    const client = world.client('c');
    world.runUntil(10);
    world.rule = (request) => (request.op === 'mutate' ? 'ignore' : null);
    const ids = Array.from({ length: 20 }, (_, index) => world.call(client, put(`k${index}`, 'v')));
    world.runUntil(20);
    world.feed(client, { kind: 'close' });
    for (const id of ids) expect(world.settled.get(id)!.result).toMatchObject({ status: 'Closed', inDoubt: true });
    const after = world.call(client, get('k'));
    expect(world.settled.get(after)!.result.status).toBe('Closed');
  });
});

describe('the map', () => {
  it('an older view never wins, nor an older epoch inside a newer one', () => {
    const world = new ClientTestWorld(14);
    const client = world.client('c');
    world.runUntil(10);
    const old = world.view;
    world.moveAll('n1', 'n2');
    world.moveAll('n2', 'n3');
    const fetch = (): void => void world.call(client, { kind: 'view', target: { nodeId: nodeId('n2') } });
    fetch();
    world.runUntil(20);
    expect(client.core.view?.revision).toBe(3);
    world.rule = (request) => (request.op === 'view' ? { status: 'Ok', view: old } : null);
    fetch();
    world.runUntil(30);
    expect(client.core.view).toEqual(world.view);
    const mixed = {
      ...world.view,
      revision: 9,
      partitions: world.view.partitions.map((partition, index) => (index === 0 ? old.partitions[0]! : partition)),
    };
    world.rule = (request) => (request.op === 'view' ? { status: 'Ok', view: mixed } : null);
    fetch();
    world.runUntil(40);
    expect(client.core.view?.revision).toBe(9);
    expect(client.core.view?.partitions[0]).toEqual(world.view.partitions[0]);
  });

  it('a waiter that gives up does not cancel the refresh that others need', () => {
    const world = new ClientTestWorld(15);
    const client = world.client('c');
    world.runUntil(10);
    const [a, b] = keysOf(world, 'n1', 2) as [string, string];
    world.kill('n1', [client]);
    world.runUntil(20);
    const gaveUp = world.call(client, put(a, 'v'), { timeoutMs: 400 });
    const cancelled = world.call(client, put(a, 'v'));
    const patient = world.call(client, put(b, 'v'));
    world.runUntil(300);
    world.feed(client, { kind: 'cancel', callId: cancelled });
    world.runUntil(2000);
    const before = client.core.statistics.refreshes;
    world.moveAll('n1', 'n2');
    world.runUntil(2010);
    expect(world.settled.get(gaveUp)).toMatchObject({
      atMs: 420,
      result: { status: 'TransportError', inDoubt: false },
    });
    expect(world.settled.get(patient)).toMatchObject({ result: { status: 'Ok' } });
    expect(client.core.statistics.refreshes).toBe(before);
  });

  it('a refresh that never answers blocks no healthy read, and is given up for another node', () => {
    const world = new ClientTestWorld(16);
    const client = world.client('c');
    world.runUntil(10);
    const [sick] = keysOf(world, 'n1', 1);
    const [healthy] = keysOf(world, 'n2', 1);
    world.kill('n1', [client]);
    world.rule = (request) => (request.op === 'view' ? 'ignore' : null);
    const stuck = world.call(client, get(sick as string));
    world.runUntil(100);
    for (let index = 0; index < 100; index++) world.call(client, get(healthy as string));
    world.runUntil(102);
    expect([...world.settled.values()].filter(({ result }) => result.status === 'NotFound')).toHaveLength(100);
    world.moveAll('n1', 'n3');
    world.runUntil(9000);
    world.rule = () => null;
    world.runUntil(14_000);
    expect(world.settled.get(stuck)!.result.status).toBe('NotFound');
  });

  it('an attempt held by an owner that the map has replaced ends and is repeated elsewhere, once', () => {
    const world = new ClientTestWorld(17);
    const client = world.client('c');
    world.runUntil(10);
    const [key] = keysOf(world, 'n1', 1);
    world.rule = (request, node) => (request.op === 'mutate' && node === 'n1' ? 'ignore' : null);
    const id = world.call(client, add(key as string, 5));
    world.after(3000, () => world.moveAll('n1', 'n2'));
    world.runUntil(4000);
    expect(world.settled.get(id)!.result).toMatchObject({ status: 'Ok', attempts: 2 });
    expect(world.settled.get(id)!.atMs).toBeLessThan(3200);
    expect(world.valueOf(key as string)).toBe('5');
  });

  it('a frozen owner is noticed by its silence', () => {
    const world = new ClientTestWorld(18);
    const client = world.client('c');
    world.runUntil(10);
    const [key] = keysOf(world, 'n3', 1);
    world.call(client, get(key as string));
    world.runUntil(20);
    world.setState('n3', 'frozen');
    const id = world.call(client, add(key as string, 1));
    world.after(3500, () => world.moveAll('n3', 'n2'));
    world.runUntil(3400);
    expect(client.core.statistics.deadPeers).toBe(1);
    world.runUntil(8000);
    expect(world.settled.get(id)!.result).toMatchObject({ status: 'Ok', attempts: 2 });
  });
});

describe('a refused client', () => {
  it('is one clear error, never retried', () => {
    const world = new ClientTestWorld(19);
    world.rule = (request) => (request.op === 'hello' ? { status: 'Unauthorized', reason: 'wrong token' } : null);
    world.isRecording = true;
    const client = world.client('c', { token: 'x' });
    const id = world.call(client, get('k'));
    world.runUntil(60_000);
    expect(world.settled.get(id)!.result).toMatchObject({ status: 'Unauthorized', reason: 'wrong token' });
    expect(world.sent.length).toBeLessThanOrEqual(2);
    const later = world.call(client, get('k'));
    expect(world.settled.get(later)!.result.status).toBe('Unauthorized');
  });
});

describe('a node dies under 1,000 operations at once', () => {
  it('refreshes stay rare, healthy partitions keep their pace, and everything succeeds', () => {
    const world = new ClientTestWorld(20);
    const client = world.client('c');
    world.runUntil(1000);
    const perSecond: number[] = [];
    let mostAttempts = 0;
    let failures = 0;
    let live = true;
    const session = (key: string): void => {
      if (!live) return;
      world.call(client, add(key, 1), {
        onSettled: (result) => {
          if (result.status !== 'Ok') failures++;
          mostAttempts = Math.max(mostAttempts, result.attempts);
          const second = Math.floor(world.nowMs / 1000);
          if (world.view.partitions[partitionOf(key, 12)]?.preferredPrimary !== 'n1')
            perSecond[second] = (perSecond[second] ?? 0) + 1;
          world.after(45, () => session(key));
        },
      });
    };
    for (let index = 0; index < 1000; index++) session(`key-${index}`);
    world.after(3000, () => world.kill('n1', [client]));
    world.after(3300, () =>
      world.change(world.partitionsOf('n1'), () => ({ primary: null, serving: false, health: 'Unavailable' })),
    );
    world.after(7000, () =>
      world.change(
        world.view.partitions.filter(({ primary }) => primary === null).map(({ partition }) => partition),
        () => ({ primary: { nodeId: nodeId('n2'), incarnation: incarnation(1) }, serving: true, health: 'Degraded' }),
      ),
    );
    world.runUntil(4000);
    const before = world.viewRequests.length;
    world.runUntil(8500);
    expect((world.viewRequests.length - before) / 4.5).toBeLessThanOrEqual(2);
    world.runUntil(10_000);
    live = false;
    world.runUntil(12_000);
    expect(failures).toBe(0);
    expect(mostAttempts).toBeLessThanOrEqual(3);
    const calm = perSecond[2] as number;
    for (const second of [4, 5, 6, 7, 8]) expect(perSecond[second] as number).toBeGreaterThan(0.9 * calm);
  });
});

describe('answers dropped at random', () => {
  it('100,000 increments end exactly as acknowledged plus those in doubt (which had all run)', () => {
    const world = new ClientTestWorld(21);
    world.dropChance = 0.1;
    const clients = ['a', 'b', 'c', 'd'].map((name) => world.client(name, { retryBurst: 1e9 }));
    const expected = new Map<string, number>();
    let doubts = 0;
    let refused = 0;
    let left = 100_000;
    const random = new Prng(5);
    const session = (index: number): void => {
      if (left-- <= 0) return;
      const key = `counter-${random.below(50)}`;
      world.call(clients[index % 4]!, add(key, 1), {
        onSettled: (result) => {
          if (result.status === 'Ok' || result.inDoubt) expected.set(key, (expected.get(key) ?? 0) + 1);
          else refused++;
          doubts += Number(result.inDoubt);
          session(index);
        },
      });
    };
    for (let index = 0; index < 64; index++) session(index);
    world.runUntil(100_000_000);
    expect(world.settled.size).toBe(100_000);
    expect(refused).toBe(0);
    // A dropped answer takes its connection along, and with it whatever else was in flight there.
    expect(doubts).toBeLessThan(5_000);
    for (const [key, count] of expected) expect(world.valueOf(key)).toBe(String(count));
  });

  it('ifAbsent has exactly one winner, and it is the one whose value stands', () => {
    const world = new ClientTestWorld(22);
    world.dropChance = 0.1;
    const outcomes = new Map<string, { readonly value: string; readonly result: CallResult }[]>();
    for (const name of ['a', 'b', 'c', 'd']) {
      const client = world.client(name);
      for (let round = 0; round < 100; round++) {
        const key = `once-${round}`;
        const operation: CallOperation = {
          kind: 'mutate',
          mutation: { kind: 'put', key, value: name, ifAbsent: true },
        };
        world.call(client, operation, {
          onSettled: (result) => outcomes.set(key, [...(outcomes.get(key) ?? []), { value: name, result }]),
        });
      }
    }
    world.runUntil(1_000_000);
    expect(outcomes.size).toBe(100);
    let doubts = 0;
    for (const [key, all] of outcomes) {
      expect(all).toHaveLength(4);
      const winners = all.filter(({ result }) => result.status === 'Ok');
      const doubtful = all.filter(({ result }) => result.inDoubt);
      doubts += doubtful.length;
      expect(winners.length + doubtful.length).toBeGreaterThanOrEqual(1);
      expect(winners.length).toBeLessThanOrEqual(1);
      const stands = world.valueOf(key);
      if (winners.length === 1) expect(stands).toBe(winners[0]!.value);
      else expect(doubtful.map(({ value }) => value)).toContain(stands);
    }
    expect(doubts).toBeLessThan(60);
  });

  it('compare-and-set chains lose nothing', () => {
    const world = new ClientTestWorld(24);
    world.dropChance = 0.1;
    const log: string[] = [];
    const doubtful = new Set<string>();
    const key = 'chain';
    world.call(world.client('first'), put(key, ''));
    world.runUntil(1_000);
    const step = (client: ReturnType<ClientTestWorld['client']>, name: string, round: number): void => {
      if (round > 200) return;
      world.call(client, get(key), {
        onSettled: ({ answer }) => {
          const link = `${name}${round}`;
          const value = `${answer?.value ?? ''},${link}`;
          const { version } = answer!;
          world.call(
            client,
            { kind: 'mutate', mutation: { kind: 'put', key, value, ifVersion: version! } },
            {
              onSettled: (result) => {
                if (result.status === 'Ok') log.push(link);
                if (result.inDoubt) doubtful.add(link);
                step(client, name, round + 1);
              },
            },
          );
        },
      });
    };
    for (const name of ['a', 'b', 'c']) step(world.client(name), name, 1);
    world.runUntil(10_000_000);
    const stands = world.valueOf(key)!.split(',').slice(1);
    expect(new Set(stands).size).toBe(stands.length);
    expect(stands.filter((link) => !doubtful.has(link)).sort()).toEqual([...log].sort());
    expect(log.length).toBeGreaterThan(100);
  });
});

describe('timers', () => {
  it('finished calls leave nothing behind', () => {
    const world = new ClientTestWorld(23);
    const client = world.client('c');
    for (let index = 0; index < 300; index++) world.call(client, get(`k${index}`));
    world.runUntil(1000);
    const inside = client.core as unknown as {
      calls: { size: number };
      waiting: { hasRiders: boolean };
      timers: { heap: { kind: string }[] };
    };
    expect(inside.calls.size).toBe(0);
    expect(inside.waiting.hasRiders).toBe(false);
    expect(inside.timers.heap.filter(({ kind }) => kind === 'call')).toHaveLength(0);
  });
});
