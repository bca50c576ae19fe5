/**
 * Loaded into every node process before its program: gives its connections the source address by which the proxy knows it,
 * and ends it when the harness is gone. It changes nothing else, and no node program knows of it.
 */
import { type NetConnectOpts, type Socket, Socket as SocketClass } from 'node:net';
import { keepWord, sourceVariable } from './node-words.ts';

const source = process.env[sourceVariable];

if (source !== undefined && source !== '') {
  const prototype = SocketClass.prototype as unknown as { connect: (this: Socket, ...args: unknown[]) => Socket };
  const original = prototype.connect;
  prototype.connect = function connect(this: Socket, ...args: unknown[]): Socket {
    // net.connect hands over [options, callback] as one argument, tls.connect the options.
    const [first] = args;
    const options: unknown = Array.isArray(first) ? first[0] : first;
    if (isOverTcp(options) && options.localAddress === undefined) options.localAddress = source;
    return original.apply(this, args);
  };
}

function isOverTcp(options: unknown): options is { localAddress?: string } & NetConnectOpts {
  return typeof options === 'object' && options !== null && 'port' in options && !('path' in options && options.path);
}

let isKept = false;
process.stdin.on('data', (bytes: Buffer) => {
  if (bytes.toString().includes(keepWord)) isKept = true;
});
const orphaned = (): void => {
  if (!isKept) process.kill(process.pid, 'SIGKILL');
};
process.stdin.once('end', orphaned);
process.stdin.once('error', orphaned);
// The watch alone keeps no node alive.
(process.stdin as { unref?: () => void }).unref?.();
