/**
 * Length-prefixed frames: u32 big-endian payload length, then the payload.
 *
 * Owns the cutting of a byte stream into frames, whatever the chunking, within a bound, in time and memory linear in what was
 * really received. If it were wrong, a peer could make a node allocate without limit, or one torn frame would be read as another.
 */

/** Largest payload accepted by default, bytes. */
export const maxFrameBytes = 16 * 1024 * 1024;

const headerBytes = 4;
/** First allocation for a frame that came in pieces, bytes; it doubles as more arrives, so a claimed length alone costs nothing. */
const firstCapacityBytes = 4 * 1024;

/** The peer broke the framing rules; the connection cannot be resynchronised and must be closed. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** Prepends the length. Throws {@link FrameError} when the payload is over `limitBytes`. */
export function encodeFrame(payload: Uint8Array, limitBytes = maxFrameBytes): Uint8Array {
  if (payload.byteLength > limitBytes) {
    throw new FrameError(`frame of ${payload.byteLength} bytes is over the limit of ${limitBytes}`);
  }
  const frame = new Uint8Array(headerBytes + payload.byteLength);
  new DataView(frame.buffer).setUint32(0, payload.byteLength);
  frame.set(payload, headerBytes);
  return frame;
}

/** Cuts a stream into payloads. Feed every chunk in order; what comes back are views that stay valid. */
export class FrameReader {
  private readonly limitBytes: number;
  /** The unfinished frame, header included; only the first `heldBytes` of it count. */
  private held: Uint8Array = new Uint8Array(0);
  private heldBytes = 0;

  constructor(limitBytes = maxFrameBytes) {
    this.limitBytes = limitBytes;
  }

  /** Bytes of an unfinished frame held so far. */
  get pendingBytes(): number {
    return this.heldBytes;
  }

  /** Returns the payloads completed by `chunk`. Throws {@link FrameError} on an oversized length. */
  push(chunk: Uint8Array): Uint8Array[] {
    const payloads: Uint8Array[] = [];
    let offset = 0;
    if (this.heldBytes > 0) {
      offset = this.finishHeld(chunk, payloads);
      if (this.heldBytes > 0) return payloads;
    }
    while (chunk.byteLength - offset >= headerBytes) {
      const end = offset + headerBytes + this.payloadLength(chunk, offset);
      if (chunk.byteLength < end) break;
      payloads.push(chunk.subarray(offset + headerBytes, end));
      offset = end;
    }
    if (offset < chunk.byteLength) this.hold(chunk.subarray(offset));
    return payloads;
  }

  /** Moves bytes of `chunk` into the held frame until it is complete; returns how many it took. */
  private finishHeld(chunk: Uint8Array, payloads: Uint8Array[]): number {
    let taken = 0;
    if (this.heldBytes < headerBytes) {
      taken = Math.min(headerBytes - this.heldBytes, chunk.byteLength);
      this.hold(chunk.subarray(0, taken));
      if (this.heldBytes < headerBytes) return taken;
    }
    const frameBytes = headerBytes + this.payloadLength(this.held, 0);
    const more = Math.min(frameBytes - this.heldBytes, chunk.byteLength - taken);
    this.hold(chunk.subarray(taken, taken + more));
    taken += more;
    if (this.heldBytes === frameBytes) {
      payloads.push(this.held.subarray(headerBytes, frameBytes));
      this.held = new Uint8Array(0);
      this.heldBytes = 0;
    }
    return taken;
  }

  private hold(bytes: Uint8Array): void {
    const wanted = this.heldBytes + bytes.byteLength;
    if (wanted > this.held.byteLength) {
      const grown = new Uint8Array(Math.max(wanted, this.held.byteLength * 2, firstCapacityBytes));
      grown.set(this.held.subarray(0, this.heldBytes));
      this.held = grown;
    }
    this.held.set(bytes, this.heldBytes);
    this.heldBytes = wanted;
  }

  private payloadLength(data: Uint8Array, offset: number): number {
    const length =
      (((data[offset] as number) << 24) |
        ((data[offset + 1] as number) << 16) |
        ((data[offset + 2] as number) << 8) |
        (data[offset + 3] as number)) >>>
      0;
    if (length > this.limitBytes) {
      throw new FrameError(`frame of ${length} bytes is over the limit of ${this.limitBytes}`);
    }
    return length;
  }
}
