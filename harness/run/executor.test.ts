import { describe, expect, it, vi } from 'vitest';
import type { Completion, Operation } from '../../workloads/port.ts';
import { MemoryLedger } from '../testing/memory-ledger.ts';
import { ClientAudit } from './client-audit.ts';
import { Executor } from './executor.ts';
import { KeyRegister } from './key-register.ts';
import { LiveCheck } from './live-check.ts';
import { Load } from './load.ts';
import { Pacer } from './pacer.ts';
import { RunClock } from './run-clock.ts';
import { Tally } from './tally.ts';

const realClock = { nowMs: () => performance.now(), wallMs: () => Date.now() };

function parts() {
  const ledger = new MemoryLedger();
  const clock = new RunClock(realClock, 0);
  const keys = new KeyRegister({
    maxLiveKeys: 100,
    sessionsPerPartition: 3,
    crowdedSessions: 100,
    partitionOf: () => 0,
    partitionCount: 1,
    nowMs: () => clock.nowMs(),
  });
  const tally = new Tally();
  const executor = new Executor({
    ledger,
    clock,
    keys,
    tally,
    liveCheck: new LiveCheck(() => undefined),
    audit: new ClientAudit(null),
    onAcknowledged: () => undefined,
  });
  return { ledger, clock, keys, tally, executor };
}

const write = (key: string): Operation => ({ f: 'write', key, value: 'v' });

describe('an operation under the ledger', () => {
  it('is sent only after its intent is committed, and handed over before the next intent', async () => {
    const { ledger, executor } = parts();
    const seen: string[] = [];
    const client = {
      execute: async (): Promise<Completion> => {
        const last = ledger.intents.at(-1);
        seen.push(
          `sent ${last?.operationId}, committed ${ledger.committed.has(last?.operationId ?? -1)}, outcomes ${ledger.outcomes.length}`,
        );
        return { kind: 'ok' };
      },
      close: async () => undefined,
    };
    await executor.run(client, 0, write('a'));
    await executor.run(client, 0, write('b'));
    expect(seen).toEqual(['sent 1, committed true, outcomes 0', 'sent 2, committed true, outcomes 1']);
    const [first] = ledger.outcomes;
    expect(first?.invokeNs).toBeGreaterThanOrEqual(ledger.intents[0]?.atNs ?? Infinity);
    expect(first?.returnNs).toBeGreaterThanOrEqual(first?.invokeNs ?? Infinity);
  });

  it('is info when the client throws, never fail', async () => {
    const { ledger, executor, tally } = parts();
    const client = { execute: () => Promise.reject(new Error('socket hang up')), close: async () => undefined };
    expect(await executor.run(client, 3, write('a'))).toMatchObject({ kind: 'info' });
    expect(ledger.outcomes[0]?.completion).toMatchObject({ kind: 'info', error: 'client threw: socket hang up' });
    expect(tally.acknowledgedWrites).toBe(0);
    expect(tally.inFlight).toBe(0);
  });

  it('is not sent at all when its intent cannot be kept', async () => {
    const { ledger, executor, keys } = parts();
    ledger.failure = new Error('disk full');
    let sent = 0;
    const client = {
      execute: async (): Promise<Completion> => {
        sent++;
        return { kind: 'ok' };
      },
      close: async () => undefined,
    };
    await expect(executor.run(client, 0, write('a'))).rejects.toThrow('disk full');
    expect(sent).toBe(0);
    expect(keys.accepts('a')).toBe(true);
  });

  it('leaves a session that waits visible as stuck', async () => {
    const { executor } = parts();
    const { promise, resolve } = Promise.withResolvers<Completion>();
    const running = executor.run({ execute: () => promise, close: async () => undefined }, 7, write('a'));
    await new Promise((done) => setTimeout(done, 30));
    expect(executor.stuckSessions(10)).toEqual([7]);
    resolve({ kind: 'ok' });
    await running;
    expect(executor.stuckSessions(0)).toEqual([]);
  });
});

describe('load', () => {
  it('runs one operation at a time per session, tells the workload of each, and stops at its bound', async () => {
    const { executor, clock } = parts();
    const open = new Set<number>();
    let completed = 0;
    let overlaps = 0;
    const workload = {
      name: 'test',
      next: (session: number): Operation => {
        if (open.has(session)) overlaps++;
        open.add(session);
        return write(`k${session}`);
      },
      completed: (session: number): void => {
        open.delete(session);
        completed++;
      },
    };
    const client = { execute: async (): Promise<Completion> => ({ kind: 'ok' }), close: async () => undefined };
    const load = new Load({
      workload,
      executor,
      clients: [client, client, client, client],
      clock,
      ratePerSecond: Infinity,
      maxOperations: 103,
    });
    await load.start();
    expect(completed).toBe(103);
    expect(overlaps).toBe(0);
  });

  it('rejects when the ledger fails', async () => {
    const { executor, clock, ledger } = parts();
    ledger.failure = new Error('disk full');
    const workload = { name: 'test', next: () => write('k'), completed: () => undefined };
    const client = { execute: async (): Promise<Completion> => ({ kind: 'ok' }), close: async () => undefined };
    await expect(
      new Load({ workload, executor, clients: [client], clock, ratePerSecond: Infinity, maxOperations: 10 }).start(),
    ).rejects.toThrow('disk full');
  });
});

describe('pacer', () => {
  it('keeps the rate over many sessions', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const pacer = new Pacer(2_000, realClock);
    let count = 0;
    let stopping = false;
    const sessions = Array.from({ length: 16 }, async () => {
      while (!stopping) {
        const turn = pacer.turn();
        if (turn !== null) await turn;
        else await new Promise((resolve) => setImmediate(resolve));
        count++;
      }
    });
    for (let ms = 0; ms < 600; ms++) {
      await vi.advanceTimersByTimeAsync(1);
      // Whoever has had a turn asks for the next.
      await new Promise((resolve) => setImmediate(resolve));
    }
    const during = count;
    stopping = true;
    pacer.stop();
    vi.useRealTimers();
    await Promise.all(sessions);
    expect(during).toBeGreaterThan(900);
    expect(during).toBeLessThan(1_400);
  });

  it('gives no more than twice the rate while it catches up', () => {
    const clock = { ms: 0, nowMs: () => clock.ms, wallMs: () => 0 };
    const pacer = new Pacer(1_000, clock);
    clock.ms += 10_000;
    let count = 0;
    while (pacer.turn() === null) count++;
    pacer.stop();
    expect(count).toBe(40);
  });

  it('lets everybody through once it is stopped', async () => {
    const pacer = new Pacer(1, { nowMs: () => 0, wallMs: () => 0 });
    const waiting = pacer.turn();
    expect(waiting).not.toBeNull();
    pacer.stop();
    await waiting;
    expect(pacer.turn()).toBeNull();
  });
});
