/**
 * The listener for clients: frames in, requests to the node; answers out, one write per connection and turn. Strangers, oversized
 * or malformed frames, slow readers and long silences are dealt with here, each at the cost of that one connection.
 *
 * A connection that was silent for half the life of an exactly-once record is closed unread when data comes: a process that was
 * paused so long must not run what was parked in its sockets, since the record that would refuse it may be gone.
 */
import type { Server, Socket } from 'node:net';
import { FrameError, FrameReader } from '../../lib/frame.ts';
import type { Answer, ClientRequest } from '../model/client-wire.ts';
import { CodecError, decodeRequests, encodeAnswers } from '../model/codec.ts';
import { maxRequestFrameBytes } from '../model/limits.ts';
import type { Member } from '../model/ids.ts';
import { createListener, isTokenRight, type TlsFiles } from './access.ts';

export interface ClientServerParts {
  readonly token: string | null;
  readonly tls: TlsFiles | null;
  readonly maxConnections: number;
  /** Silence after which a connection is closed unread. */
  readonly silentMs: number;
  readonly nowMs: () => number;
  readonly member: () => Member | null;
  /** A reason to refuse writes now (memory), or null. */
  readonly refuseWrites: (nowMs: number) => string | null;
  readonly onRequest: (connection: number, request: ClientRequest) => void;
  readonly onClosed: (connection: number) => void;
}

interface Connection {
  readonly id: number;
  readonly socket: Socket;
  readonly reader: FrameReader;
  isGreeted: boolean;
  lastDataMs: number;
  /** Requests given to the node and not answered yet. */
  underWay: number;
  answers: Answer[];
  isBehind: boolean;
}

/** Answers that a client has not read yet before we stop reading from it, bytes. */
const maxUnreadBytes = 4 * 1024 * 1024;
/** Requests of one connection under way before we stop reading from it. */
const maxUnderWay = 2_048;
/** Time for last words to be read before the socket is destroyed, ms. */
const farewellMs = 1_000;
/** Time to greet, ms. */
const greetingMs = 10_000;

export class ClientServer {
  private readonly parts: ClientServerParts;
  private readonly connections = new Map<number, Connection>();
  /** With answers to write this turn. */
  private dirty: Connection[] = [];
  private lastId = 0;
  private isPaused = false;
  readonly server: Server;
  readonly counts = { accepted: 0, refusedConnections: 0, malformed: 0, closedUnread: 0, requests: 0, unauthorized: 0 };

  constructor(parts: ClientServerParts) {
    this.parts = parts;
    this.server = createListener(parts.tls, false, (socket) => this.accept(socket));
  }

  get connectionCount(): number {
    return this.connections.size;
  }

  /** Queues an answer for {@link flush}; an unknown connection is gone, and with it whoever asked. */
  reply(id: number, answer: Answer): void {
    const connection = this.connections.get(id);
    if (connection === undefined) return;
    connection.underWay--;
    this.answer(connection, answer);
  }

  private answer(connection: Connection, answer: Answer): void {
    if (connection.answers.length === 0) this.dirty.push(connection);
    connection.answers.push(answer);
  }

  flush(): void {
    const { dirty } = this;
    this.dirty = [];
    for (const connection of dirty) {
      const { socket, answers } = connection;
      connection.answers = [];
      if (socket.destroyed || answers.length === 0) continue;
      const frames = encodeAnswers(answers);
      if (frames.length > 1) socket.cork();
      for (const frame of frames) socket.write(frame);
      if (frames.length > 1) socket.uncork();
      this.regulate(connection);
    }
  }

  /** Stops (or goes on) reading from every client: the node's disk does not keep up. */
  setPaused(isPaused: boolean): void {
    if (this.isPaused === isPaused) return;
    this.isPaused = isPaused;
    for (const connection of this.connections.values()) this.regulate(connection);
  }

  private regulate(connection: Connection): void {
    const { socket } = connection;
    const isBehind = this.isPaused || socket.writableLength > maxUnreadBytes || connection.underWay > maxUnderWay;
    if (isBehind === connection.isBehind) return;
    connection.isBehind = isBehind;
    if (isBehind) socket.pause();
    else socket.resume();
  }

  private accept(socket: Socket): void {
    if (this.connections.size >= this.parts.maxConnections) {
      this.counts.refusedConnections++;
      const reason = `this node takes ${this.parts.maxConnections} connections`;
      return this.farewell(socket, { id: 0, status: 'Unavailable', outcome: 'NotExecuted', reason });
    }
    const id = ++this.lastId;
    this.counts.accepted++;
    const connection: Connection = {
      id,
      socket,
      reader: new FrameReader(maxRequestFrameBytes),
      isGreeted: false,
      lastDataMs: this.parts.nowMs(),
      underWay: 0,
      answers: [],
      isBehind: false,
    };
    this.connections.set(id, connection);
    const greeting = setTimeout(() => (connection.isGreeted ? undefined : socket.destroy()), greetingMs);
    socket.on('data', (chunk: Buffer) => this.receive(connection, chunk));
    socket.on('drain', () => this.regulate(connection));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      clearTimeout(greeting);
      this.forget(connection);
    });
    this.regulate(connection);
  }

  private receive(connection: Connection, chunk: Buffer): void {
    if (!this.connections.has(connection.id)) return;
    const nowMs = this.parts.nowMs();
    if (nowMs - connection.lastDataMs > this.parts.silentMs) {
      this.counts.closedUnread++;
      this.forget(connection);
      connection.socket.destroy();
      return;
    }
    connection.lastDataMs = nowMs;
    try {
      for (const payload of connection.reader.push(chunk)) {
        for (const request of decodeRequests(payload)) this.take(connection, request, nowMs);
      }
    } catch (error) {
      if (!(error instanceof CodecError) && !(error instanceof FrameError)) throw error;
      this.counts.malformed++;
      this.end(connection, { id: 0, status: 'InvalidInput', reason: error.message });
    }
    this.regulate(connection);
  }

  private take(connection: Connection, request: ClientRequest, nowMs: number): void {
    if (!this.connections.has(connection.id)) return;
    this.counts.requests++;
    const { id } = request;
    if (request.op === 'hello') return this.greet(connection, request);
    if (!connection.isGreeted) {
      this.counts.unauthorized++;
      return this.end(connection, { id, status: 'Unauthorized', reason: 'a greeting comes first' });
    }
    if (request.op === 'ping') return this.answer(connection, { id, status: 'Ok' });
    if (request.op === 'mutate' && request.mutation.kind !== 'delete') {
      const reason = this.parts.refuseWrites(nowMs);
      if (reason !== null) {
        const { partition } = request;
        return this.answer(connection, { id, status: 'Unavailable', outcome: 'NotExecuted', partition, reason });
      }
    }
    connection.underWay++;
    this.parts.onRequest(connection.id, request);
  }

  private greet(connection: Connection, hello: Extract<ClientRequest, { op: 'hello' }>): void {
    if (!isTokenRight(this.parts.token, hello.token)) {
      this.counts.unauthorized++;
      return this.end(connection, { id: hello.id, status: 'Unauthorized', reason: 'wrong token' });
    }
    connection.isGreeted = true;
    const member = this.parts.member();
    this.answer(connection, member === null ? { id: hello.id, status: 'Ok' } : { id: hello.id, status: 'Ok', member });
    this.flush();
  }

  /** Last words, then the connection is gone for the node. */
  private end(connection: Connection, answer: Answer): void {
    const { answers } = connection;
    connection.answers = [];
    this.forget(connection);
    for (const frame of encodeAnswers(answers)) connection.socket.write(frame);
    this.farewell(connection.socket, answer);
  }

  private farewell(socket: Socket, answer: Answer): void {
    socket.on('error', () => socket.destroy());
    socket.resume();
    for (const frame of encodeAnswers([answer])) socket.write(frame);
    socket.end();
    setTimeout(() => socket.destroy(), farewellMs).unref();
  }

  private forget(connection: Connection): void {
    if (this.connections.delete(connection.id)) this.parts.onClosed(connection.id);
  }

  close(): void {
    for (const { socket } of this.connections.values()) socket.destroy();
    this.server.close();
  }
}
