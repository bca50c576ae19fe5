/**
 * What one client process gets from one node over one connection with 64 requests under way, as a share of what the same batching gives a
 * bare echo of frames on the same machine in the same minute.
 */
import { fileURLToPath } from 'node:url';
import { freeHostPorts } from '../../docker/host-ports.ts';
import { ZarisClient } from '../../zaris/client/client.ts';
import { type BenchContext, checkGoing, pause, startProgram } from './bench-context.ts';
import { CpuWatch } from './cpu-time.ts';
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
  quick: { rounds: 3, heatUps: 2, warmUpMs: 700, measureMs: 1_000 },
} as const;

interface Window {
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** What one measured stretch gave: the rate, and the CPU time of an operation at either end, which other load on the machine blurs less. */
interface Sample {
  readonly perSecond: number;
  readonly clientUs: number;
  readonly serverUs: number;
}

/** Calls of `operation` per second with so many under way; `pid` serves them. Rejects when one does not succeed. */
async function measureCalls(
  context: BenchContext,
  window: Window,
  pid: number,
  operation: (key: string) => Promise<{ readonly isSuccess: boolean; readonly status: string }>,
): Promise<Sample> {
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
    await Promise.race([pause(window.warmUpMs, context.signal), loops]);
    const begin = { count, atMs: performance.now(), cpu: new CpuWatch([pid]) };
    await Promise.race([pause(window.measureMs, context.signal), loops]);
    return sampleOf(count - begin.count, performance.now() - begin.atMs, begin.cpu);
  } finally {
    end.isOver = true;
    await loops;
  }
}

function sampleOf(count: number, elapsedMs: number, cpu: CpuWatch): Sample {
  const perSecond = (count * 1000) / elapsedMs;
  const { own, others } = cpu.read();
  return { perSecond, clientUs: (own * 1e6) / perSecond, serverUs: ((others[0] ?? NaN) * 1e6) / perSecond };
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
  const program = fileURLToPath(new URL('./echo-server.ts', import.meta.url));
  const echo = stack.use(await startProgram(context, 'echo', [process.execPath, program, String(port)]));
  const cluster = stack.use(
    await openZaris(context, { name: 'pipeline', nodeCount: 1, replicationFactor: 1, partitionCount: 64 }),
  );
  const client = stack.use(await ZarisClient.connect(cluster.url));
  const [node = 0] = cluster.pids();
  const value = 'v'.repeat(valueBytes);
  await fill(client, value);
  const get = (): Promise<Sample> => measureCalls(context, plan, node, (key) => client.get(key));
  const put = (): Promise<Sample> => measureCalls(context, plan, node, (key) => client.put(key, value));
  const bare = async (): Promise<Sample> => {
    let cpu = new CpuWatch([]);
    const onBegin = (): void => void (cpu = new CpuWatch([echo.pid]));
    const { count, elapsedMs } = await measureEcho(port, { ...plan, inFlight, payloadBytes: echoBytes, onBegin });
    return sampleOf(count, elapsedMs, cpu);
  };
  for (let round = 0; round < plan.heatUps; round++) {
    // What runs in a virtual machine is compiled by then.
    await bare();
    await get();
    await put();
  }
  const samples = { echo: [] as Sample[], get: [] as Sample[], put: [] as Sample[] };
  for (let round = 0; round < plan.rounds; round++) {
    checkGoing(context);
    samples.echo.push(await bare());
    samples.get.push(await get());
    samples.put.push(await put());
    const last = Object.entries(samples).map(([name, each]) => `${name} ${figure(each.at(-1)?.perSecond ?? NaN)}/s`);
    context.say(`round ${round + 1}: ${last.join(', ')}`);
  }
  context.print(
    `One client process, one node (rf 1: one copy, no promise), one connection, ${inFlight} under way, values of ${valueBytes} bytes; ${plan.rounds} rounds of ${plan.measureMs / 1000} s. CPU: client + server, per operation.`,
  );
  context.print(`  bare echo of ${echoBytes}-byte frames, batched in the same way: ${describe(samples.echo)}`);
  context.print(`  get:      ${describe(samples.get)}, ${shareOf(samples.get, samples.echo)} of the echo`);
  context.print(`  put rf 1: ${describe(samples.put)}, ${shareOf(samples.put, samples.echo)} of the echo`);
}

function describe(samples: readonly Sample[]): string {
  const over = (pick: (sample: Sample) => number): string => spreadText(spreadOf(samples.map(pick)));
  return `${over((sample) => sample.perSecond)} per second, CPU ${over((sample) => sample.clientUs)} + ${over((sample) => sample.serverUs)} µs`;
}

/** Rate by rate, round by round: what hit a whole round cancels out. */
const shareOf = (samples: readonly Sample[], echo: readonly Sample[]): string =>
  spreadText(spreadOf(samples.map(({ perSecond }, index) => perSecond / (echo[index]?.perSecond ?? NaN))));
