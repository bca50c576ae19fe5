/** The client over real sockets, against servers that misbehave in one way each. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { FrameReader } from '../../lib/frame.ts';
import type { Answer, ClientRequest } from '../model/client-wire.ts';
import { decodeRequests, encodeAnswers } from '../model/codec.ts';
import { epoch, incarnation, nodeId, partitionId, seq, term } from '../model/ids.ts';
import type { ClusterView } from '../model/view.ts';
import { type ConnectOptions, ZarisClient } from './client.ts';
import { ZarisAbortedError, ZarisConnectError, ZarisInputError, ZarisUnauthorizedError } from './errors.ts';

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

type Handler = (request: ClientRequest, node: FakeServer, socket: Socket) => Omit<Answer, 'id'> | null;

/** One node of a cluster of fakes that share a view; every key of every partition is served by its primary. */
class FakeServer {
  readonly name: string;
  readonly sockets = new Set<Socket>();
  readonly chunks: number[] = [];
  readonly server: Server;
  requests: ClientRequest[] = [];
  handler: Handler;
  view: ClusterView | null = null;
  port = 0;

  constructor(name: string, handler: Handler) {
    this.name = name;
    this.handler = handler;
    this.server = createServer({ noDelay: true }, (socket) => {
      this.sockets.add(socket);
      const reader = new FrameReader();
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('data', (chunk: Buffer) => {
        this.chunks.push(chunk.byteLength);
        const answers: Answer[] = [];
        for (const request of reader.push(chunk).flatMap(decodeRequests)) {
          this.requests.push(request);
          const answer = this.handler(request, this, socket) ?? this.standard(request);
          if (answer !== null) answers.push({ ...answer, id: request.id });
        }
        if (!socket.destroyed) for (const frame of encodeAnswers(answers)) socket.write(frame);
      });
    });
    cleanUp.push(() => {
      for (const socket of this.sockets) socket.destroy();
      this.server.close();
    });
  }

  private standard(request: ClientRequest): Omit<Answer, 'id'> | null {
    const member = { nodeId: nodeId(this.name), incarnation: incarnation(1) };
    if (request.op === 'hello' || request.op === 'ping') return { status: 'Ok', member };
    if (request.op === 'view') {
      const isNews = this.view !== null && this.view.revision > (request.newerThan ?? -1);
      return isNews ? { status: 'Ok', view: this.view as ClusterView } : null;
    }
    return {
      status: 'Ok',
      value: this.name,
      member,
      version: { term: term(1), seq: seq(1) },
      partition: partitionId(0),
      epoch: epoch(1),
    };
  }

  async listen(): Promise<void> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as { port: number }).port;
  }
}

const silent: Handler = () => null;

async function cluster(count: number, handler: Handler = silent): Promise<FakeServer[]> {
  const servers = Array.from({ length: count }, (_, index) => new FakeServer(`n${index + 1}`, handler));
  for (const server of servers) await server.listen();
  publish(servers, 1, 'n1');
  return servers;
}

/** All of one partition belongs to `owner` from now on; nodes tell those that ask (again). */
function publish(servers: readonly FakeServer[], revision: number, owner: string): void {
  const primary = { nodeId: nodeId(owner), incarnation: incarnation(1) };
  const view: ClusterView = {
    revision,
    clusterId: 'c',
    mapVersion: 1,
    replicationFactor: 2,
    minInSync: 1,
    partitionCount: 1,
    controlLeader: null,
    voters: [],
    nodes: servers.map((server) => ({
      nodeId: nodeId(server.name),
      incarnation: 1,
      clientAddress: `127.0.0.1:${server.port}`,
      alive: true,
      voter: true,
      leaving: false,
    })),
    partitions: [
      {
        partition: partitionId(0),
        preferredPrimary: nodeId('n1'),
        replicas: servers.map((server) => nodeId(server.name)),
        epoch: epoch(revision),
        term: term(revision),
        primary,
        inSync: [primary],
        eligible: [],
        health: 'Healthy',
        serving: true,
        dataLossNumber: 0,
      },
    ],
  };
  for (const server of servers) server.view = view;
}

const fast = { keepAliveMs: 40, deadPeerMs: 120, refreshDebounceMs: 50, viewWaitMs: 100, slowAttemptMs: 40 };
async function connect(servers: readonly FakeServer[], options: ConnectOptions = {}): Promise<ZarisClient> {
  const url = `zaris://${servers.map((server) => `127.0.0.1:${server.port}`).join(',')}/store`;
  const client = await ZarisClient.connect(url, { environment: {}, connectTimeoutMs: 20_000, core: fast, ...options });
  cleanUp.push(() => client.close());
  return client;
}

describe('a client over sockets', () => {
  it('pipelines a turn’s calls on one connection in one write', async () => {
    const servers = await cluster(1);
    const client = await connect(servers, { core: {} });
    const before = servers[0]!.chunks.length;
    const results = await Promise.all(Array.from({ length: 64 }, (_, index) => client.get(`k${index}`)));
    expect(results.every((result) => result.isSuccess && result.servedBy === 'n1')).toBe(true);
    expect(servers[0]!.chunks.length - before).toBeLessThanOrEqual(2);
    expect(servers[0]!.sockets.size).toBe(1);
  });

  it('half-open: a server that has stopped answering is left for the new owner', async () => {
    const servers = await cluster(2);
    const client = await connect(servers);
    await client.get('k');
    servers[0]!.handler = (_request, _node, socket) => {
      socket.pause();
      return null;
    };
    for (const socket of servers[0]!.sockets) socket.pause();
    const { attempts } = client.statistics;
    const call = client.put('k', 'v');
    await expect.poll(() => client.statistics.attempts, { timeout: 20_000 }).toBeGreaterThan(attempts);
    publish(servers, 2, 'n2');
    const result = await call;
    expect(result).toMatchObject({ status: 'Ok', value: 'n2', inDoubt: false });
    // On a busy host the dead peer may be tried once more before the news arrives.
    expect(result.attempts).toBeGreaterThanOrEqual(2);
  });

  it('a server that stops reading does not hold calls for ever, nor without bound', async () => {
    const servers = await cluster(1);
    const client = await connect(servers, { requestTimeoutMs: 700, core: { ...fast, maxInFlight: 8 } });
    for (const socket of servers[0]!.sockets) socket.pause();
    servers[0]!.server.on('connection', (socket) => socket.pause());
    const value = 'v'.repeat(256 * 1024);
    const startMs = performance.now();
    const results = await Promise.all(Array.from({ length: 40 }, (_, index) => client.put(`k${index}`, value)));
    // Without a deadline they would wait for the socket.
    expect(performance.now() - startMs).toBeLessThan(20_000);
    expect(results.every((result) => !result.isSuccess)).toBe(true);
    expect(results.filter((result) => result.inDoubt).length).toBeLessThanOrEqual(3 * 8);
    expect(client.statistics.deadPeers).toBeGreaterThan(0);
  });

  it.each([
    ['a truncated frame', Buffer.from([0, 0, 0, 50, 0x91, 1, 2])],
    ['an oversized frame', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['a frame that is no answer', Buffer.from([0, 0, 0, 2, 0x91, 0xc0])],
  ])('%s costs that connection, and the call goes on', async (_, bytes) => {
    const servers = await cluster(1);
    // Dead peers are not looked for: a stolen processor would look like one, and cost an attempt more.
    const client = await connect(servers, { core: {} });
    let isBroken = false;
    servers[0]!.handler = (request, _node, socket) => {
      if (request.op !== 'mutate' || isBroken) return null;
      isBroken = true;
      socket.end(bytes);
      return null;
    };
    expect(await client.add('k', 1)).toMatchObject({ status: 'Ok', attempts: 2, inDoubt: false });
    const [first, second] = servers[0]!.requests.filter((request) => request.op === 'mutate');
    expect(second).toMatchObject({
      once: { sequence: (first as { once: { sequence: number } }).once.sequence },
      attempt: 2,
    });
  });

  it('answers that come byte by byte are answers', async () => {
    const servers = await cluster(1);
    const client = await connect(servers, { core: {} });
    servers[0]!.handler = (request, _node, socket) => {
      if (request.op !== 'get') return null;
      const [frame] = encodeAnswers([{ id: request.id, status: 'Ok', value: 'slow' }]);
      void (async () => {
        for (const byte of frame as Uint8Array) {
          socket.write(Buffer.from([byte]));
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      })();
      return { status: 'NotFound' };
    };
    // The quick NotFound wins; the slow frame after it is for nobody and harms nothing.
    expect((await client.get('k')).status).toBeTypeOf('string');
    expect((await client.put('k', 'v')).status).toBe('Ok');
  });

  it('a refused token is one clear error at connect, never retried', async () => {
    const servers = await cluster(2, (request) =>
      request.op === 'hello' ? { status: 'Unauthorized', reason: 'wrong token' } : null,
    );
    await expect(connect(servers, { token: 'x' })).rejects.toThrow(ZarisUnauthorizedError);
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(
      servers.flatMap((server) => server.requests).filter((request) => request.op === 'hello').length,
    ).toBeLessThanOrEqual(2);
  });

  it('nobody there is a connect error with its cause', async () => {
    const servers = await cluster(1);
    servers[0]!.server.close();
    const error = await connect(servers, { connectTimeoutMs: 3_000 }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ZarisConnectError);
    expect((error as ZarisConnectError).cause).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('a signal ends a call at once and says whether it is in doubt', async () => {
    const servers = await cluster(1);
    const client = await connect(servers, { core: {} });
    servers[0]!.handler = (request) =>
      request.op === 'mutate' || request.op === 'get' ? { status: 'Unavailable' } : null;
    const controller = new AbortController();
    const waiting = client.put('k', 'v', { signal: controller.signal });
    await expect.poll(() => servers[0]!.requests.some((request) => request.op === 'mutate')).toBe(true);
    controller.abort(new Error('enough'));
    const error = (await waiting.catch((caught: unknown) => caught)) as ZarisAbortedError;
    expect(error).toBeInstanceOf(ZarisAbortedError);
    expect(error).toMatchObject({ inDoubt: true, cause: { message: 'enough' } });
    await expect(client.get('k', { signal: AbortSignal.abort() })).rejects.toThrow(ZarisAbortedError);
  });

  it('closing ends what is under way; `await using` closes', async () => {
    const servers = await cluster(1);
    let call: Promise<unknown>;
    servers[0]!.handler = (request) =>
      request.op === 'mutate' ? ({ status: 'Unavailable', outcome: 'NotExecuted' } as const) : null;
    {
      await using client = await connect(servers, { core: {} });
      call = client.put('k', 'v').catch((error: unknown) => error);
    }
    expect(await call).toBeInstanceOf(ZarisAbortedError);
  });

  it('reaches nodes by translated addresses', async () => {
    const servers = await cluster(2);
    const ports = new Map(servers.map((server) => [server.name, server.port]));
    for (const server of servers) {
      server.view = {
        ...server.view!,
        nodes: server.view!.nodes.map((node) => ({ ...node, clientAddress: `${node.nodeId}.internal:7861` })),
      };
    }
    publishOwner(servers, 'n2');
    const client = await connect([servers[0]!], { core: {}, translate: (id) => `127.0.0.1:${ports.get(id)}` });
    expect(await client.get('k')).toMatchObject({ status: 'Ok', value: 'n2' });
  });
});

function publishOwner(servers: readonly FakeServer[], owner: string): void {
  for (const server of servers) {
    const view = server.view!;
    const [partition] = view.partitions;
    server.view = {
      ...view,
      partitions: [{ ...partition!, primary: { nodeId: nodeId(owner), incarnation: incarnation(1) } }],
    };
  }
}

describe('arguments and environment', () => {
  const url = 'zaris://127.0.0.1:1/s';
  it.each([
    ['http://h:1/s', {}],
    ['zaris://h/s', {}],
    ['zaris://h:0/s', {}],
    ['zaris://h:1,:2/s', {}],
    [url, { environment: { ZARIS_REQUEST_TIMEOUT: 'soon' } }],
    [url, { environment: { ZARIS_REQUEST_TIMEOUT: '0' } }],
    [url, { environment: { ZARIS_CLIENT_MAP_REFRESH_WAIT_MS: '-1' } }],
    [url, { environment: { ZARIS_DISABLE_RETRIES: 'yes' } }],
    [url, { maxAttempts: 0 }],
    [url, { tls: {} }],
  ] as const)('%s with %j is refused before a socket opens', async (bad, options) => {
    await expect(ZarisClient.connect(bad, { connectTimeoutMs: 0, environment: {}, ...options })).rejects.toThrow(
      ZarisInputError,
    );
  });

  it('takes its defaults from the environment', async () => {
    const servers = await cluster(1);
    servers[0]!.handler = (request) =>
      request.op === 'get' ? { status: 'Unavailable', outcome: 'NotExecuted' } : null;
    const single = await connect(servers, { environment: { ZARIS_DISABLE_RETRIES: 'true' } });
    expect((await single.get('k')).attempts).toBe(1);
    const hasty = await connect(servers, { environment: { ZARIS_REQUEST_TIMEOUT: '150ms' } });
    const result = await hasty.get('k');
    expect(result.status).toBe('Unavailable');
    // Far from the default of a minute.
    expect(result.elapsedMs).toBeLessThan(20_000);
  });

  it('checks keys, values and counters', async () => {
    const client = await connect(await cluster(1), { core: {} });
    await expect(client.get('k'.repeat(1025))).rejects.toThrow(ZarisInputError);
    await expect(client.get('\ud800')).rejects.toThrow(ZarisInputError);
    await expect(client.put('k', 'v'.repeat(1024 * 1024 + 1))).rejects.toThrow(ZarisInputError);
    await expect(client.add('k', Number.NaN)).rejects.toThrow(ZarisInputError);
    await expect(client.put('k', 'v', { ttlMs: 0 })).rejects.toThrow(ZarisInputError);
    await expect(client.put('k', 'v', { ifAbsent: true, ifVersion: { term: term(1), seq: seq(1) } })).rejects.toThrow(
      ZarisInputError,
    );
    expect((await client.put('k', 'v'.repeat(1024 * 1024))).status).toBe('Ok');
  });
});
