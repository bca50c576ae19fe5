/**
 * A node program that is no store: it listens like one, and does with its connections what a test asks over HTTP. With it a
 * test sees a link from inside the node's own process.
 */
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';

const host = '127.0.0.1';
const portOf = (name: string): number => Number(process.env[`ZARIS_${name}_PORT`]);
const lookEveryMs = 2;
/** Looks for an answer before it counts as none: a second and a half, and longer where this process is held up. */
const answerLooks = 750;

let received = '';

const echo = (): ReturnType<typeof createServer> =>
  createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes: Buffer) => {
      received = `${received}${bytes.toString()}`.slice(-1_000);
      socket.write(bytes);
    });
  });

/** Connections that a test named, kept from question to question. */
const standing = new Map<string, { socket: Socket; heard: string; end: string }>();

function open(name: string, port: number): { socket: Socket; heard: string; end: string } {
  const socket = connect({ host, port });
  const line = { socket, heard: '', end: '' };
  socket.on('data', (bytes: Buffer) => (line.heard += bytes.toString()));
  socket.on('error', (error: NodeJS.ErrnoException) => (line.end = error.code ?? error.message));
  socket.on('close', () => (line.end ||= 'closed'));
  standing.set(name, line);
  return line;
}

/** Sends `text` on the named connection; what came back, and how long that took. */
async function send(name: string, port: number, text: string): Promise<object> {
  const line = standing.get(name) ?? open(name, port);
  line.heard = '';
  const startMs = performance.now();
  line.socket.write(text);
  for (let looks = 0; looks < answerLooks && line.heard.length < text.length && line.end === ''; looks++) {
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
  return { heard: line.heard, end: line.end, tookMs: performance.now() - startMs };
}

createHttpServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://node');
  const answer = (body: object): void => void response.end(JSON.stringify(body));
  const text = (name: string): string => url.searchParams.get(name) ?? '';
  switch (url.pathname) {
    case '/send':
      return void send(text('name'), Number(text('port')), text('text').repeat(Number(text('times') || '1'))).then(
        answer,
      );
    case '/heard':
      return answer({ heard: standing.get(text('name'))?.heard ?? '', received });
    default:
      return answer({ pid: process.pid });
  }
}).listen(portOf('HTTP'), host);
echo().listen(portOf('CLUSTER'), host);
echo().listen(portOf('CLIENT'), host);
