/** Who may talk to a node: the shared token, and TLS. Off unless configured; a stranger gets nothing, not even the map. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer as createTcpServer, connect as connectTcp, type Server, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer, type ConnectionOptions } from 'node:tls';

/** PEM texts. `ca` verifies the other side of cluster links, which must then show a certificate too. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string | null;
  /** Name expected in peers' certificates; null: the host that was dialled. */
  readonly servername: string | null;
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Whether `given` is the configured token; always true where none is. Takes the same time for every wrong one. */
export function isTokenRight(configured: string | null, given: string | undefined): boolean {
  return configured === null || timingSafeEqual(digest(configured), digest(given ?? ''));
}

/** A listener for clients (`requireCertificate` false) or peers. The callback gets sockets that are ready to be read. */
export function createListener(
  tls: TlsFiles | null,
  requireCertificate: boolean,
  onSocket: (socket: Socket) => void,
): Server {
  if (tls === null) return createTcpServer({ noDelay: true }, onSocket);
  const verify = requireCertificate && tls.ca !== null;
  const ca = tls.ca === null ? {} : { ca: tls.ca };
  const server = createTlsServer(
    { cert: tls.cert, key: tls.key, ...ca, requestCert: verify, rejectUnauthorized: verify },
    (socket) => {
      socket.setNoDelay(true);
      onSocket(socket);
    },
  );
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

/** Dials a peer; the socket emits `connect` or `secureConnect` (see {@link openEvent}). */
export function dialPeer(tls: TlsFiles | null, host: string, port: number): Socket {
  if (tls === null) return connectTcp({ host, port, noDelay: true });
  const options: ConnectionOptions = { host, port, cert: tls.cert, key: tls.key, rejectUnauthorized: true };
  if (tls.ca !== null) options.ca = tls.ca;
  if (tls.servername !== null) options.servername = tls.servername;
  const socket = connectTls(options);
  socket.setNoDelay(true);
  return socket;
}

export const openEvent = (tls: TlsFiles | null): 'connect' | 'secureConnect' =>
  tls === null ? 'connect' : 'secureConnect';
