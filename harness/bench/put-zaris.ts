/** Zaris as one of the compared systems: three nodes as local processes, defaults. */
import { ZarisClient } from '../../zaris/client/client.ts';
import type { BenchContext } from './bench-context.ts';
import type { Writer } from './load.ts';
import type { PutSystem } from './put-systems.ts';
import { openZaris } from './zaris-cluster.ts';

const partitionCount = 64;
const nodeCount = 3;

function writerOf(client: ZarisClient): Writer {
  return {
    async put(key, value) {
      const result = await client.put(key, value);
      if (!result.isSuccess)
        throw new Error(`${result.status}${result.reason === undefined ? '' : ` (${result.reason})`}`);
    },
  };
}

/** Starts a cluster with so many copies of every partition. */
export async function startZaris(
  context: BenchContext,
  replicationFactor: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<PutSystem> {
  const name = `zaris-rf${replicationFactor}`;
  const cluster = await openZaris(context, { name, nodeCount, replicationFactor, partitionCount, environment });
  return {
    name: `Zaris rf ${replicationFactor}`,
    promise: `in the memory of every in-sync copy (${replicationFactor} when healthy), fenced by term: kept as long as one of them keeps its process, over any failover; not on disk`,
    pids: cluster.pids(),
    async connect(count) {
      const clients = await Promise.all(Array.from({ length: count }, () => ZarisClient.connect(cluster.url)));
      return {
        writers: clients.map(writerOf),
        close: async () => void (await Promise.all(clients.map((client) => client.close()))),
      };
    },
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}
