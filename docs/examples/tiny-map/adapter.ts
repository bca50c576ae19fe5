/** The tiny map as a system to certify: everything that an adapter must say, and nothing more. See docs/certify-your-store.md. */
import { IncarnationCounter, ObservedRuntime, within } from '../../../harness/systems/observed-runtime.ts';
import type { NodeAddress, RunningSystem, System } from '../../../harness/systems/system.ts';
import type { Completion, Operation } from '../../../workloads/port.ts';

async function ask(base: string, operation: Operation): Promise<Completion> {
  if (operation.f === 'add') return { kind: 'fail', why: 'invalid', error: 'not offered: counters' };
  const headers = new Headers();
  if (operation.f === 'create') headers.set('if-none-match', '*');
  if ('expected' in operation && operation.expected !== undefined)
    headers.set('if-match', String(operation.expected[1]));
  const response = await fetch(`${base}/keys/${encodeURIComponent(operation.key)}`, {
    method: operation.f === 'read' ? 'GET' : operation.f === 'delete' ? 'DELETE' : 'PUT',
    headers,
    body: 'value' in operation ? operation.value : null,
    signal: AbortSignal.timeout(5_000),
  });
  const entry = (await response.json()) as { value: string; version: number } | null;
  const version = entry === null ? null : ([0, entry.version] as const);
  if (operation.f === 'read') return { kind: 'ok', value: entry?.value ?? null, version };
  if (response.status === 200) return { kind: 'ok', version };
  return { kind: 'fail', why: 'condition', error: `HTTP ${response.status}`, version };
}

/** Never rejects: what is not known is `info`, and only a connection that was refused proves that nothing ran. */
async function execute(base: string, operation: Operation): Promise<Completion> {
  try {
    return { ...(await ask(base, operation)), partition: 0 };
  } catch (error) {
    const isRefused = (error as { cause?: { code?: string } }).cause?.code === 'ECONNREFUSED';
    return isRefused
      ? { kind: 'fail', why: 'refused', error: 'not sent: refused' }
      : { kind: 'info', error: String(error) };
  }
}

function connect({ nodeId, host, clientPort }: NodeAddress, nowMs: () => number): RunningSystem {
  const base = `http://${host}:${clientPort}`;
  const runtime = new ObservedRuntime();
  const starts = new IncarnationCounter();
  const look = (): Promise<unknown> =>
    within(
      1_000,
      fetch(`${base}/status`).then((answer) => answer.json()),
    );
  const status = async () => {
    const atMs = nowMs();
    const seen = (await look()) as { startedAt: string } | null;
    const alive = seen !== null;
    const incarnation = alive ? starts.of(nodeId, seen.startedAt) : starts.last(nodeId);
    const copies = { replicas: [nodeId], inSync: [nodeId], joining: [] };
    const health = alive ? 'Healthy' : 'Unavailable';
    const primary = { primary: alive ? nodeId : null, reign: String(incarnation), health, serving: alive } as const;
    const partitions = [runtime.see({ partition: 0, ...copies, ...primary })];
    return { atMs, leader: nodeId, voters: [], nodes: [{ nodeId, incarnation, alive }], minInSync: 1, partitions };
  };
  return {
    client: () => ({ execute: (operation) => execute(base, operation), close: async () => undefined }),
    status: { status },
    partitionOf: () => 0,
    bootstrap: async (deadlineMs) => {
      for (const untilMs = nowMs() + deadlineMs; (await look()) === null;)
        if (nowMs() > untilMs) throw new Error('the server did not answer');
    },
    facts: async () => ({ build: '', replicationFactor: 1, minInSync: 1, partitions: 1, versions: [] }),
    peek: async () => null,
    events: async () => [],
    nodeAdded: () => undefined,
    close: async () => undefined,
  };
}

const promise = 'An acknowledged write is in the memory of one process.';

export const system: System = {
  name: 'tiny-map',
  contract: () => ({ acknowledgement: promise, durable: false, permittedLoss: 'any restart' }),
  capabilities: { versions: true, compareAndSet: true, create: true, counters: false, ttl: false, peek: false },
  clientPromises: { maxAttempts: 1, deadlineMs: 5_000 },
  definiteRefusals: ['not sent', 'not offered'],
  shape: { nodes: 1, partitions: 1, everyNodeHoldsAll: true },
  program: {
    source: { kind: 'folder', path: import.meta.dirname },
    ports: { client: 7000, cluster: 7001, http: 7002 },
    readiness: { kind: 'exchange', send: 'GET /status HTTP/1.1\r\nhost: store\r\n\r\n', expect: '200 OK' },
    command: ({ folder, host, ports }) => ['node', `${folder}/server.ts`, host, String(ports.client)],
  },
  defaultMinInSync: () => 1,
  nodeEnvironment: () => ({}),
  connect: ({ addresses, nowMs }) => connect(addresses[0] as NodeAddress, nowMs),
};
