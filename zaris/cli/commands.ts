/** What each `zaris` command does; every one returns an exit code. */
import type { ZarisClient } from '../client/client.ts';
import { ZarisInputError } from '../client/errors.ts';
import type { AdminCommand } from '../model/client-wire.ts';
import { nodeId, seq, term, type Version } from '../model/ids.ts';
import { runBench, type BenchArguments } from './bench.ts';
import {
  type CommonArguments,
  connectClient,
  exitCodeOf,
  exitOk,
  exitUnsettled,
  firstSeed,
  printResult,
} from './connection.ts';
import { lookAtCopies, statusText } from './status.ts';

/** Pause before a command that was answered "ask again" is asked again, ms. */
const askAgainMs = 500;
const maxAsks = 20;

async function withClient(
  args: CommonArguments,
  run: (client: ZarisClient) => Promise<number>,
  waitForMap = true,
): Promise<number> {
  await using client = await connectClient(args, waitForMap);
  return await run(client);
}

/** `term:seq` as `put` and `get --json` print it. */
function parseVersion(text: string): Version {
  const match = /^(\d+):(\d+)$/.exec(text);
  if (match === null) throw new ZarisInputError(`"${text}" is no version; write term:seq, such as 3:17`);
  return { term: term(Number(match[1])), seq: seq(Number(match[2])) };
}

export function get(args: CommonArguments & { readonly key: string }): Promise<number> {
  return withClient(args, async (client) => {
    const result = await client.get(args.key);
    printResult(result, args, true);
    return exitCodeOf(result);
  });
}

export interface PutArguments extends CommonArguments {
  readonly key: string;
  readonly value: string;
  readonly ifAbsent: boolean;
  readonly ifVersion?: string | undefined;
  readonly ttl?: number | undefined;
}

export function put(args: PutArguments): Promise<number> {
  return withClient(args, async (client) => {
    const result = await client.put(args.key, args.value, {
      ...(args.ifAbsent ? { ifAbsent: true } : {}),
      ...(args.ifVersion === undefined ? {} : { ifVersion: parseVersion(args.ifVersion) }),
      ...(args.ttl === undefined ? {} : { ttlMs: args.ttl }),
    });
    printResult(result, args, false);
    return exitCodeOf(result);
  });
}

export function remove(
  args: CommonArguments & { readonly key: string; readonly ifVersion?: string | undefined },
): Promise<number> {
  return withClient(args, async (client) => {
    const result = await client.delete(
      args.key,
      args.ifVersion === undefined ? {} : { ifVersion: parseVersion(args.ifVersion) },
    );
    printResult(result, args, false);
    return exitCodeOf(result);
  });
}

export interface IncrArguments extends CommonArguments {
  readonly key: string;
  readonly by: number;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

export function incr(args: IncrArguments): Promise<number> {
  return withClient(args, async (client) => {
    const bounds = {
      ...(args.min === undefined ? {} : { min: args.min }),
      ...(args.max === undefined ? {} : { max: args.max }),
    };
    const result = await client.add(args.key, args.by, bounds);
    printResult(result, args, true);
    return exitCodeOf(result);
  });
}

export function scan(args: CommonArguments & { readonly prefix: string; readonly limit: number }): Promise<number> {
  return withClient(args, async (client) => {
    const result = await client.scan(args.prefix, { limit: args.limit });
    if (args.json || !result.isSuccess) printResult(result, args, false);
    else for (const { key, value } of result.items) process.stdout.write(`${key}\t${value}\n`);
    if (result.isSuccess && result.more && !args.json) process.stderr.write('there is more; raise --limit\n');
    return exitCodeOf(result);
  });
}

export function status(args: CommonArguments): Promise<number> {
  return withClient(args, async (client) => {
    const { view } = client;
    if (view === null) return exitUnsettled;
    if (args.json) process.stdout.write(`${JSON.stringify(view)}\n`);
    else process.stdout.write(statusText(view, await lookAtCopies(client, view)));
    return view.partitions.every((partition) => partition.serving) ? exitOk : exitUnsettled;
  });
}

export async function bench(args: BenchArguments): Promise<number> {
  const result = await runBench(args);
  if (args.json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else {
    const { operation, writers, perSecond, p50Ms, p99Ms, maxMs, failures } = result;
    const latencies = `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms, max ${maxMs.toFixed(1)} ms`;
    process.stdout.write(
      `${operation}, ${writers} at once: ${perSecond} per second, ${latencies}, ${failures} failed\n`,
    );
  }
  return result.failures === 0 ? exitOk : exitUnsettled;
}

/** Sends a command to the first address of the URL, on to the control leader, and again while the answer is "ask again". */
function admin(args: CommonArguments, command: AdminCommand, target: string, waitForMap = true): Promise<number> {
  return withClient(
    args,
    async (client) => {
      for (let asks = 1; ; asks++) {
        const result = await client.admin(command, target);
        if (result.status === 'Migrating' && asks < maxAsks) {
          await new Promise((resolve) => setTimeout(resolve, askAgainMs));
          continue;
        }
        printResult(result, args, false);
        return exitCodeOf(result);
      }
    },
    waitForMap,
  );
}

export interface BootstrapArguments extends CommonArguments {
  readonly cluster: string;
  readonly rf: number;
  readonly minInSync?: number | undefined;
  readonly partitions: number;
  readonly nodes: number;
}

/** Makes the node at the first address the only voter of a new cluster; once, by this explicit act. */
export function bootstrap(args: BootstrapArguments): Promise<number> {
  const settings = {
    clusterId: args.cluster,
    replicationFactor: args.rf,
    minInSync: args.minInSync ?? (args.rf >= 3 ? 2 : 1),
    partitionCount: args.partitions,
    initialNodes: args.nodes,
  };
  return admin(args, { kind: 'bootstrap', settings }, firstSeed(args), false);
}

export function drain(args: CommonArguments & { readonly node: string }): Promise<number> {
  return admin(args, { kind: 'drain', nodeId: nodeId(args.node) }, firstSeed(args));
}

export function rebalance(args: CommonArguments & { readonly leaving: readonly string[] }): Promise<number> {
  return admin(args, { kind: 'rebalance', leaving: args.leaving.map((id) => nodeId(id)) }, firstSeed(args));
}
