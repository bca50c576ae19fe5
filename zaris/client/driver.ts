/**
 * Runs a {@link ClientCore} in the real world: sockets, one timer, a turn's requests together. It decides nothing
 * about calls. A frame that is none closes its connection; what was on it becomes transport errors in the core.
 */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls';
import { unreachable } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { FrameReader } from '../../lib/frame.ts';
import type { ClientRequest } from '../model/client-wire.ts';
import { decodeAnswers, encodeRequests } from '../model/codec.ts';
import type { CallOperation, CallResult, ClientEffect, ClientEvent } from './contract.ts';
import type { ClientCore } from './core.ts';
import { IdTable } from './id-table.ts';
import { splitAddress } from './settings.ts';

/** TLS settings of a client: trust, identity, and the name to expect in the nodes' certificates (the host's when absent). */
export interface ClientTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

export interface DriverParts {
  readonly core: ClientCore;
  readonly clock: Clock;
  readonly tls: ClientTls | null;
  /** A node's own address → the one that this client can reach. */
  readonly translate: (nodeId: string, address: string) => string;
}

interface OpenSocket {
  readonly socket: Socket;
  outgoing: ClientRequest[];
}

export interface CallBounds {
  readonly timeoutMs?: number;
  readonly maxAttempts?: number;
}

/** Requests of one write at most: the node works on the first part of a large turn while the rest of it is still being made. */
const maxWriteRequests = 32;
/** Received at once at most, bytes; the buffer is each connection's own and used again for every read. */
const readBytes = 64 * 1024;

/** Certificate errors: who we or they are was refused, and another try changes nothing. */
const isRefusal = (code: string | undefined): boolean =>
  code !== undefined &&
  (/^(ERR_SSL_|ERR_TLS_CERT|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH)/.test(code) ||
    code === 'EPROTO');

/** Sockets and timer of one client. */
export class ClientDriver {
  private readonly parts: DriverParts;
  private readonly sockets = new Map<number, OpenSocket>();
  private readonly settlers = new IdTable<(result: CallResult) => void>();
  /** With something to write this turn. */
  private dirty: OpenSocket[] = [];
  private readonly readyWaiters: ((refusal: string | null) => void)[] = [];
  private isFlushPlanned = false;
  private timer: NodeJS.Timeout | null = null;
  private isClosed = false;
  /** Why the newest connection was lost; for the error of a client that never got one. */
  lastFailure: Error | null = null;

  constructor(parts: DriverParts) {
    this.parts = parts;
  }

  start(): void {
    this.feed({ kind: 'start' });
  }

  /** Calls back once: with null when a usable view is known, or with the reason why this client was refused. */
  whenReady(then: (refusal: string | null) => void): void {
    this.readyWaiters.push(then);
    this.tellWaiters();
  }

  private tellWaiters(): void {
    const { view, refusal } = this.parts.core;
    if (view === null && refusal === null) return;
    for (const then of this.readyWaiters.splice(0)) then(refusal);
  }

  /** Begins a call; returns its id for {@link cancel}. */
  call(operation: CallOperation, bounds: CallBounds, then: (result: CallResult) => void): number {
    const callId = this.settlers.add(then);
    const isPlain = bounds.timeoutMs === undefined && bounds.maxAttempts === undefined;
    this.feed(isPlain ? { kind: 'call', callId, operation } : { kind: 'call', callId, operation, ...bounds });
    return callId;
  }

  cancel(callId: number): void {
    this.feed({ kind: 'cancel', callId });
  }

  close(): void {
    if (this.isClosed) return;
    this.feed({ kind: 'close' });
    this.isClosed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    for (const { socket } of this.sockets.values()) socket.destroy();
    this.sockets.clear();
  }

  private feed(event: ClientEvent): void {
    for (const effect of this.parts.core.step(event, this.parts.clock.nowMs())) this.execute(effect);
    if (this.readyWaiters.length > 0) this.tellWaiters();
  }

  private execute(effect: ClientEffect): void {
    switch (effect.kind) {
      case 'send': {
        const open = this.sockets.get(effect.connection);
        if (open === undefined) return;
        if (open.outgoing.length === 0) this.dirty.push(open);
        open.outgoing.push(effect.request);
        if (open.outgoing.length >= maxWriteRequests) this.write(open);
        else this.planFlush();
        return;
      }
      case 'settle': {
        this.settlers.take(effect.callId)?.(effect.result);
        return;
      }
      case 'wake':
        return this.wake(effect.atMs);
      case 'connect':
        return this.dial(effect.connection, effect.nodeId, effect.address);
      case 'disconnect':
        this.sockets.get(effect.connection)?.socket.destroy();
        this.sockets.delete(effect.connection);
        return;
      case 'ready':
        return;
      default:
        unreachable(effect);
    }
  }

  private wake(atMs: number): void {
    if (this.isClosed) return;
    if (this.timer !== null) clearTimeout(this.timer);
    const delayMs = Math.max(0, Math.ceil(atMs - this.parts.clock.nowMs()));
    this.timer = setTimeout(() => this.feed({ kind: 'tick' }), Math.min(delayMs, 2 ** 31 - 1));
  }

  private dial(connection: number, nodeId: string | null, announced: string): void {
    let socket: Socket;
    try {
      const address = nodeId === null ? announced : this.parts.translate(nodeId, announced);
      const reader = new FrameReader();
      socket = this.open(address, (chunk) => this.receive(connection, reader, chunk));
    } catch (error) {
      setImmediate(() => this.report(connection, error as Error));
      return;
    }
    const open: OpenSocket = { socket, outgoing: [] };
    this.sockets.set(connection, open);
    socket.setNoDelay(true);
    socket.once(this.parts.tls === null ? 'connect' : 'secureConnect', () => {
      this.lastFailure = null;
      this.feed({ kind: 'connected', connection });
    });
    socket.on('error', (error) => this.lost(connection, error));
    socket.on('close', () => this.lost(connection, new Error('the node closed the connection')));
  }

  /** `onBytes` must be done with the bytes when it returns: the next read overwrites them. */
  private open(address: string, onBytes: (bytes: Uint8Array) => void): Socket {
    const { host, port } = splitAddress(address);
    const { tls } = this.parts;
    if (tls === null) {
      const buffer = new Uint8Array(readBytes);
      const callback = (count: number): boolean => {
        onBytes(buffer.subarray(0, count));
        return true;
      };
      return connectTcp({ host, port, onread: { buffer, callback } });
    }
    const options: TlsOptions = { host, port, rejectUnauthorized: true, minVersion: 'TLSv1.2' };
    if (tls.ca !== undefined) options.ca = tls.ca;
    if (tls.cert !== undefined) options.cert = tls.cert;
    if (tls.key !== undefined) options.key = tls.key;
    if (tls.servername !== undefined) options.servername = tls.servername;
    const socket = connectTls(options);
    socket.on('data', onBytes);
    return socket;
  }

  private receive(connection: number, reader: FrameReader, chunk: Uint8Array): void {
    if (!this.sockets.has(connection)) return;
    try {
      for (const payload of reader.push(chunk))
        this.feed({ kind: 'answers', connection, answers: decodeAnswers(payload) });
    } catch (error) {
      if (!(error instanceof Error) || (error.name !== 'CodecError' && error.name !== 'FrameError')) throw error;
      this.lost(connection, error);
    }
  }

  private lost(connection: number, error: Error): void {
    const open = this.sockets.get(connection);
    if (open === undefined) return;
    this.sockets.delete(connection);
    open.socket.destroy();
    this.report(connection, error);
  }

  private report(connection: number, error: Error): void {
    if (this.isClosed) return;
    this.lastFailure = error;
    const refused = isRefusal((error as NodeJS.ErrnoException).code);
    this.feed({ kind: 'disconnected', connection, reason: error.message, refused });
  }

  /** Whatever the callbacks of this turn ask for goes out together, save what fills a write before. */
  private planFlush(): void {
    if (this.isFlushPlanned) return;
    this.isFlushPlanned = true;
    setImmediate(() => this.flush());
  }

  private flush(): void {
    this.isFlushPlanned = false;
    const { dirty } = this;
    this.dirty = [];
    for (const open of dirty) this.write(open);
  }

  private write(open: OpenSocket): void {
    const { socket, outgoing } = open;
    if (outgoing.length === 0) return;
    open.outgoing = [];
    if (socket.destroyed) return;
    const frames = encodeRequests(outgoing);
    if (frames.length > 1) socket.cork();
    for (const frame of frames) socket.write(frame);
    if (frames.length > 1) socket.uncork();
  }
}
