/**
 * The harness as an end of links: something on this host that a node can try to connect to, over the same way that its
 * answers to clients take. Without it a refusal by a rule could not be told from a port where nobody listens.
 */
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';

/** Listens on the gateway's address while open. */
export class ClientEnd {
  private readonly server: Server;
  readonly port: number;

  private constructor(server: Server) {
    this.server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  /** Null where this host does not own the gateway's address (an engine on another machine). */
  static async open(gateway: string): Promise<ClientEnd | null> {
    const server = createServer((socket) => socket.on('error', () => {}).destroy());
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(0, gateway, resolve);
      });
    } catch {
      return null;
    }
    server.on('error', () => {});
    server.unref();
    return new ClientEnd(server);
  }

  close(): void {
    this.server.close();
  }
}
