import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../lib/clock.ts';
import { encodeFrame, FrameReader } from '../../lib/frame.ts';
import { silentLogger } from '../../lib/logger.ts';
import type { Answer, ClientRequest } from '../model/client-wire.ts';
import { decodeAnswers, encodeRequests } from '../model/codec.ts';
import { nodeId, partitionId } from '../model/ids.ts';
import { maxRequestFrameBytes } from '../model/limits.ts';
import type { ClusterView } from '../model/view.ts';
import type { Effect, NodeEvent } from '../node/contract.ts';
import { readConfig } from './config.ts';
import { NodeShell, type RunnableNode } from './shell.ts';

/** A node of the test's making; everything else of it is empty. */
class FakeNode implements RunnableNode {
  readonly events: NodeEvent[] = [];
  onEvent: (event: NodeEvent) => Effect[] = () => [];
  steps = 0;

  stepAll(events: readonly NodeEvent[]): Effect[] {
    this.steps++;
    this.events.push(...events);
    return events.flatMap((event) => this.onEvent(event));
  }

  view(): ClusterView {
    return { revision: 7 } as ClusterView;
  }

  partitionsReport(): object[] {
    return [{ partition: 0 }];
  }

  identity() {
    return { nodeId: nodeId('n1'), incarnation: 3, controlLeader: null, ready: true };
  }

  metrics(): Record<string, number> {
    return { steps: this.steps };
  }

  of<K extends NodeEvent['kind']>(kind: K): Extract<NodeEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<NodeEvent, { kind: K }> => event.kind === kind);
  }
}

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

interface Running {
  readonly shell: NodeShell;
  readonly node: FakeNode;
  readonly exits: number[];
  readonly clock: { offsetMs: number } & Clock;
}

async function start(settings: Record<string, string> = {}, node = new FakeNode()): Promise<Running> {
  const directory = await mkdtemp(join(tmpdir(), 'zaris-shell-'));
  cleanUp.push(() => rm(directory, { recursive: true, force: true }));
  const ports = { ZARIS_CLIENT_PORT: '0', ZARIS_CLUSTER_PORT: '0', ZARIS_HTTP_PORT: '0', ZARIS_HOST: '127.0.0.1' };
  const config = readConfig({ ZARIS_NODE_ID: 'n1', ZARIS_DATA_DIR: directory, ...ports, ...settings }, []);
  const clock = { offsetMs: 0, nowMs: (): number => performance.now() + clock.offsetMs, wallMs: () => Date.now() };
  const exits: number[] = [];
  const shell = await NodeShell.start({
    config,
    createNode: () => node,
    logger: silentLogger,
    clock,
    seed: 1,
    onExit: (code) => exits.push(code),
  });
  cleanUp.push(() => shell.close());
  return { shell, node, exits, clock };
}

class RawClient {
  readonly socket: Socket;
  readonly answers: Answer[] = [];
  isClosed = false;

  constructor(port: number) {
    this.socket = connect({ host: '127.0.0.1', port });
    const reader = new FrameReader();
    this.socket.on('data', (chunk: Buffer) => this.answers.push(...reader.push(chunk).flatMap(decodeAnswers)));
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => (this.isClosed = true));
    cleanUp.push(() => this.socket.destroy());
  }

  send(...requests: ClientRequest[]): this {
    for (const frame of encodeRequests(requests)) this.socket.write(frame);
    return this;
  }

  hello(token?: string): this {
    return this.send({ op: 'hello', id: 1, clientId: 'c', ...(token === undefined ? {} : { token }) });
  }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const endMs = performance.now() + 50_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

const get = (id: number): ClientRequest => ({ op: 'get', id, partition: partitionId(0), key: 'k' });
const put = (id: number, value: string): ClientRequest => ({
  op: 'mutate',
  id,
  partition: partitionId(0),
  once: { clientId: 'c', sequence: id, lowWatermark: 1 },
  attempt: 1,
  mutation: { kind: 'put', key: 'k', value },
});
const answerAll = (event: NodeEvent): Effect[] =>
  event.kind === 'request'
    ? [{ kind: 'reply', connection: event.connection, answer: { id: event.request.id, status: 'Ok' } }]
    : [];

describe('clients', () => {
  it('a turn of input is one step, and greeting and ping never reach the node', async () => {
    const { shell, node } = await start();
    node.onEvent = answerAll;
    const client = new RawClient(shell.ports.client).hello().send({ op: 'ping', id: 2 }, get(3), get(4));
    await until(() => client.answers.length === 4, 'four answers');
    expect(client.answers[0]).toEqual({ id: 1, status: 'Ok', member: { nodeId: 'n1', incarnation: 3 } });
    expect(node.of('request').map((event) => event.request.id)).toEqual([3, 4]);
  });

  it('answers pass a persist; every record still gets to the disk and is fed back', async () => {
    const { shell, node } = await start();
    let ticket = 0;
    node.onEvent = (event) => {
      if (event.kind !== 'request') return [];
      return [
        { kind: 'persist', ticket: ++ticket, writes: [{ kind: 'vote', raftTerm: ticket, votedFor: null }] },
        ...answerAll(event),
      ];
    };
    const client = new RawClient(shell.ports.client).hello().send(get(2), get(3));
    await until(() => client.answers.length === 3, 'all answers');
    expect(client.answers.map((answer) => answer.id)).toEqual([1, 2, 3]);
    await until(() => node.of('persisted').length === 2, 'both records');
    expect(node.of('persisted').map((event) => event.ticket)).toEqual([1, 2]);
  });

  it.each([
    ['no list', encodeFrame(new Uint8Array([0x80]))],
    ['a length over the bound', new Uint8Array([0xff, 0xff, 0xff, 0xff, 1, 2, 3])],
    ['a claimed gigabyte inside', encodeFrame(new Uint8Array([0xdd, 0x3f, 0xff, 0xff, 0xff]))],
    [
      'a frame just over the bound',
      (() => {
        const header = new Uint8Array(4);
        new DataView(header.buffer).setUint32(0, maxRequestFrameBytes + 1);
        return header;
      })(),
    ],
  ])('%s: a typed answer, that connection closes, others go on', async (_, bytes) => {
    const { shell, node } = await start();
    node.onEvent = answerAll;
    const good = new RawClient(shell.ports.client).hello();
    const bad = new RawClient(shell.ports.client).hello();
    await until(() => bad.answers.length === 1 && good.answers.length === 1, 'greetings');
    bad.socket.write(bytes);
    await until(() => bad.isClosed, 'the bad connection closes');
    expect(bad.answers[1]).toMatchObject({ id: 0, status: 'InvalidInput' });
    expect(node.of('connectionClosed')).toHaveLength(1);
    good.send(get(2));
    await until(() => good.answers.length === 2, 'the good one is served');
  });

  it('half a frame and a closed connection is nothing at all', async () => {
    const { shell, node } = await start();
    const client = new RawClient(shell.ports.client).hello();
    await until(() => client.answers.length === 1, 'greeting');
    client.socket.end((encodeRequests([get(2)])[0] as Uint8Array).subarray(0, 9));
    await until(() => node.of('connectionClosed').length === 1, 'closed');
    expect(node.of('request')).toHaveLength(0);
  });

  it('a wrong or missing token gets one refusal and no more, whatever else it sent', async () => {
    const { shell, node } = await start({ ZARIS_TOKEN: 'right' });
    node.onEvent = answerAll;
    const wrong = new RawClient(shell.ports.client).hello('wrong').send({ op: 'view', id: 2 });
    const none = new RawClient(shell.ports.client).send({ op: 'view', id: 2 });
    await until(() => wrong.isClosed && none.isClosed, 'both close');
    expect(wrong.answers).toEqual([{ id: 1, status: 'Unauthorized', reason: 'wrong token' }]);
    expect(none.answers.map((answer) => answer.status)).toEqual(['Unauthorized']);
    expect(node.of('request')).toHaveLength(0);
    const right = new RawClient(shell.ports.client).hello('right').send(get(2));
    await until(() => right.answers.length === 2, 'the right one is served');
  });

  it('closes unread what arrives after a long silence', async () => {
    const { shell, node, clock } = await start({ ZARIS_CLIENT_IDLE_MS: '60000' });
    node.onEvent = answerAll;
    const client = new RawClient(shell.ports.client).hello();
    await until(() => client.answers.length === 1, 'greeting');
    clock.offsetMs += 20_000;
    client.send(get(2));
    await until(() => client.answers.length === 2, 'still served');
    clock.offsetMs += 31_000;
    client.send(put(3, 'late'));
    await until(() => client.isClosed, 'closed');
    expect(node.of('request').map((event) => event.request.id)).toEqual([2]);
  });

  it('stops reading from a client that does not read', async () => {
    const { shell, node } = await start();
    const value = 'v'.repeat(512 * 1024);
    node.onEvent = (event) =>
      event.kind === 'request'
        ? [{ kind: 'reply', connection: event.connection, answer: { id: event.request.id, status: 'Ok', value } }]
        : [];
    const client = new RawClient(shell.ports.client).hello();
    await until(() => client.answers.length === 1, 'greeting');
    client.socket.pause();
    for (let id = 2; id < 62; id++) client.send(get(id));
    await until(() => node.of('request').length === 60, 'the first are taken');
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (let id = 62; id < 72; id++) client.send(get(id));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(node.of('request')).toHaveLength(60);
    client.socket.resume();
    await until(() => client.answers.length === 71, 'all is served once it reads');
  });

  it('refuses connections over its bound with a typed answer', async () => {
    const { shell } = await start({ ZARIS_MAX_CONNECTIONS: '1' });
    const first = new RawClient(shell.ports.client).hello();
    await until(() => first.answers.length === 1, 'greeting');
    const second = new RawClient(shell.ports.client);
    await until(() => second.isClosed, 'the second closes');
    expect(second.answers[0]).toMatchObject({ status: 'Unavailable', outcome: 'NotExecuted' });
  });

  it('over the memory limit writes are refused, reads and deletes are not', async () => {
    const { shell, node } = await start({ ZARIS_MEMORY_LIMIT_MB: '1' });
    node.onEvent = answerAll;
    const deletion: ClientRequest = { ...put(4, ''), mutation: { kind: 'delete', key: 'k' } } as ClientRequest;
    const client = new RawClient(shell.ports.client).hello().send(put(2, 'v'), get(3), deletion);
    await until(() => client.answers.length === 4, 'answers');
    expect(client.answers.find((answer) => answer.id === 2)).toMatchObject({
      status: 'Unavailable',
      outcome: 'NotExecuted',
    });
    expect(node.of('request').map((event) => event.request.id)).toEqual([3, 4]);
  });
});

describe('the node’s time and end', () => {
  it('feeds a tick at the wake, and again when the node forgets to ask', async () => {
    const { node } = await start(
      {},
      Object.assign(new FakeNode(), {
        onEvent: (event: NodeEvent): Effect[] =>
          event.kind === 'start' ? [{ kind: 'wake', atMs: performance.now() + 30 }] : [],
      }),
    );
    await until(() => node.of('tick').length >= 2, 'two ticks');
  });

  it('passes on shutdown and exit', async () => {
    const { shell, node, exits } = await start();
    node.onEvent = (event) => (event.kind === 'shutdown' ? [{ kind: 'exit', code: 0 }] : []);
    shell.shutdown();
    await until(() => exits.length === 1, 'exit');
    expect(exits).toEqual([0]);
  });
});

describe('HTTP', () => {
  it('shows health, views, metrics and numbered events, read only', async () => {
    const { shell, node } = await start();
    node.onEvent = (event) =>
      event.kind === 'request'
        ? [{ kind: 'notice', notice: { name: 'edge', level: 'info', fields: { partition: event.request.id } } }]
        : [];
    new RawClient(shell.ports.client).hello().send(get(2), get(3));
    const base = `http://127.0.0.1:${shell.ports.http}`;
    const json = async (path: string): Promise<unknown> => (await fetch(base + path)).json();
    await until(() => node.of('request').length === 2, 'requests');
    expect(await json('/health')).toMatchObject({ nodeId: 'n1', incarnation: 3, pid: process.pid });
    expect(await json('/cluster')).toEqual({ revision: 7 });
    expect(await json('/partitions')).toEqual([{ partition: 0 }]);
    expect(await json('/events?after=1')).toMatchObject([{ number: 2, name: 'edge', fields: { partition: 3 } }]);
    expect(await (await fetch(`${base}/metrics`)).text()).toMatch(/zaris_steps\{node="n1"\} [1-9]/);
    expect((await fetch(`${base}/cluster`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${base}/nothing`)).status).toBe(404);
  });
});

describe('peers', () => {
  const look = (nonce: number): Effect => ({ kind: 'send', to: nodeId('n2'), message: { kind: 'look', nonce } });

  async function pair(
    settings: Record<string, string> = {},
    other: Record<string, string> = settings,
  ): Promise<{ a: Running; b: Running }> {
    const b = await start({ ...other, ZARIS_NODE_ID: 'n2' });
    const a = await start({ ...settings, ZARIS_PEERS: `n2=127.0.0.1:${b.shell.ports.cluster}` });
    return { a, b };
  }

  it('tell when a link is up, carry messages, and tell once when the peer is gone and when it is back', async () => {
    const { a, b } = await pair();
    await until(() => a.node.of('linkUp').length === 1, 'link up');
    a.node.onEvent = (event) => (event.kind === 'shutdown' ? [look(1), look(2)] : []);
    a.shell.shutdown();
    await until(() => b.node.of('message').length === 2, 'messages');
    expect(b.node.of('message')[0]).toMatchObject({ from: 'n1', message: { kind: 'look', nonce: 1 } });
    await b.shell.close();
    await until(() => a.node.of('linkDown').length === 1, 'link down');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(a.node.of('linkDown')).toHaveLength(1);
  });

  it('are refused with a wrong token, and nothing of theirs gets through', async () => {
    const { a, b } = await pair({ ZARIS_TOKEN: 'wrong' }, { ZARIS_TOKEN: 'right' });
    a.node.onEvent = (event) => (event.kind === 'tick' ? [look(1)] : []);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(a.node.of('linkUp')).toHaveLength(0);
    expect(b.node.of('message')).toHaveLength(0);
  });

  it('that accept and never answer are not called down', async () => {
    const mute = (await import('node:net')).createServer();
    mute.listen(0, '127.0.0.1');
    await once(mute, 'listening');
    cleanUp.push(() => mute.close());
    const { port } = mute.address() as { port: number };
    const { node } = await start({ ZARIS_PEERS: `n2=127.0.0.1:${port}` });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(node.of('linkDown')).toHaveLength(0);
    expect(node.of('linkUp')).toHaveLength(0);
  });
});
