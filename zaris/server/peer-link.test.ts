import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { FrameReader } from '../../lib/frame.ts';
import { silentLogger } from '../../lib/logger.ts';
import { decodePeerMessages } from '../model/codec-peer.ts';
import type { PeerMessage } from '../model/peer-wire.ts';
import { encodeLinkControl, isLinkControl } from './link-control.ts';
import { maxHeldBytes, PeerLink } from './peer-link.ts';

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

/** A peer that welcomes whoever greets, and keeps what it hears. */
class FakePeer {
  readonly server: Server;
  readonly messages: PeerMessage[] = [];
  readonly sockets: Socket[] = [];
  doesRead = true;

  constructor() {
    this.server = createServer((socket) => {
      this.sockets.push(socket);
      const reader = new FrameReader();
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => {
        for (const payload of reader.push(chunk)) {
          if (isLinkControl(payload)) socket.write(encodeLinkControl({ kind: 'welcome' }));
          else this.messages.push(...decodePeerMessages(payload));
        }
        if (!this.doesRead) socket.pause();
      });
    });
    cleanUp.push(() => {
      for (const socket of this.sockets) socket.destroy();
      this.server.close();
    });
  }

  async link(): Promise<{ link: PeerLink; told: string[]; clock: { nowMs: number } }> {
    if (!this.server.listening) {
      this.server.listen(0, '127.0.0.1');
      await once(this.server, 'listening');
    }
    const { port } = this.server.address() as { port: number };
    const told: string[] = [];
    const clock = { nowMs: 0 };
    const link = new PeerLink(
      { host: '127.0.0.1', port },
      {
        from: 'n1',
        to: 'n2',
        token: null,
        tls: null,
        logger: silentLogger,
        nowMs: () => clock.nowMs,
        up: () => told.push('up'),
        down: () => told.push('down'),
      },
    );
    cleanUp.push(() => link.close());
    await until(() => told.includes('up'));
    return { link, told, clock };
  }
}

async function until(condition: () => boolean): Promise<void> {
  for (const endMs = performance.now() + 50_000; !condition();) {
    if (performance.now() > endMs) throw new Error('never');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

const register = (nonce: string): PeerMessage => ({
  kind: 'propose',
  from: 1 as never,
  commands: [nonce, 'x'.repeat(200_000)],
});

const numberOf = (message: PeerMessage | undefined): number =>
  message?.kind === 'propose' ? Number(message.commands[0]) : Number.NaN;

describe('PeerLink', () => {
  it('holds no more than its bound for a peer that stops reading, drops the oldest, and goes on in order', async () => {
    const peer = new FakePeer();
    peer.doesRead = false;
    const { link } = await peer.link();
    for (let index = 0; index < 200; index++) {
      link.send(register(String(index)));
      link.flush();
      if (index % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const inside = link as unknown as { heldBytes: number; socket: Socket };
    expect(inside.heldBytes).toBeLessThanOrEqual(maxHeldBytes);
    expect(inside.socket.writableLength).toBeLessThanOrEqual(2 * 1024 * 1024);
    expect(link.droppedBytes).toBeGreaterThan(10 * 1024 * 1024);
    peer.doesRead = true;
    for (const socket of peer.sockets) socket.resume();
    await until(() => inside.heldBytes === 0 && inside.socket.writableLength === 0 && peer.messages.length > 20);
    await until(() => numberOf(peer.messages.at(-1)) === 199);
    const numbers = peer.messages.map(numberOf);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('dials a peer that is down at once to look at it, and drops what else is for it', async () => {
    const peer = new FakePeer();
    const { link, told } = await peer.link();
    for (const socket of peer.sockets) socket.destroy();
    await until(() => told.includes('down'));
    link.send(register('0'));
    link.send({ kind: 'look', nonce: 7 });
    link.flush();
    await until(() => peer.messages.length > 0);
    expect(peer.messages).toEqual([{ kind: 'look', nonce: 7 }]);
    expect(told).toEqual(['up', 'down', 'up']);
  });

  it('leaves a silent peer and dials again, without calling it down', async () => {
    const peer = new FakePeer();
    const { link, told, clock } = await peer.link();
    peer.doesRead = false;
    for (const socket of peer.sockets) socket.pause();
    for (let second = 1; second <= 5; second++) {
      clock.nowMs = second * 1000;
      link.tick();
    }
    peer.doesRead = true;
    await until(() => peer.sockets.length === 2);
    expect(told).toEqual(['up']);
  });

  it('is not misled by a pause of its own process', async () => {
    const peer = new FakePeer();
    const { link, clock } = await peer.link();
    clock.nowMs = 60_000;
    link.tick();
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(peer.sockets).toHaveLength(1);
  });

  it('says down once when the peer closes, and up once when it is back', async () => {
    const peer = new FakePeer();
    const { told } = await peer.link();
    for (const socket of peer.sockets) socket.destroy();
    await until(() => told.length === 3);
    expect(told).toEqual(['up', 'down', 'up']);
  });
});
