/**
 * The other end of the bare echo: so many frames under way on one connection, the next ones of a turn together, in writes of the size that the
 * Zaris client makes them.
 */
import { connect } from 'node:net';
import { FrameReader } from '../../lib/frame.ts';
import { FrameBatch } from './frame-batch.ts';

/** Frames of one write at most; the same as in `zaris/client/driver.ts`, so that both ends work at the same time in both or in neither. */
const maxWriteFrames = 32;

/** Echoes within about `measureMs`, after `warmUpMs`; `onBegin` is called between the two. Rejects when the connection breaks. */
export function measureEcho(
  port: number,
  options: {
    readonly inFlight: number;
    readonly payloadBytes: number;
    readonly warmUpMs: number;
    readonly measureMs: number;
    readonly onBegin?: () => void;
  },
): Promise<{ readonly count: number; readonly elapsedMs: number }> {
  const payload = new Uint8Array(options.payloadBytes).fill(0x76);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    const reader = new FrameReader();
    const batch = new FrameBatch();
    let owed = options.inFlight;
    let echoes = 0;
    let isPlanned = false;
    const write = (): void => {
      for (let count = 0; owed > 0 && count < maxWriteFrames; count++, owed--) batch.add(payload);
      const bytes = batch.take();
      if (!socket.destroyed && bytes !== null) socket.write(bytes);
    };
    const flush = (): void => {
      isPlanned = false;
      while (owed > 0) write();
    };
    socket.setNoDelay(true);
    socket.on('error', reject);
    socket.on('data', (chunk: Buffer) => {
      const count = reader.push(chunk).length;
      echoes += count;
      owed += count;
      while (owed >= maxWriteFrames) write();
      if (isPlanned || owed === 0) return;
      isPlanned = true;
      setImmediate(flush);
    });
    socket.once('connect', () => {
      flush();
      setTimeout(() => {
        options.onBegin?.();
        const before = echoes;
        const sinceMs = performance.now();
        setTimeout(() => {
          const result = { count: echoes - before, elapsedMs: performance.now() - sinceMs };
          socket.destroy();
          resolve(result);
        }, options.measureMs);
      }, options.warmUpMs);
    });
  });
}
