/**
 * The smallest thing that can stand for a node in tests of the cluster: listens where a node does, answers /health, and
 * counts its starts on its disk. It stores nothing and certifies nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';

const startsFile = '/data/starts';

function countStart(): number {
  let starts = 0;
  try {
    starts = Number(readFileSync(startsFile, 'utf8'));
  } catch {
    // The disk is empty.
  }
  writeFileSync(startsFile, String(starts + 1));
  return starts + 1;
}

const nodeId = process.env['ZARIS_NODE_ID'] ?? '';
const starts = countStart();
console.log(`tiny ${nodeId} start ${starts}`);

const http = createHttpServer((_request, response) => response.end(JSON.stringify({ nodeId, starts })));
http.listen(7802, '0.0.0.0');
for (const port of [7861, 7811])
  createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(port, '0.0.0.0');

// The first process of a container ignores every signal that it has no handler for.
process.on('SIGTERM', () => {
  console.log(`tiny ${nodeId} stops`);
  process.exit(0);
});
