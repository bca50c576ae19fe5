/**
 * Loaded into every local node before its own program (`--import`): ends the node when the harness is gone, however it went.
 *
 * The harness holds the other end of the channel on descriptor 3. Its end of file without a word before it means that the
 * harness is dead, and a node without its harness must not stay behind. One byte says that the node is to be kept. Plain
 * JavaScript: it must load under whatever program a node runs.
 */
import { Socket } from 'node:net';

const channel = new Socket({ fd: 3, readable: true, writable: false });
let kept = false;
channel.on('data', () => {
  kept = true;
});
channel.on('error', () => undefined);
channel.on('close', () => {
  if (!kept) process.kill(process.pid, 'SIGKILL');
});
// The watch never keeps a node alive that wants to end.
channel.unref();
