/** A store as small as one can be: a map in memory behind HTTP, one node, no replication. It exists to be certified by the adapter beside it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

interface Entry {
  readonly value: string;
  readonly version: number;
}

const entries = new Map<string, Entry>();
const startedAt = String(Date.now());
let version = 0;

/** Conditions stand in headers: `if-none-match: *` creates, `if-match: 7` compares and sets. */
function change(
  method: string,
  key: string,
  body: string,
  ifMatch: string | undefined,
  ifNone: string | undefined,
): [number, Entry | null] {
  const before = entries.get(key) ?? null;
  if (ifNone === '*' && before !== null) return [412, before];
  if (ifMatch !== undefined && String(before?.version ?? '') !== ifMatch) return [412, before];
  if (method === 'DELETE' && before === null) return [404, null];
  const entry = { value: body, version: ++version };
  if (method === 'DELETE') entries.delete(key);
  else entries.set(key, entry);
  return [200, entry];
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = (status: number, body: unknown): void => void response.writeHead(status).end(JSON.stringify(body));
  const url = new URL(request.url ?? '/', 'http://store');
  if (url.pathname === '/status') return answer(200, { startedAt, keyCount: entries.size, version });
  const key = decodeURIComponent(url.pathname.slice('/keys/'.length));
  if (request.method === 'GET') return answer(entries.has(key) ? 200 : 404, entries.get(key) ?? null);
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += String(chunk);
  const { 'if-match': ifMatch, 'if-none-match': ifNone } = request.headers;
  answer(...change(request.method ?? '', key, body, ifMatch, ifNone));
}

const [, , host, port] = process.argv;
createServer((request, response) => void serve(request, response)).listen(Number(port), host);
