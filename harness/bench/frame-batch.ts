/** Frames gathered into one buffer, for one write. */

const headerBytes = 4;
const firstBytes = 64 * 1024;

export class FrameBatch {
  private buffer = Buffer.allocUnsafe(firstBytes);
  private length = 0;

  add(payload: Uint8Array): void {
    const end = this.length + headerBytes + payload.byteLength;
    if (end > this.buffer.byteLength) {
      const grown = Buffer.allocUnsafe(Math.max(end, 2 * this.buffer.byteLength));
      this.buffer.copy(grown, 0, 0, this.length);
      this.buffer = grown;
    }
    this.buffer.writeUInt32BE(payload.byteLength, this.length);
    this.buffer.set(payload, this.length + headerBytes);
    this.length = end;
  }

  /** Everything gathered, in a buffer that will not be written to again; null when there is nothing. */
  take(): Buffer | null {
    if (this.length === 0) return null;
    const bytes = Buffer.from(this.buffer.subarray(0, this.length));
    this.length = 0;
    return bytes;
  }
}
