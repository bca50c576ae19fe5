/**
 * `/health`, `/cluster`, `/partitions`, `/metrics`, `/events`: read only, for people, probes and chaos triggers. Nothing asked here
 * changes anything; a slow or hostile reader costs one socket.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { EventRing } from './event-ring.ts';
import type { Metrics } from './metrics.ts';

export interface HttpParts {
  readonly health: () => object;
  readonly cluster: () => object;
  readonly partitions: () => object;
  readonly events: EventRing;
  readonly metrics: Metrics;
}

/** Notices in one answer. */
const maxEvents = 1_000;

/** A server to be told where to listen. */
export function createHttpServer(parts: HttpParts): Server {
  const server = createServer(
    { requestTimeout: 5_000, headersTimeout: 5_000, keepAliveTimeout: 5_000 },
    (request, response) => {
      answer(parts, request, response).catch((error: Error) => {
        response.destroy(error);
      });
    },
  );
  server.maxConnections = 256;
  server.on('clientError', (_error, socket) => socket.destroy());
  return server;
}

async function answer(parts: HttpParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume();
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return json(response, 405, { error: 'read only: use GET' });
  const url = new URL(request.url ?? '/', 'http://node');
  switch (url.pathname) {
    case '/health':
      return json(response, 200, parts.health());
    case '/cluster':
      return json(response, 200, parts.cluster());
    case '/partitions':
      return json(response, 200, parts.partitions());
    case '/events': {
      const after = Number(url.searchParams.get('after') ?? 0);
      if (!Number.isSafeInteger(after) || after < 0) return json(response, 400, { error: 'after is a whole number' });
      return json(response, 200, parts.events.after(after, maxEvents));
    }
    case '/metrics':
      response.writeHead(200, { 'content-type': parts.metrics.contentType }).end(await parts.metrics.text());
      return;
    default:
      return json(response, 404, { error: 'try /health, /cluster, /partitions, /metrics or /events' });
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  response
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    .end(`${JSON.stringify(body)}\n`);
}
