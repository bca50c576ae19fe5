/** The tiny map as a system to certify: everything that an adapter must say, and nothing more. See docs/certify-your-store.md. */
import { ObservedRuntime } from '../../../harness/systems/observed-runtime.ts';
import type { NodeAddress, RunningSystem, System } from '../../../harness/systems/system.ts';
import type { Completion, Operation, StoreClient } from '../../../workloads/port.ts';

interface Entry {
  readonly value: string;
  readonly version: number;
}

/** Never rejects: what is not known is `info`, and only a connection that was refused proves that nothing ran. */
async function execute(base: string, operation: Operation): Promise<Completion> {
  try {
    return await ask(base, operation);
  } catch (error) {
    const refused = (error as { cause?: { code?: string } }).cause?.code === 'ECONNREFUSED';
    return refused ? { kind: 'fail', why: 'refused', error: 'connection refused' } : { kind: 'info', error: String(error) };
  }
}

async function ask(base: string, operation: Operation): Promise<Completion> {
  if (operation.f === 'add') return { kind: 'fail', why: 'invalid', error: 'no counters' };
  const expected = 'expected' in operation ? operation.expected?.[1] : undefined;
  const response = await fetch(`${base}/keys/${encodeURIComponent(operation.key)}`, {
    method: operation.f === 'read' ? 'GET' : operation.f === 'delete' ? 'DELETE' : 'PUT',
    headers: {
      ...(operation.f === 'create' ? { 'if-none-match': '*' } : {}),
      ...(expected === undefined ? {} : { 'if-match': String(expected) }),
    },
    ...('value' in operation ? { body: operation.value } : {}),
    signal: AbortSignal.timeout(5_000),
  });
  const entry = (await response.json()) as Entry | null;
  const version = entry === null ? null : ([0, entry.version] as const);
  if (operation.f === 'read') return { kind: 'ok', value: entry?.value ?? null, version, partition: 0 };
  if (response.status === 200) return { kind: 'ok', version, partition: 0 };
  return { kind: 'fail', why: 'condition', error: `HTTP ${response.status}`, version };
}

function run({ nodeId, host, clientPort }: NodeAddress, nowMs: () => number): RunningSystem {
  const base = `http://${host}:${clientPort}`;
  const runtime = new ObservedRuntime();
  const starts: string[] = [];
  const look = async (): Promise<{ startedAt: string } | null> => {
    try {
      return (await (await fetch(`${base}/status`, { signal: AbortSignal.timeout(1_000) })).json()) as { startedAt: string };
    } catch {
      return null;
    }
  };
  const status = async () => {
    const atMs = nowMs();
    const seen = await look();
    if (seen !== null && !starts.includes(seen.startedAt)) starts.push(seen.startedAt);
    const up = seen !== null;
    const partition = runtime.see({ partition: 0, primary: up ? nodeId : null, reign: starts.at(-1) ?? '', replicas: [nodeId], inSync: [nodeId], joining: [], health: up ? 'Healthy' : 'Unavailable', serving: up });
    return { atMs, leader: nodeId, voters: [], nodes: [{ nodeId, incarnation: starts.length, alive: up }], minInSync: 1, partitions: [partition] };
  };
  const client: StoreClient = { execute: (operation) => execute(base, operation), close: async () => undefined };
  return {
    client: () => client,
    status: { status },
    partitionOf: () => 0,
    bootstrap: async (deadlineMs) => {
      for (const untilMs = nowMs() + deadlineMs; (await look()) === null; await new Promise((resolve) => setTimeout(resolve, 100)))
        if (nowMs() > untilMs) throw new Error('the server did not answer');
    },
    facts: async () => ({ build: '', replicationFactor: 1, minInSync: 1, partitions: 1, versions: [] }),
    peek: async () => null,
    events: async () => [],
    nodeAdded: () => undefined,
    close: async () => undefined,
  };
}

export const system: System = {
  name: 'tiny-map',
  contract: () => ({ acknowledgement: 'An acknowledged write is in the memory of one process.', durable: false, permittedLoss: 'any restart' }),
  capabilities: { versions: true, compareAndSet: true, create: true, counters: false, ttl: false, peek: false },
  clientPromises: { maxAttempts: 1, deadlineMs: 5_000 },
  shape: { nodes: 1, partitions: 1, everyNodeHoldsAll: true },
  program: {
    source: { kind: 'folder', path: import.meta.dirname },
    ports: { client: 7000, cluster: 7001, http: 7002 },
    readiness: { kind: 'exchange', send: 'GET /status HTTP/1.1\r\nhost: store\r\n\r\n', expect: '200 OK' },
    command: ({ folder, host, ports }) => ['node', `${folder}/server.ts`, host, String(ports.client)],
  },
  defaultMinInSync: () => 1,
  nodeEnvironment: () => ({}),
  connect: ({ addresses, nowMs }) => run(addresses[0] as NodeAddress, nowMs),
};
