/**
 * A bare echo of length-prefixed frames: what a node would cost if it did nothing but move frames. All frames of a turn go back in one
 * write, as a node's answers do.
 */
import { createServer } from 'node:net';
import { FrameReader } from '../../lib/frame.ts';
import { FrameBatch } from './frame-batch.ts';

const server = createServer((socket) => {
  const reader = new FrameReader();
  const batch = new FrameBatch();
  let isPlanned = false;
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    for (const payload of reader.push(chunk)) batch.add(payload);
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      const bytes = batch.take();
      if (!socket.destroyed && bytes !== null) socket.write(bytes);
    });
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1');
