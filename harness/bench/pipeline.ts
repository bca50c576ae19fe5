/**
 * What one client process gets from one node over one connection with 64 requests under way, as a share of what the same batching gives a
 * bare echo of frames on the same machine in the same minute.
 */
import { fileURLToPath } from 'node:url';
import { freeHostPorts } from '../../docker/host-ports.ts';
import { ZarisClient } from '../../zaris/client/client.ts';
import { type BenchContext, checkGoing, pause, startProgram } from './bench-context.ts';
import { measureEcho } from './echo-client.ts';
import { figure, spreadOf, spreadText } from './statistics.ts';
import { openZaris } from './zaris-cluster.ts';

const inFlight = 64;
const valueBytes = 100;
/** About what a request or an answer of that value takes. */
const echoBytes = 130;
const keyCount = 10_000;
const plans = {
  full: { rounds: 7, heatUps: 2, warmUpMs: 1_000, measureMs: 3_000 },
  quick: { rounds: 2, heatUps: 1, warmUpMs: 500, measureMs: 700 },
} as const;

/** Calls of `operation` per second with so many under way. Rejects when one does not succeed. */
async function measureCalls(
  context: BenchContext,
  plan: { readonly warmUpMs: number; readonly measureMs: number },
  operation: (key: string) => Promise<{ readonly isSuccess: boolean; readonly status: string }>,
): Promise<number> {
  let count = 0;
  const end = { isOver: false };
  const loop = async (index: number): Promise<void> => {
    for (let turn = index; !end.isOver; turn += inFlight) {
      const result = await operation(`pipeline-${turn % keyCount}`);
      if (!result.isSuccess) throw new Error(`an operation ended with ${result.status}`);
      count++;
    }
  };
  const loops = Promise.all(Array.from({ length: inFlight }, (_, index) => loop(index)));
  try {
    await Promise.race([pause(plan.warmUpMs, context.signal), loops]);
    const before = count;
    const sinceMs = performance.now();
    await Promise.race([pause(plan.measureMs, context.signal), loops]);
    return ((count - before) * 1000) / (performance.now() - sinceMs);
  } finally {
    end.isOver = true;
    await loops;
  }
}

async function fill(client: ZarisClient, value: string): Promise<void> {
  const keys = Array.from({ length: keyCount }, (_, index) => `pipeline-${index}`);
  for (let at = 0; at < keyCount; at += 500)
    await client.putMany(keys.slice(at, at + 500).map((key) => [key, value] as const));
}

/** Runs echo, get and put in turns and prints rates and ratios. */
export async function benchPipeline(context: BenchContext): Promise<void> {
  const plan = context.isQuick ? plans.quick : plans.full;
  await using stack = new AsyncDisposableStack();
  const [port = 0] = await freeHostPorts(1);
  const echo = fileURLToPath(new URL('./echo-server.ts', import.meta.url));
  stack.use(await startProgram(context, 'echo', [process.execPath, echo, String(port)]));
  const cluster = stack.use(
    await openZaris(context, { name: 'pipeline', nodeCount: 1, replicationFactor: 1, partitionCount: 64 }),
  );
  const client = stack.use(await ZarisClient.connect(cluster.url));
  const value = 'v'.repeat(valueBytes);
  await fill(client, value);
  for (let round = 0; round < plan.heatUps; round++) {
    // What runs in a virtual machine is compiled by then.
    await measureCalls(context, plan, (key) => client.get(key));
    await measureCalls(context, plan, (key) => client.put(key, value));
  }
  const rates = { echo: [] as number[], get: [] as number[], put: [] as number[] };
  for (let round = 0; round < plan.rounds; round++) {
    checkGoing(context);
    rates.echo.push(await measureEcho(port, { ...plan, inFlight, payloadBytes: echoBytes }));
    rates.get.push(await measureCalls(context, plan, (key) => client.get(key)));
    rates.put.push(await measureCalls(context, plan, (key) => client.put(key, value)));
    context.say(
      `round ${round + 1}: echo ${figure(rates.echo.at(-1) ?? NaN)}/s, get ${figure(rates.get.at(-1) ?? NaN)}/s, put ${figure(rates.put.at(-1) ?? NaN)}/s`,
    );
  }
  const share = (of: readonly number[]): string =>
    spreadText(spreadOf(of.map((rate, index) => rate / (rates.echo[index] ?? NaN))));
  context.print(
    `One client process, one node (rf 1: one copy, no promise), one connection, ${inFlight} under way, values of ${valueBytes} bytes; ${plan.rounds} rounds of ${plan.measureMs / 1000} s.`,
  );
  context.print(
    `  bare echo of ${echoBytes}-byte frames, one write per turn: ${spreadText(spreadOf(rates.echo))} per second`,
  );
  context.print(`  get:      ${spreadText(spreadOf(rates.get))} per second, ${share(rates.get)} of the echo`);
  context.print(`  put rf 1: ${spreadText(spreadOf(rates.put))} per second, ${share(rates.put)} of the echo`);
}
