/**
 * One session's client of Redis: ioredis in Sentinel mode, with every retry of its own turned off.
 *
 * Invariant: a command is handed over at most once. ioredis would otherwise send it again after a reconnection, and an acknowledged
 * value could take effect twice without the history showing it. Source: ioredis README (autoResendUnfulfilledCommands, maxRetriesPerRequest).
 */
import { Redis } from 'ioredis';
import { unreachable } from '../../../lib/assert.ts';
import type { Completion, Operation, StoreClient } from '../../../workloads/port.ts';
import type { NodeAddress } from '../system.ts';
import { completionOfError, elsewhere, NotSentError } from './redis-answers.ts';
import { masterName } from './redis-node.ts';

/** Longest wait for an answer, ms. */
const answerTimeoutMs = 3_000;
/** Longest wait for a connection to a primary before an operation is refused, ms. */
const readyTimeoutMs = 3_000;
const connectTimeoutMs = 1_000;
const reconnectMs = 150;
/** How long WAIT waits for a replica, ms. */
const waitTimeoutMs = 1_000;
/** An operation has ended after this, whatever happens. */
export const operationLimitMs = readyTimeoutMs + answerTimeoutMs + waitTimeoutMs;

export interface RedisClientOptions {
  /** May grow. */
  readonly addresses: readonly NodeAddress[];
  readonly session: number;
  /** Replicas that WAIT waits for after each write; 0: no WAIT. */
  readonly waitReplicas: number;
}

/** The address by which a node is known to the others, and so to Sentinel. */
export const internalOf = ({ internalClientAddress, host, clientPort }: NodeAddress): string =>
  internalClientAddress ?? `${host}:${clientPort}`;

/** The answers of one hand-over: one per command. */
type Answers = readonly [first: unknown, wait: unknown];

export class RedisClient implements StoreClient {
  private readonly redis: Redis;
  private readonly options: RedisClientOptions;

  constructor(options: RedisClientOptions) {
    this.options = options;
    const { addresses, session } = options;
    // Each session asks another Sentinel first, as clients on different machines would.
    const turned = addresses.map((_, index) => addresses[(index + session) % addresses.length] as NodeAddress);
    this.redis = new Redis({
      name: masterName,
      sentinels: turned.map(({ host, httpPort }) => ({ host, port: httpPort })),
      natMap: (internal) => this.outside(internal),
      updateSentinels: false,
      sentinelRetryStrategy: () => reconnectMs,
      retryStrategy: () => reconnectMs,
      sentinelCommandTimeout: connectTimeoutMs,
      connectTimeout: connectTimeoutMs,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      reconnectOnError: (error) => elsewhere.test(error.message),
    });
    // What goes wrong is seen by the operations; without a listener it would end the process.
    this.redis.on('error', () => undefined);
  }

  async execute(operation: Operation): Promise<Completion> {
    let node: string | undefined;
    try {
      await this.connected();
      node = this.connectedNode();
      const completion = await this.run(operation);
      return { ...completion, partition: 0, attempts: 1, ...(node === undefined ? {} : { node }) };
    } catch (error) {
      return { ...completionOfError(error), partition: 0, attempts: 1, ...(node === undefined ? {} : { node }) };
    }
  }

  async close(): Promise<void> {
    this.redis.disconnect();
  }

  private outside(internal: string): { host: string; port: number } | null {
    const found = this.options.addresses.find((address) => internalOf(address) === internal);
    return found === undefined ? null : { host: found.host, port: found.clientPort };
  }

  private connectedNode(): string | undefined {
    const { remotePort, remoteAddress } = this.redis.stream;
    return this.options.addresses.find(({ host, clientPort }) => clientPort === remotePort && host === remoteAddress)
      ?.nodeId;
  }

  private connected(): Promise<void> {
    const { redis } = this;
    if (redis.status === 'ready') return Promise.resolve();
    return new Promise((resolve, reject) => {
      const ready = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        redis.off('ready', ready);
        reject(new NotSentError(`no connection to a primary within ${readyTimeoutMs} ms`));
      }, readyTimeoutMs);
      redis.once('ready', ready);
    });
  }

  private async run(operation: Operation): Promise<Completion> {
    const { key } = operation;
    switch (operation.f) {
      case 'read':
        return { kind: 'ok', value: await this.answer<string | null>(this.redis.get(key)) };
      case 'write': {
        const { value, ttlMs } = operation;
        return this.written(ttlMs === undefined ? ['set', key, value] : ['set', key, value, 'PX', ttlMs], () => ({
          kind: 'ok',
        }));
      }
      case 'create':
        return this.written(['set', key, operation.value, 'NX'], (answer) =>
          answer === null ? { kind: 'fail', why: 'condition', error: 'the key is there' } : { kind: 'ok' },
        );
      case 'delete':
        if (operation.expected !== undefined) return noVersions;
        return this.written(['del', key], (answer) =>
          Number(answer) === 0 ? { kind: 'fail', why: 'condition', error: 'no such key' } : { kind: 'ok' },
        );
      case 'add':
        return this.written(['incrby', key, operation.delta], (answer) => ({ kind: 'ok', value: String(answer) }));
      case 'cas':
        return noVersions;
      default:
        return unreachable(operation, 'operation');
    }
  }

  /** A write, and the replicas' word for it where the profile asks for that. Nobody has vouched for a write whose WAIT fell short. */
  private async written(
    [name, ...args]: readonly [string, ...(string | number)[]],
    completion: (answer: unknown) => Completion,
  ): Promise<Completion> {
    const { waitReplicas } = this.options;
    if (waitReplicas === 0) return completion(await this.answer(this.redis.call(name, ...args)));
    const both = Promise.all([
      this.redis.call(name, ...args),
      // An error of WAIT says nothing of the write before it.
      this.redis.wait(waitReplicas, waitTimeoutMs).catch((error: unknown) => error),
    ]);
    const [answer, vouched]: Answers = (await this.answer(both)) as Answers;
    const done = completion(answer);
    if (done.kind !== 'ok') return done;
    if (typeof vouched === 'number' && vouched >= waitReplicas) return done;
    // A primary without replicas may have been replaced: Sentinel is asked again before the next operation.
    this.redis.stream.destroy();
    return typeof vouched === 'number'
      ? { kind: 'info', error: `WAIT: ${vouched} of ${waitReplicas} replicas have it` }
      : { kind: 'info', error: `WAIT failed: ${String(vouched)}` };
  }

  /** The answer, or an error when it is late; a connection that is silent for so long is given up, so that Sentinel is asked again. */
  private async answer<T>(work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        // Not an orderly end, which would wait for the silent peer; ioredis connects again.
        this.redis.stream.destroy();
        reject(new Error(`no answer within ${answerTimeoutMs} ms`));
      }, answerTimeoutMs);
    });
    work.catch(() => undefined);
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

const noVersions: Completion = { kind: 'fail', why: 'invalid', error: 'not offered: versions' };
