/**
 * Length-prefixed frames: u32 big-endian payload length, then the payload.
 *
 * Owns the cutting of a byte stream into frames, whatever the chunking, within a bound. If it were wrong, a peer could
 * make a node allocate without limit, or one torn frame would be read as another.
 */

/** Largest payload accepted by default, bytes. */
export const maxFrameBytes = 16 * 1024 * 1024;

/** The peer broke the framing rules; the connection cannot be resynchronised and must be closed. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** Prepends the length. Throws {@link FrameError} when the payload is over `limitBytes`. */
export function encodeFrame(payload: Uint8Array, limitBytes = maxFrameBytes): Uint8Array {
  if (payload.byteLength > limitBytes) {
    throw new FrameError(`frame of ${payload.byteLength} bytes is over the limit of ${limitBytes}`);
  }
  const frame = new Uint8Array(4 + payload.byteLength);
  new DataView(frame.buffer).setUint32(0, payload.byteLength);
  frame.set(payload, 4);
  return frame;
}

/** Cuts a stream into payloads. Feed every chunk in order; what comes back are views that stay valid. */
export class FrameReader {
  private readonly limitBytes: number;
  private pending: Uint8Array = new Uint8Array(0);

  constructor(limitBytes = maxFrameBytes) {
    this.limitBytes = limitBytes;
  }

  /** Bytes of an unfinished frame held so far. */
  get pendingBytes(): number {
    return this.pending.byteLength;
  }

  /** Returns the payloads completed by `chunk`. Throws {@link FrameError} on an oversized length. */
  push(chunk: Uint8Array): Uint8Array[] {
    let data = chunk;
    if (this.pending.byteLength > 0) {
      data = new Uint8Array(this.pending.byteLength + chunk.byteLength);
      data.set(this.pending, 0);
      data.set(chunk, this.pending.byteLength);
    }
    const payloads: Uint8Array[] = [];
    let offset = 0;
    while (data.byteLength - offset >= 4) {
      const length = new DataView(data.buffer, data.byteOffset + offset).getUint32(0);
      if (length > this.limitBytes) {
        throw new FrameError(`frame of ${length} bytes is over the limit of ${this.limitBytes}`);
      }
      if (data.byteLength - offset - 4 < length) break;
      payloads.push(data.subarray(offset + 4, offset + 4 + length));
      offset += 4 + length;
    }
    this.pending = offset === 0 ? data : data.slice(offset);
    return payloads;
  }
}
