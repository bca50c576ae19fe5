/**
 * A template: copy this file, replace every `fillIn(...)`, and ask `npm run certify -- conformance ./my-system.ts --cluster process` what
 * is still wrong. The guide is docs/certify-your-store.md; tiny-map/ beside this file is a finished one.
 */
import { ObservedRuntime } from '../../harness/systems/observed-runtime.ts';
import type { ConnectOptions, RunningSystem, System } from '../../harness/systems/system.ts';
import type { Completion, Operation } from '../../workloads/port.ts';

/** Stands where your part goes. */
function fillIn(what: string): never {
  throw new Error(`fill in: ${what}`);
}

/** One operation against your store. Reached only with what `capabilities` offers. */
async function ask(_operation: Operation): Promise<Completion> {
  // read   → { kind: 'ok', value: text or null, version }
  // write  → { kind: 'ok', version }                       (version only if your store has versions)
  // create → { kind: 'ok', version } or { kind: 'fail', why: 'condition', error } when the key is there
  // cas    → the same, when the current version is not operation.expected
  // delete → { kind: 'ok' } or { kind: 'fail', why: 'condition', error } when there is nothing
  // add    → { kind: 'ok', value: the new sum as text }
  // not offered → { kind: 'fail', why: 'invalid', error: 'not offered' }
  return fillIn('send the operation with the client that your users use');
}

/** Never rejects. An unknown outcome is `info`: a timeout, a lost connection, anything that you are not sure of. */
async function execute(operation: Operation): Promise<Completion> {
  try {
    return { ...(await ask(operation)), partition: 0 };
  } catch (error) {
    // `fail` with why 'refused' is allowed only where you can prove that nothing ran, such as ECONNREFUSED; its text must begin with
    // one of `definiteRefusals` below.
    return { kind: 'info', error: String(error) };
  }
}

function connect({ addresses, nowMs }: ConnectOptions): RunningSystem {
  const runtime = new ObservedRuntime();
  return {
    client: () => ({ execute, close: async () => undefined }),
    status: {
      // Null when no majority of your nodes agrees: then no fault is injected. Never the word of one node that may be cut off.
      status: async () => {
        const primary = fillIn('the node id of the primary, as a majority says it');
        const nodeIds = addresses.map(({ nodeId }) => nodeId);
        const partition = runtime.see({
          partition: 0,
          primary,
          reign: fillIn('text that changes with every new primary and every restart of it'),
          replicas: nodeIds,
          inSync: fillIn('node ids whose copy is up to date'),
          joining: [],
          health: fillIn('Healthy: all in sync; Degraded: serving with fewer; Unavailable: not serving'),
          serving: fillIn('whether it serves'),
        });
        return {
          atMs: nowMs(),
          leader: primary,
          voters: nodeIds, // of whom a majority must work for your store to decide anything; [] without such a rule
          nodes: nodeIds.map((nodeId) => ({
            nodeId,
            incarnation: fillIn('how often its process has started'),
            alive: fillIn('whether it answers'),
          })),
          minInSync: 2,
          partitions: [partition],
        };
      },
    },
    partitionOf: () => 0,
    bootstrap: async () => fillIn('wait until every partition is Healthy and serving; throw after deadlineMs'),
    facts: async () =>
      fillIn('copies, copies needed to acknowledge, partitions and versions, read from the live cluster'),
    peek: async () => null,
    events: async () => [],
    nodeAdded: () => undefined,
    close: async () => undefined,
  };
}

export const system: System = {
  name: 'my-store',
  contract: () => ({ acknowledgement: 'An acknowledged write is …', durable: true, permittedLoss: null }),
  capabilities: { versions: false, compareAndSet: false, create: false, counters: false, ttl: false, peek: false },
  clientPromises: { maxAttempts: 1, deadlineMs: null },
  definiteRefusals: ['not sent', 'not offered'],
  shape: { nodes: 3, partitions: 1, everyNodeHoldsAll: true },
  program: {
    source: { kind: 'image', image: 'my-store:latest' },
    ports: { client: 7000, cluster: 7001, http: 7002 },
    readiness: { kind: 'http', path: '/health' },
    command: ({ nodeId, host, ports, dataDir, nodes }) => [
      'my-store',
      ...['--id', nodeId, '--listen', `${host}:${ports.client}`, '--data', dataDir],
      ...['--peers', nodes.map((node) => node.clusterAddress).join(',')],
    ],
  },
  defaultMinInSync: (copies) => Math.floor(copies / 2) + 1,
  nodeEnvironment: () => ({}),
  connect,
};
