/**
 * One outgoing connection to a peer: dialled and dialled again, greeted, watched, bounded. Messages leave on it only; what the peer
 * sends us comes on the connection that it dialled. Loss is allowed by the protocol, unbounded memory is not: beyond its bound the
 * oldest frames go. `down` is told only when the other side closed or refused, never because it was silent: a paused process is not a
 * dead one, and taking it for one would fail over too early.
 */
import type { Socket } from 'node:net';
import { FrameReader } from '../../lib/frame.ts';
import type { Logger } from '../../lib/logger.ts';
import { encodePeerMessages } from '../model/codec-peer.ts';
import type { PeerMessage } from '../model/peer-wire.ts';
import { dialPeer, openEvent, type TlsFiles } from './access.ts';
import { decodeLinkControl, encodeLinkControl, isLinkControl } from './link-control.ts';

/** Frames held for a peer whose socket takes no more, bytes. */
export const maxHeldBytes = 8 * 1024 * 1024;
/** Bytes handed to the socket before frames are held here, where the oldest can still be dropped. */
const maxSocketBytes = 1024 * 1024;
const minBackoffMs = 50;
const maxBackoffMs = 1_000;
export const linkPingMs = 1_000;
const maxSilenceMs = 3_000;
const closedByPeer = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE']);

export interface PeerLinkParts {
  readonly from: string;
  readonly to: string;
  readonly token: string | null;
  readonly tls: TlsFiles | null;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly up: () => void;
  readonly down: () => void;
}

type LinkState = 'waiting' | 'dialling' | 'ready' | 'closed';

/** The way to one peer. */
export class PeerLink {
  private readonly parts: PeerLinkParts;
  private address: { readonly host: string; readonly port: number };
  private socket: Socket | null = null;
  private state: LinkState = 'waiting';
  private backoffMs = minBackoffMs;
  private redial: NodeJS.Timeout | null = null;
  private outgoing: PeerMessage[] = [];
  private held: Uint8Array[] = [];
  private heldBytes = 0;
  private dialledAtMs = 0;
  private lastHeardMs = 0;
  private pingsUnanswered = 0;
  /** What was last told: null before the first word. */
  private told: 'up' | 'down' | null = null;
  droppedBytes = 0;

  constructor(address: { readonly host: string; readonly port: number }, parts: PeerLinkParts) {
    this.address = address;
    this.parts = parts;
    this.dial();
  }

  /** Where the peer listens from now on; a change dials anew. */
  moveTo(address: { readonly host: string; readonly port: number }): void {
    if (address.host === this.address.host && address.port === this.address.port) return;
    this.address = address;
    this.backoffMs = minBackoffMs;
    this.drop('the peer moved');
  }

  /** Queues a message for {@link flush}. */
  send(message: PeerMessage): void {
    if (this.state !== 'closed') this.outgoing.push(message);
  }

  /** Hands this turn's messages to the socket in one write. */
  flush(): void {
    if (this.outgoing.length === 0) return;
    let messages = this.outgoing;
    this.outgoing = [];
    if (this.state !== 'ready' && this.told === 'down') {
      // For a peer that is down only the question whether it is: it is dialled for that at once, or a living one could not answer in time.
      messages = messages.filter(({ kind }) => kind === 'look');
      if (messages.length === 0) return;
      this.dialNow();
    }
    for (const frame of encodePeerMessages(messages)) {
      this.held.push(frame);
      this.heldBytes += frame.byteLength;
    }
    this.write();
    while (this.heldBytes > maxHeldBytes) {
      const dropped = (this.held.shift() as Uint8Array).byteLength;
      this.heldBytes -= dropped;
      this.droppedBytes += dropped;
    }
  }

  private write(): void {
    const { socket, held } = this;
    if (this.state !== 'ready' || socket === null || held.length === 0) return;
    let written = 0;
    const isBatch = held.length > 1;
    if (isBatch) socket.cork();
    while (written < held.length && socket.writableLength < maxSocketBytes) socket.write(held[written++] as Uint8Array);
    if (isBatch) socket.uncork();
    for (let index = 0; index < written; index++) this.heldBytes -= (held[index] as Uint8Array).byteLength;
    this.held = written === held.length ? [] : held.slice(written);
  }

  private dialNow(): void {
    if (this.redial === null) return;
    clearTimeout(this.redial);
    this.dial();
  }

  private dial(): void {
    const { host, port } = this.address;
    const { tls, from, to, token, nowMs } = this.parts;
    this.redial = null;
    this.state = 'dialling';
    this.dialledAtMs = nowMs();
    this.pingsUnanswered = 0;
    const socket = dialPeer(tls, host, port);
    this.socket = socket;
    const reader = new FrameReader();
    let code: string | undefined;
    socket.once(openEvent(tls), () => socket.write(encodeLinkControl({ kind: 'hello', from, to, token })));
    socket.on('data', (chunk: Buffer) => this.receive(socket, reader, chunk));
    socket.on('drain', () => this.write());
    socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code));
    socket.on('close', () => {
      if (this.socket !== socket) return;
      this.lost(code === undefined || closedByPeer.has(code), code ?? 'closed');
    });
  }

  private receive(socket: Socket, reader: FrameReader, chunk: Buffer): void {
    if (this.socket !== socket) return;
    this.lastHeardMs = this.parts.nowMs();
    this.pingsUnanswered = 0;
    try {
      for (const payload of reader.push(chunk)) {
        if (!isLinkControl(payload)) continue;
        const control = decodeLinkControl(payload);
        if (control.kind === 'welcome') this.welcomed();
        else if (control.kind === 'refused') return this.refused(control.reason);
      }
    } catch (error) {
      this.drop((error as Error).message);
    }
  }

  private welcomed(): void {
    this.state = 'ready';
    this.backoffMs = minBackoffMs;
    if (this.told !== 'up') this.parts.up();
    this.told = 'up';
    this.write();
  }

  private refused(reason: string): void {
    this.parts.logger.error(
      { peer: this.parts.to, reason },
      'a peer refused this node; check the token, the certificates and the addresses',
    );
    this.backoffMs = maxBackoffMs;
    this.drop(reason);
  }

  /** Ends the connection from our side; says nothing about the peer. */
  private drop(reason: string): void {
    const { socket } = this;
    this.socket = null;
    socket?.destroy();
    if (this.state !== 'waiting' && this.state !== 'closed') this.lost(false, reason);
  }

  private lost(isByPeer: boolean, reason: string): void {
    this.socket = null;
    this.state = 'waiting';
    this.held = [];
    this.heldBytes = 0;
    if (isByPeer && this.told !== 'down') {
      this.told = 'down';
      this.parts.logger.info({ peer: this.parts.to, reason }, 'the link to a peer went down');
      this.parts.down();
    }
    this.redial = setTimeout(() => this.dial(), this.backoffMs);
    this.backoffMs = Math.min(this.backoffMs * 2, maxBackoffMs);
  }

  /** Called every {@link linkPingMs}: pings, and gives up a connection that is silent. Counts pings, so that our own pause kills nothing. */
  tick(): void {
    const nowMs = this.parts.nowMs();
    if (this.state === 'dialling' && nowMs - this.dialledAtMs > maxSilenceMs) return this.drop('no welcome');
    if (this.state !== 'ready' || this.socket === null) return;
    if (this.pingsUnanswered >= 2 && nowMs - this.lastHeardMs > maxSilenceMs) return this.drop('silent');
    this.pingsUnanswered++;
    this.socket.write(encodeLinkControl({ kind: 'ping' }));
  }

  close(): void {
    this.state = 'closed';
    if (this.redial !== null) clearTimeout(this.redial);
    this.socket?.destroy();
    this.socket = null;
  }
}
