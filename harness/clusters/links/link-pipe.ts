/**
 * One direction of one proxied connection: bytes, the end and the reset of a source, handed to a sink as the link's rules
 * allow, in order.
 *
 * What a rule means for a stream, since a proxy sees no packets: a cut holds everything back, also the end and the reset, and
 * lets it flow after the heal, as TCP's retransmissions would. Lost packets are bytes that come later, after one or more
 * retransmission times. Invariant: no byte is dropped, doubled or reordered while both sides live; at most `maxHeldBytes` are
 * held, then the source is not read any more. If a byte were lost, the store would be accused of it.
 */
import type { Readable, Writable } from 'node:stream';
import type { DirectedLink } from './link-table.ts';

/** Bytes held per direction of a connection before its source is no longer read: what a socket's buffer would hold. */
export const maxHeldBytes = 1024 * 1024;
/** Below this the source is read again. */
const resumeBytes = maxHeldBytes / 2;
/** What the kernel waits before it sends a lost packet again, doubled for every further loss of it. */
const retransmitMs = 200;
const maxRetransmissions = 6;
/** Payload of a packet; longer pieces are lost with a higher probability. */
const packetBytes = 1_448;
/** Throttled streams pass in pieces of this long. */
const throttleStepMs = 50;

/** Time and chance, as arguments. */
export interface PipeWorld {
  nowMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
}

type Item =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly dueMs: number }
  | { readonly kind: 'end' | 'reset'; readonly dueMs: number };

/** What it means to reset a sink; a socket sends RST. */
export type Reset = (stream: Writable) => void;

/** Runs from its construction until the source has ended and everything was delivered, or {@link close}. */
export class LinkPipe {
  private readonly source: Readable;
  private readonly link: DirectedLink;
  private readonly world: PipeWorld;
  private readonly reset: Reset;
  private readonly onReset: () => void;
  private sink: Writable | null = null;
  private queue: Item[] = [];
  private heldBytes = 0;
  private lastDueMs = 0;
  private timer: NodeJS.Timeout | null = null;
  private isBlocked = false;
  private isOver = false;
  private readonly unwatch: () => void;

  constructor(source: Readable, link: DirectedLink, world: PipeWorld, reset: Reset, onReset: () => void) {
    this.source = source;
    this.link = link;
    this.world = world;
    this.reset = reset;
    this.onReset = onReset;
    this.unwatch = link.watch(() => this.pump());
    source.on('data', (bytes: Uint8Array) => this.arrived(bytes));
    source.once('end', () => this.finish('end'));
    source.once('close', () => this.finish('reset'));
  }

  /** Where everything goes, from now on; until then it is held. */
  connect(sink: Writable): void {
    this.sink = sink;
    sink.on('drain', () => {
      this.isBlocked = false;
      this.pump();
    });
    this.pump();
  }

  /** Forgets what is held. */
  close(): void {
    this.unwatch();
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.queue = [];
    this.isOver = true;
  }

  private arrived(bytes: Uint8Array): void {
    if (this.isOver) return;
    if (this.link.settings.isReset) return this.onReset();
    if (this.link.isPlain && this.queue.length === 0 && this.sink !== null && !this.isBlocked) {
      this.write(bytes);
    } else {
      for (const piece of this.pieces(bytes)) {
        this.queue.push({ kind: 'bytes', bytes: piece, dueMs: this.due(piece.byteLength) });
      }
      this.heldBytes += bytes.byteLength;
      this.pump();
    }
    if (this.heldBytes > maxHeldBytes || this.isBlocked) this.source.pause();
  }

  private finish(kind: 'end' | 'reset'): void {
    if (this.isOver || this.queue.at(-1)?.kind === 'end' || this.queue.at(-1)?.kind === 'reset') return;
    this.queue.push({ kind, dueMs: this.due(0) });
    this.pump();
  }

  private pieces(bytes: Uint8Array): Uint8Array[] {
    const { bytesPerSecond } = this.link.settings;
    const size = Math.max(1, Math.floor((bytesPerSecond * throttleStepMs) / 1_000));
    if (bytes.byteLength <= size) return [bytes];
    const pieces: Uint8Array[] = [];
    for (let from = 0; from < bytes.byteLength; from += size) pieces.push(bytes.subarray(from, from + size));
    return pieces;
  }

  /** When these bytes may be delivered, by the rules that hold as they are sent. */
  private due(byteLength: number): number {
    const { lossPercent, delayMs, jitterMs } = this.link.settings;
    const { world } = this;
    let dueMs = world.nowMs();
    if (delayMs > 0 || jitterMs > 0) dueMs += Math.max(0, delayMs + (2 * world.random() - 1) * jitterMs);
    if (lossPercent > 0 && byteLength > 0) {
      const passes = (1 - lossPercent / 100) ** Math.ceil(byteLength / packetBytes);
      for (let count = 0; count < maxRetransmissions && world.random() >= passes; count++)
        dueMs += retransmitMs * 2 ** count;
    }
    this.lastDueMs = Math.max(this.lastDueMs, dueMs);
    return this.lastDueMs;
  }

  private pump(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    while (this.sink !== null && !this.isOver && !this.isBlocked && !this.link.settings.isHeld) {
      const [item] = this.queue;
      if (item === undefined) break;
      // After a heal nothing waits for a rule that is gone.
      const waitMs = this.link.isPlain ? 0 : Math.max(item.dueMs, this.throttledUntil(item)) - this.world.nowMs();
      if (waitMs > 0) {
        this.timer = setTimeout(() => this.pump(), Math.ceil(waitMs));
        break;
      }
      this.queue.shift();
      this.deliver(item);
    }
    if (this.queue.length === 0) this.lastDueMs = 0;
    if (!this.isOver && !this.isBlocked && this.heldBytes <= resumeBytes && this.source.isPaused())
      this.source.resume();
  }

  /** Connections that share a throttle take turns: who finds it free first goes first. */
  private throttledUntil(item: Item): number {
    return item.kind === 'bytes' && this.link.settings.bytesPerSecond < Infinity ? this.link.freeAtMs : 0;
  }

  private deliver(item: Item): void {
    if (item.kind === 'bytes') {
      const { link } = this;
      const { byteLength } = item.bytes;
      const { bytesPerSecond } = link.settings;
      if (bytesPerSecond < Infinity) {
        link.freeAtMs = Math.max(link.freeAtMs, this.world.nowMs()) + (byteLength / bytesPerSecond) * 1_000;
      }
      this.heldBytes -= byteLength;
      return this.write(item.bytes);
    }
    const { sink } = this;
    this.close();
    if (sink === null || sink.destroyed) return;
    if (item.kind === 'end') sink.end();
    else this.reset(sink);
  }

  private write(bytes: Uint8Array): void {
    const { sink } = this;
    // What is sent to a process that is gone vanishes; its reset comes back on the other direction.
    if (sink === null || sink.destroyed || sink.writableEnded) return;
    if (!sink.write(bytes)) this.isBlocked = true;
  }
}
