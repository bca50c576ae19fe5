/**
 * Finds free ports of 127.0.0.1 to publish. They are only free at the moment of asking: who binds them must try again
 * with others when somebody was faster.
 */
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';

/** `count` different free ports. */
export async function freeHostPorts(count: number): Promise<number[]> {
  const servers: Server[] = [];
  try {
    for (let index = 0; index < count; index++) {
      const server = createServer();
      servers.push(server);
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(0, '127.0.0.1', resolve);
      });
    }
    return servers.map((server) => (server.address() as AddressInfo).port);
  } finally {
    await Promise.all(servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  }
}

/** Did the engine refuse because a host port was taken? */
export const isPortTaken = (message: string): boolean =>
  /port is already allocated|address already in use/i.test(message);
