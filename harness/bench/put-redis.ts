/** Redis as one of the compared systems: one primary, one replica, no persistence; every put is followed by WAIT 1 in the same round trip. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freeHostPorts } from '../../docker/host-ports.ts';
import { type BenchContext, startProgram } from './bench-context.ts';
import { eventually, type PutSystem } from './put-systems.ts';
import type { Writer } from './load.ts';

const host = '127.0.0.1';
const startTimeoutMs = 20_000;
/** Longest wait for the replica before the put counts as not acknowledged, ms. */
const waitMs = 2_000;

function writerOf(redis: Redis): Writer {
  return {
    async put(key, value) {
      const results = await redis.pipeline().set(key, value).wait(1, waitMs).exec();
      for (const [error] of results ?? []) if (error !== null) throw error;
      if (results?.[1]?.[1] !== 1) throw new Error(`no replica had it within ${waitMs} ms`);
    },
  };
}

function serverArguments(directory: string, port: number): string[] {
  mkdirSync(directory, { recursive: true });
  return [
    '--port',
    String(port),
    '--bind',
    host,
    '--dir',
    directory,
    '--save',
    '',
    '--appendonly',
    'no',
    '--daemonize',
    'no',
    '--repl-diskless-sync-delay',
    '0',
  ];
}

/** Starts both servers and waits until the replica follows. */
export async function startRedis(context: BenchContext, program: string): Promise<PutSystem> {
  await using stack = new AsyncDisposableStack();
  const [primaryPort = 0, replicaPort = 0] = await freeHostPorts(2);
  const folder = (name: string): string => join(context.workDir, 'redis', name);
  const primary = stack.use(
    await startProgram(context, 'redis-primary', [program, ...serverArguments(folder('primary'), primaryPort)]),
  );
  const replica = stack.use(
    await startProgram(context, 'redis-replica', [
      program,
      ...serverArguments(folder('replica'), replicaPort),
      '--replicaof',
      `${host} ${primaryPort}`,
    ]),
  );
  const connect = async (port: number): Promise<Redis> => {
    const redis = new Redis({ host, port, lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 });
    redis.on('error', () => undefined);
    await redis.connect();
    return redis;
  };
  await eventually('the replica of Redis', startTimeoutMs, context.signal, async () => {
    const redis = await connect(replicaPort);
    try {
      return /master_link_status:up/.test(await redis.info('replication')) ? true : null;
    } finally {
      redis.disconnect();
    }
  });
  const started = stack.move();
  return {
    name: 'Redis, WAIT 1',
    promise:
      'in the memory of the primary and of one replica; nothing decides who leads next, so a failover may still choose a copy without it; not on disk',
    pids: [primary.pid, replica.pid],
    async connect(count) {
      const clients = await Promise.all(Array.from({ length: count }, () => connect(primaryPort)));
      return {
        writers: clients.map(writerOf),
        close: async () => {
          for (const client of clients) client.disconnect();
        },
      };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
