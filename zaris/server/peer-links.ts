/**
 * A node's links to its peers: one dialled per peer for sending, and those that peers dialled for receiving. A message is attributed
 * to the node that its connection's greeting named (and, where configured, proved by token and certificate).
 */
import type { Server, Socket } from 'node:net';
import { FrameReader } from '../../lib/frame.ts';
import type { Logger } from '../../lib/logger.ts';
import { decodePeerMessages } from '../model/codec-peer.ts';
import { type NodeId, nodeId } from '../model/ids.ts';
import type { PeerMessage } from '../model/peer-wire.ts';
import { createListener, isTokenRight, type TlsFiles } from './access.ts';
import { decodeLinkControl, encodeLinkControl, isLinkControl } from './link-control.ts';
import { linkPingMs, PeerLink } from './peer-link.ts';
import { splitHostPort } from './host-port.ts';

/** Connections of peers (and of strangers that have not greeted yet) at once. */
const maxInbound = 256;
/** A connection that does not greet within this time, or goes silent for it, is closed, ms. Dialling sides ping every second. */
const inboundSilenceMs = 10_000;
/** Time for last words to be read before the socket is destroyed, ms. */
const farewellMs = 1_000;

export interface PeerLinksParts {
  readonly nodeId: NodeId;
  readonly token: string | null;
  readonly tls: TlsFiles | null;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly onMessages: (from: NodeId, messages: readonly PeerMessage[]) => void;
  readonly onLinkUp: (peer: NodeId) => void;
  readonly onLinkDown: (peer: NodeId) => void;
}

/** All links of a node. */
export class PeerLinks {
  private readonly parts: PeerLinksParts;
  private readonly links = new Map<NodeId, PeerLink>();
  private readonly inbound = new Map<Socket, NodeId | null>();
  private readonly dirty = new Set<PeerLink>();
  private readonly ticker: NodeJS.Timeout;
  readonly server: Server;

  constructor(parts: PeerLinksParts) {
    this.parts = parts;
    this.server = createListener(parts.tls, true, (socket) => this.accept(socket));
    this.ticker = setInterval(() => {
      for (const link of this.links.values()) link.tick();
    }, linkPingMs);
  }

  /** Where a peer listens; replaces what was known. */
  setAddress(peer: NodeId, clusterAddress: string): void {
    if (peer === this.parts.nodeId) return;
    const address = splitHostPort(clusterAddress);
    if (address === null)
      return this.parts.logger.error({ peer, clusterAddress }, 'a peer announces an address that is none');
    const known = this.links.get(peer);
    if (known !== undefined) return known.moveTo(address);
    const { token, tls, logger, nowMs } = this.parts;
    const up = (): void => this.parts.onLinkUp(peer);
    const down = (): void => this.parts.onLinkDown(peer);
    this.links.set(
      peer,
      new PeerLink(address, { from: this.parts.nodeId, to: peer, token, tls, logger, nowMs, up, down }),
    );
  }

  /** Queues for {@link flush}; without an address it is lost, as the protocol allows. */
  send(peer: NodeId, message: PeerMessage): void {
    const link = this.links.get(peer);
    if (link === undefined) return;
    link.send(message);
    this.dirty.add(link);
  }

  flush(): void {
    for (const link of this.dirty) link.flush();
    this.dirty.clear();
  }

  get droppedBytes(): number {
    let bytes = 0;
    for (const link of this.links.values()) bytes += link.droppedBytes;
    return bytes;
  }

  private accept(socket: Socket): void {
    if (this.inbound.size >= maxInbound) return void socket.destroy();
    this.inbound.set(socket, null);
    const reader = new FrameReader();
    socket.setTimeout(inboundSilenceMs, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.inbound.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      if (!this.inbound.has(socket)) return;
      try {
        for (const payload of reader.push(chunk)) this.receive(socket, payload);
      } catch (error) {
        if (!(error instanceof Error) || (error.name !== 'CodecError' && error.name !== 'FrameError')) throw error;
        this.refuse(socket, error.message);
      }
    });
  }

  private receive(socket: Socket, payload: Uint8Array): void {
    const from = this.inbound.get(socket);
    if (from === undefined) return;
    if (isLinkControl(payload)) {
      const control = decodeLinkControl(payload);
      if (control.kind === 'hello') this.greet(socket, control);
      else if (control.kind === 'ping' && from !== null) socket.write(encodeLinkControl({ kind: 'pong' }));
    } else if (from === null) this.refuse(socket, 'a greeting comes first');
    else this.parts.onMessages(from, decodePeerMessages(payload));
  }

  private greet(
    socket: Socket,
    hello: { readonly from: string; readonly to: string; readonly token: string | null },
  ): void {
    const self = this.parts.nodeId;
    if (!isTokenRight(this.parts.token, hello.token ?? undefined)) return this.refuse(socket, 'wrong token');
    if (hello.to !== self) return this.refuse(socket, `this is ${self}, not ${hello.to}`);
    if (hello.from === self) return this.refuse(socket, `this is ${self} too`);
    const from = nodeId(hello.from);
    for (const [other, otherFrom] of this.inbound) if (otherFrom === from && other !== socket) other.destroy();
    this.inbound.set(socket, from);
    socket.write(encodeLinkControl({ kind: 'welcome' }));
  }

  private refuse(socket: Socket, reason: string): void {
    this.parts.logger.warn({ reason, remote: socket.remoteAddress ?? null }, 'a cluster connection was refused');
    this.inbound.delete(socket);
    socket.end(encodeLinkControl({ kind: 'refused', reason }));
    setTimeout(() => socket.destroy(), farewellMs).unref();
  }

  close(): void {
    clearInterval(this.ticker);
    for (const link of this.links.values()) link.close();
    for (const socket of this.inbound.keys()) socket.destroy();
    this.server.close();
  }
}
