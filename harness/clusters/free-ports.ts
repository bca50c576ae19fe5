/** Ports for processes that must find theirs free again after a restart. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const host = '127.0.0.1';
/** Below the range from which systems draw the ports of outgoing connections. */
const lowestPort = 20_000;
const highestPort = 31_999;
const portTries = 200;

/** Ports that were free a moment ago, and that no outgoing connection will take; none of `taken`. */
export async function freePorts(count: number, taken: ReadonlySet<number> = new Set()): Promise<number[]> {
  const found: number[] = [];
  for (let tries = 0; found.length < count && tries < portTries; tries++) {
    const port = randomInt(lowestPort, highestPort + 1);
    if (!found.includes(port) && !taken.has(port) && (await isFree(port, host))) found.push(port);
  }
  if (found.length < count) throw new Error(`No free ports were found between ${lowestPort} and ${highestPort}.`);
  return found;
}

/** Can somebody listen there? Port 0: is the address one of this host's? */
export function isFree(port: number, address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, address, () => server.close(() => resolve(true)));
  });
}
