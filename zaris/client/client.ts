/**
 * `ZarisClient`: the promise API over the client core. The one place of the client that draws a real clock and a real seed. It turns
 * arguments into operations and results into what callers read; it retries nothing by itself.
 */
import { randomInt, randomUUID } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { Prng } from '../../lib/prng.ts';
import type { AckMode, AdminCommand, Mutation, ScanItem } from '../model/client-wire.ts';
import { nodeId, partitionId, type Version } from '../model/ids.ts';
import { fitsUtf8, maxKeyBytes, maxScanItems, maxValueBytes } from '../model/limits.ts';
import type { ClusterView } from '../model/view.ts';
import {
  type CallOperation,
  type CallResult,
  type CallTarget,
  type ClientOptions,
  type ClientStatistics,
  defaultClientOptions,
} from './contract.ts';
import { ClientCore } from './core.ts';
import { ClientDriver, type ClientTls } from './driver.ts';
import { ZarisAbortedError, ZarisConnectError, ZarisInputError, ZarisUnauthorizedError } from './errors.ts';
import { type OperationResult, operationResult, type PeekResult, type ScanResult, type ViewResult } from './result.ts';
import { isAddress, parseUrl, readEnvironment } from './settings.ts';

export interface ConnectOptions {
  readonly token?: string;
  /** Trust and identity for `zariss://`. */
  readonly tls?: ClientTls;
  /** A node's own address → `host:port` that this client can reach. */
  readonly translate?: (nodeId: string, address: string) => string;
  /** Defaults of every call; Infinity turns the deadline off. Without it ZARIS_REQUEST_TIMEOUT counts, else 60,000. */
  readonly requestTimeoutMs?: number;
  readonly maxAttempts?: number;
  readonly mapRefreshWaitMs?: number;
  /** How long to wait for the first map, ms; 0 returns without one (a cluster that is not bootstrapped yet has none). */
  readonly connectTimeoutMs?: number;
  /** Unique among all clients that ever talk to the cluster; drawn at random when absent. */
  readonly clientId?: string;
  readonly clock?: Clock;
  readonly seed?: number;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Everything else of the core, for tests and tuning. */
  readonly core?: Partial<ClientOptions>;
}

export interface CallOptions {
  readonly timeoutMs?: number;
  readonly maxAttempts?: number;
  readonly signal?: AbortSignal;
}

export interface MutateOptions extends CallOptions {
  readonly mode?: AckMode;
}

export interface PutOptions extends MutateOptions {
  readonly ifAbsent?: boolean;
  readonly ifVersion?: Version;
  readonly ttlMs?: number;
}

export interface ScanOptions extends CallOptions {
  /** Default 1,000. */
  readonly limit?: number;
  /** Exclusive: the last key of the page before. */
  readonly after?: string;
}

const systemClock: Clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };
/** Wait for the first map where none is given, ms. */
export const defaultConnectTimeoutMs = 15_000;
/** What a call without options has; told from others by identity. */
const noOptions: PutOptions = Object.freeze({});
/** Redirects that an administrative command follows. */
const maxAdminRedirects = 3;

/** A client of one store. `await using client = await ZarisClient.connect(url)`. */
export class ZarisClient {
  private readonly core: ClientCore;
  private readonly driver: ClientDriver;

  private constructor(core: ClientCore, driver: ClientDriver) {
    this.core = core;
    this.driver = driver;
  }

  /**
   * Connects and waits for the first map. Throws {@link ZarisInputError} (URL, options, environment), {@link ZarisUnauthorizedError}
   * (token, certificate) or {@link ZarisConnectError} (nobody answered in time).
   */
  static async connect(url: string, options: ConnectOptions = {}): Promise<ZarisClient> {
    const { isTls, seeds } = parseUrl(url);
    if (options.tls !== undefined && !isTls) throw new ZarisInputError('TLS settings need a zariss:// URL');
    const clock = options.clock ?? systemClock;
    const core = new ClientCore(coreOptions(seeds, options), new Prng(options.seed ?? randomInt(2 ** 32)));
    const translate = options.translate ?? ((_nodeId: string, address: string): string => address);
    const driver = new ClientDriver({ core, clock, tls: isTls ? (options.tls ?? {}) : null, translate });
    const client = new ZarisClient(core, driver);
    driver.start();
    const timeoutMs = options.connectTimeoutMs ?? defaultConnectTimeoutMs;
    if (timeoutMs > 0) await client.firstMap(url, timeoutMs);
    return client;
  }

  private async firstMap(url: string, timeoutMs: number): Promise<void> {
    const { driver } = this;
    try {
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => {
          reject(new ZarisConnectError(`no map from ${url} within ${timeoutMs} ms`, { cause: driver.lastFailure }));
        }, timeoutMs);
        driver.whenReady((refusal) => {
          clearTimeout(timer);
          if (refusal === null) resolve();
          else
            reject(
              new ZarisUnauthorizedError(`the cluster refused this client: ${refusal}`, { cause: driver.lastFailure }),
            );
        });
      });
    } catch (error) {
      driver.close();
      throw error;
    }
  }

  /** The newest known view, or null before the first. */
  get view(): ClusterView | null {
    return this.core.view;
  }

  /** Counters since the start; a copy. */
  get statistics(): ClientStatistics {
    return structuredClone(this.core.statistics);
  }

  get(key: string, options: CallOptions = noOptions): Promise<OperationResult> {
    const wrong = wrongKey(key);
    return wrong === null ? this.operate({ kind: 'get', key }, options) : Promise.reject(new ZarisInputError(wrong));
  }

  put(key: string, value: string, options: PutOptions = noOptions): Promise<OperationResult> {
    const wrong = wrongKey(key) ?? wrongValue(value);
    if (wrong !== null) return Promise.reject(new ZarisInputError(wrong));
    if (options === noOptions) return this.operate({ kind: 'mutate', mutation: { kind: 'put', key, value } }, options);
    return this.putWith(key, value, options);
  }

  private async putWith(key: string, value: string, options: PutOptions): Promise<OperationResult> {
    const { ifAbsent, ifVersion, ttlMs } = options;
    if (ifAbsent === true && ifVersion !== undefined)
      throw new ZarisInputError('ifAbsent and ifVersion exclude each other');
    if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs > 0))
      throw new ZarisInputError('ttlMs is a whole number above zero');
    return this.mutate(
      {
        kind: 'put',
        key,
        value,
        ...(ifAbsent === true ? { ifAbsent } : {}),
        ...(ifVersion === undefined ? {} : { ifVersion }),
        ...(ttlMs === undefined ? {} : { ttlMs }),
      },
      options,
    );
  }

  async delete(key: string, options: MutateOptions & { readonly ifVersion?: Version } = {}): Promise<OperationResult> {
    const { ifVersion } = options;
    return this.mutate({ kind: 'delete', key, ...(ifVersion === undefined ? {} : { ifVersion }) }, options);
  }

  /** Adds to a counter (an absent key counts as 0). `Conflict` when the sum would leave [min, max]. */
  async add(
    key: string,
    delta: number,
    options: MutateOptions & { readonly min?: number; readonly max?: number } = {},
  ): Promise<OperationResult> {
    const { min, max } = options;
    for (const number of [delta, min ?? 0, max ?? 0])
      if (!Number.isFinite(number)) throw new ZarisInputError('counters take finite numbers');
    return this.mutate(
      { kind: 'add', key, delta, ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) },
      options,
    );
  }

  /** Independent puts, pipelined; results in order. */
  putMany(
    entries: Iterable<readonly [key: string, value: string]>,
    options: PutOptions = {},
  ): Promise<OperationResult[]> {
    return Promise.all([...entries].map(([key, value]) => this.put(key, value, options)));
  }

  /** Independent gets, pipelined; results in order. */
  getMany(keys: Iterable<string>, options: CallOptions = {}): Promise<OperationResult[]> {
    return Promise.all([...keys].map((key) => this.get(key, options)));
  }

  /** Keys that start with `prefix`, in order, across all partitions. Each partition is read by itself: no snapshot of the whole. */
  async scan(prefix: string, options: ScanOptions = {}): Promise<ScanResult> {
    const { limit = 1000, after } = options;
    checkKey(prefix);
    if (after !== undefined) checkKey(after);
    if (!(Number.isSafeInteger(limit) && limit >= 1 && limit <= maxScanItems))
      throw new ZarisInputError(`limit is 1 to ${maxScanItems}`);
    const count = this.core.view?.partitionCount;
    if (count === undefined) throw new ZarisConnectError('there is no map yet to scan by');
    const paging = after === undefined ? { prefix, limit } : { prefix, limit, after };
    const results = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        this.run({ kind: 'scan', partition: partitionId(index), ...paging }, options),
      ),
    );
    const attempts = Math.max(...results.map((result) => result.attempts));
    const elapsedMs = Math.max(...results.map((result) => result.elapsedMs));
    const failed = results.find((result) => result.status !== 'Ok');
    if (failed !== undefined) return { ...operationResult(failed), attempts, elapsedMs, items: [], more: true };
    return { status: 'Ok', isSuccess: true, inDoubt: false, attempts, elapsedMs, ...mergeScans(results, limit) };
  }

  /** One node's own applied copy of keys, whatever its role: for autopsies. `target`: node id or host:port. */
  async peek(
    target: string,
    partition: number,
    keys: readonly string[],
    options: CallOptions = {},
  ): Promise<PeekResult> {
    keys.forEach(checkKey);
    const result = await this.run(
      { kind: 'peek', target: this.target(target), partition: partitionId(partition), keys },
      options,
    );
    const copy = result.answer?.copy;
    return copy === undefined ? operationResult(result) : { ...operationResult(result), copy };
  }

  /** The view as this very node has it; also refreshes the client's own. */
  async fetchView(target: string, options: CallOptions = {}): Promise<ViewResult> {
    const result = await this.run({ kind: 'view', target: this.target(target) }, options);
    const view = result.answer?.view;
    return view === undefined ? operationResult(result) : { ...operationResult(result), view };
  }

  /** Sends an administrative command to a node, and on to the control leader where that node names it. */
  async admin(command: AdminCommand, target: string, options: CallOptions = {}): Promise<OperationResult> {
    let next = this.target(target);
    for (let redirects = 0; ; redirects++) {
      const result = await this.run({ kind: 'admin', target: next, command }, options);
      const owner = result.answer?.owner;
      if (result.status !== 'Moved' || owner === undefined || redirects >= maxAdminRedirects)
        return operationResult(result);
      next = { nodeId: owner };
    }
  }

  /** Ends every call (mutations under way stay in doubt) and every connection. */
  async close(): Promise<void> {
    this.driver.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private target(text: string): CallTarget {
    const nodes = this.core.view?.nodes ?? [];
    const announced = nodes.find((node) => node.nodeId === text || node.clientAddress === text);
    if (announced !== undefined) return { nodeId: announced.nodeId };
    return isAddress(text) ? { address: text } : { nodeId: nodeId(text) };
  }

  private async mutate(mutation: Mutation, options: MutateOptions): Promise<OperationResult> {
    checkKey(mutation.key);
    const { mode } = options;
    return this.operate({ kind: 'mutate', mutation, ...(mode === undefined ? {} : { mode }) }, options);
  }

  private operate(operation: CallOperation, options: CallOptions): Promise<OperationResult> {
    return this.start(operation, options, operationResult);
  }

  private run(operation: CallOperation, options: CallOptions): Promise<CallResult> {
    return this.start(operation, options, (result) => result);
  }

  /** One promise for the whole way: each more of them costs a busy client a few percent. */
  private start<T>(operation: CallOperation, options: CallOptions, face: (result: CallResult) => T): Promise<T> {
    const { signal, timeoutMs, maxAttempts } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true)
        return reject(new ZarisAbortedError('aborted before it began', false, signal.reason));
      const isPlain = timeoutMs === undefined && maxAttempts === undefined;
      const bounds = isPlain
        ? noOptions
        : {
            ...(timeoutMs === undefined ? {} : { timeoutMs }),
            ...(maxAttempts === undefined ? {} : { maxAttempts }),
          };
      let onAbort: (() => void) | undefined;
      const callId = this.driver.call(operation, bounds, (result) => {
        if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort);
        const error = thrown(result, signal);
        if (error === null) resolve(face(result));
        else reject(error);
      });
      if (signal !== undefined) {
        onAbort = (): void => this.driver.cancel(callId);
        signal.addEventListener('abort', onAbort, { once: true });
      }
    });
  }
}

/** The ends of a call that are exceptions. */
function thrown(result: CallResult, signal: AbortSignal | undefined): Error | null {
  switch (result.status) {
    case 'Cancelled':
      return new ZarisAbortedError('the call was aborted', result.inDoubt, signal?.reason);
    case 'Closed':
      return new ZarisAbortedError('the client was closed', result.inDoubt, undefined);
    case 'Unauthorized':
      return new ZarisUnauthorizedError(`the cluster refused this client: ${result.reason ?? 'unauthorized'}`);
    default:
      return null;
  }
}

function coreOptions(seeds: readonly string[], options: ConnectOptions): ClientOptions {
  const environment = readEnvironment(options.environment ?? process.env);
  const maxAttempts =
    environment.isRetryDisabled === true ? 1 : (options.maxAttempts ?? defaultClientOptions.retry.maxAttempts);
  const requestTimeoutMs =
    options.requestTimeoutMs ?? environment.requestTimeoutMs ?? defaultClientOptions.requestTimeoutMs;
  const mapRefreshWaitMs =
    options.mapRefreshWaitMs ?? environment.mapRefreshWaitMs ?? defaultClientOptions.mapRefreshWaitMs;
  if (!(Number.isSafeInteger(maxAttempts) && maxAttempts >= 1))
    throw new ZarisInputError('maxAttempts is a whole number of at least 1');
  if (!(requestTimeoutMs > 0)) throw new ZarisInputError('requestTimeoutMs is above zero');
  if (!(mapRefreshWaitMs >= 0)) throw new ZarisInputError('mapRefreshWaitMs is not negative');
  return {
    ...defaultClientOptions,
    ...options.core,
    clientId: options.clientId ?? randomUUID(),
    seeds,
    ...(options.token === undefined ? {} : { token: options.token }),
    requestTimeoutMs,
    mapRefreshWaitMs,
    retry: { ...defaultClientOptions.retry, ...options.core?.retry, maxAttempts },
  };
}

/** What is wrong with a key, or null. */
function wrongKey(key: string): string | null {
  if (typeof key !== 'string' || !key.isWellFormed()) return 'a key is well-formed text';
  return fitsUtf8(key, maxKeyBytes) ? null : `a key has at most ${maxKeyBytes} bytes of UTF-8`;
}

function wrongValue(value: string): string | null {
  if (typeof value !== 'string' || !value.isWellFormed()) return 'a value is well-formed text';
  return fitsUtf8(value, maxValueBytes) ? null : `a value has at most ${maxValueBytes} bytes of UTF-8`;
}

function checkKey(key: string): void {
  const wrong = wrongKey(key);
  if (wrong !== null) throw new ZarisInputError(wrong);
}

/** The first `limit` of what all partitions gave, each of which gave its own first ones. */
function mergeScans(results: readonly CallResult[], limit: number): { items: ScanItem[]; more: boolean } {
  const items = results.flatMap((result) => result.answer?.items ?? []);
  items.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  // A partition that stopped early holds nothing back before its own last key only.
  let bound: string | null = null;
  for (const { answer } of results) {
    if (answer?.more !== true) continue;
    const last = answer.items?.at(-1)?.key ?? '';
    if (bound === null || last < bound) bound = last;
  }
  const complete = bound === null ? items : items.filter((item) => item.key <= bound);
  return { items: complete.slice(0, limit), more: bound !== null || complete.length > limit };
}
