/** What each `zaris` command does; every one returns an exit code. */
import type { ZarisClient } from '../client/client.ts';
import { ZarisInputError } from '../client/errors.ts';
import type { AdminCommand } from '../model/client-wire.ts';
import { nodeId, seq, term, type Version } from '../model/ids.ts';
import { segmentCount } from '../model/view.ts';
import { knownNodes, wholeNumber } from './arguments.ts';
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
/** What the wire takes of a bootstrap. */
const maxCopies = 5;
const maxInitialNodes = 1_024;

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
  const [major, minor] = [Number(match?.[1]), Number(match?.[2])];
  if (!Number.isSafeInteger(major) || !Number.isSafeInteger(minor))
    throw new ZarisInputError(`"${text}" is no version; write term:seq, such as 3:17`);
  return { term: term(major), seq: seq(minor) };
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

export async function put(args: PutArguments): Promise<number> {
  const condition = args.ifVersion === undefined ? {} : { ifVersion: parseVersion(args.ifVersion) };
  return withClient(args, async (client) => {
    const result = await client.put(args.key, args.value, {
      ...(args.ifAbsent ? { ifAbsent: true } : {}),
      ...condition,
      ...(args.ttl === undefined ? {} : { ttlMs: args.ttl }),
    });
    printResult(result, args, false);
    return exitCodeOf(result);
  });
}

export async function remove(
  args: CommonArguments & { readonly key: string; readonly ifVersion?: string | undefined },
): Promise<number> {
  const condition = args.ifVersion === undefined ? {} : { ifVersion: parseVersion(args.ifVersion) };
  return withClient(args, async (client) => {
    const result = await client.delete(args.key, condition);
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
    const reason = result.status === 'InvalidInput' ? 'what stands there is no whole number' : result.reason;
    printResult(reason === undefined ? result : { ...result, reason }, args, true);
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
function admin(
  args: CommonArguments,
  command: AdminCommand,
  { waitForMap = true, nodes = [] }: { readonly waitForMap?: boolean; readonly nodes?: readonly string[] } = {},
): Promise<number> {
  const target = firstSeed(args);
  return withClient(
    args,
    async (client) => {
      knownNodes(nodes, client.view);
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
export async function bootstrap(args: BootstrapArguments): Promise<number> {
  const replicationFactor = wholeNumber('--rf', args.rf, 1, maxCopies);
  const settings = {
    clusterId: args.cluster,
    replicationFactor,
    minInSync: wholeNumber('--min-in-sync', args.minInSync ?? (args.rf >= 3 ? 2 : 1), 1, replicationFactor),
    partitionCount: wholeNumber('--partitions', args.partitions, 1, segmentCount),
    initialNodes: wholeNumber('--nodes', args.nodes, 1, maxInitialNodes),
  };
  return admin(args, { kind: 'bootstrap', settings }, { waitForMap: false });
}

export function drain(args: CommonArguments & { readonly node: string }): Promise<number> {
  return admin(args, { kind: 'drain', nodeId: nodeId(args.node) }, { nodes: [args.node] });
}

export function rebalance(args: CommonArguments & { readonly leaving: readonly string[] }): Promise<number> {
  const { leaving } = args;
  return admin(args, { kind: 'rebalance', leaving: leaving.map((id) => nodeId(id)) }, { nodes: leaving });
}
