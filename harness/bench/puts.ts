/**
 * In-sync puts per second: Zaris, Redis with WAIT 1 and etcd in one run, in turns, so that whatever else the machine does hits all of them alike.
 */
import Table from 'cli-table3';
import { messageOf } from '../errors.ts';
import { type BenchContext, checkGoing } from './bench-context.ts';
import { CpuWatch } from './cpu-time.ts';
import { findServer } from './debian-servers.ts';
import { measure, type Round } from './load.ts';
import { startEtcd } from './put-etcd.ts';
import { startRedis } from './put-redis.ts';
import type { PutSystem } from './put-systems.ts';
import { startZaris } from './put-zaris.ts';
import { figure, spreadOf, spreadText } from './statistics.ts';

const writerCounts = [1, 16, 64] as const;
const valueBytes = 100;
const keysPerWriter = 1_000;
/** The load is one process with one thread; from this share of a CPU on it holds the system back. */
const loadBound = 0.85;

interface Plan {
  readonly rounds: number;
  /** Before the first round, for each system with the most writers: what runs in a virtual machine is compiled by then. */
  readonly heatUpMs: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

const plans: { readonly full: Plan; readonly quick: Plan } = {
  full: { rounds: 5, heatUpMs: 30_000, warmUpMs: 1_000, measureMs: 4_000 },
  quick: { rounds: 2, heatUpMs: 2_000, warmUpMs: 300, measureMs: 700 },
};

/** Rounds by system name and number of writers. */
type Results = Map<string, Map<number, Round[]>>;

async function startAll(context: BenchContext, stack: AsyncDisposableStack): Promise<PutSystem[]> {
  const systems: PutSystem[] = [];
  const starts: readonly [string, () => Promise<PutSystem>][] = [
    ['Zaris rf 2', () => startZaris(context, 2)],
    ['Zaris rf 3', () => startZaris(context, 3)],
    ['Redis', async () => startRedis(context, await findServer('redis-server', context.say))],
    ['etcd', async () => startEtcd(context, await findServer('etcd', context.say))],
  ];
  for (const [name, start] of starts) {
    checkGoing(context);
    try {
      systems.push(stack.use(await start()));
    } catch (error) {
      checkGoing(context);
      if (name.startsWith('Zaris')) throw error;
      context.print(`${name} is not in the comparison: ${messageOf(error)}`);
    }
  }
  return systems;
}

async function oneRound(
  context: BenchContext,
  system: PutSystem,
  writers: number,
  { warmUpMs, measureMs }: Pick<Plan, 'warmUpMs' | 'measureMs'>,
): Promise<Round> {
  const connected = await system.connect(writers);
  try {
    return await measure(connected.writers, system.pids, {
      valueBytes,
      keysPerWriter,
      warmUpMs,
      measureMs,
      signal: context.signal,
    });
  } finally {
    await connected.close();
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const microseconds = (cpus: number, round: Round): number => (cpus * 1e6) / round.perSecond;

function tableOf(systems: readonly PutSystem[], results: Results): string {
  const head = [
    'system',
    'writers',
    'puts/s',
    'p50 ms',
    'p99 ms',
    'max ms',
    'failed',
    'CPUs: load',
    'CPUs: each server',
    'CPU µs per put: load + servers',
  ];
  const table = new Table({ head, style: { head: [], border: [] } });
  for (const writers of writerCounts) {
    for (const { name } of systems) {
      const rounds = results.get(name)?.get(writers) ?? [];
      const over = (pick: (round: Round) => number) => spreadOf(rounds.map(pick));
      const servers = rounds[0]?.systemCpus.map((_, index) =>
        figure(over((round) => round.systemCpus[index] ?? NaN).median),
      );
      table.push([
        name,
        writers,
        spreadText(over((round) => round.perSecond)),
        figure(over((round) => round.p50Ms).median),
        spreadText(over((round) => round.p99Ms)),
        figure(over((round) => round.maxMs).high),
        sum(rounds.map((round) => round.failures)),
        figure(over((round) => round.loadCpu).median),
        servers?.join(' ') ?? '',
        `${figure(over((round) => microseconds(round.loadCpu, round)).median)} + ${figure(over((round) => microseconds(sum(round.systemCpus), round)).median)}`,
      ]);
    }
  }
  return table.toString();
}

/** Rates of two systems against each other, round by round: what hit one round of both cancels out. */
function ratioLine(results: Results, ours: string, theirs: string, writers: number): string | null {
  const mine = results.get(ours)?.get(writers) ?? [];
  const other = results.get(theirs)?.get(writers) ?? [];
  if (mine.length === 0 || other.length === 0) return null;
  const ratios = mine.map((round, index) => round.perSecond / (other[index]?.perSecond ?? NaN));
  return `  ${ours} / ${theirs}, ${writers} writers: ${spreadText(spreadOf(ratios))}`;
}

function printResults(context: BenchContext, systems: readonly PutSystem[], results: Results): void {
  context.print(tableOf(systems, results));
  context.print('Ratios of puts per second, round by round, median [least – most]:');
  const others = systems.filter(({ name }) => !name.startsWith('Zaris'));
  for (const ours of systems.filter(({ name }) => name.startsWith('Zaris')))
    for (const theirs of others)
      for (const writers of writerCounts) {
        const line = ratioLine(results, ours.name, theirs.name, writers);
        if (line !== null) context.print(line);
      }
  context.print('What an acknowledgement promises:');
  for (const { name, promise } of systems) context.print(`  ${name}: ${promise}.`);
  for (const { name } of systems)
    for (const [writers, rounds] of results.get(name) ?? []) {
      const failure = rounds.find((round) => round.firstFailure !== null)?.firstFailure;
      if (failure !== undefined) context.print(`  First failure of ${name} with ${writers} writers: ${failure}`);
      if (spreadOf(rounds.map((round) => round.loadCpu)).median >= loadBound)
        context.print(
          `  ${name}, ${writers} writers: the process that makes the load was at its limit; the system could do more.`,
        );
    }
}

/** Runs the comparison and prints it. */
export async function benchPuts(context: BenchContext): Promise<void> {
  const plan = context.isQuick ? plans.quick : plans.full;
  await using stack = new AsyncDisposableStack();
  const systems = await startAll(context, stack);
  const pids = systems.flatMap((system) => [...system.pids]);
  const idle = new CpuWatch(pids);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const idleCpus = sum(idle.read().others);
  context.print(
    `Puts of ${valueBytes} bytes; each writer has a client and connections of its own and waits for each acknowledgement (a Zaris client has one connection per node); ${plan.rounds} rounds of ${plan.measureMs / 1000} s each, in turns, after ${plan.heatUpMs / 1000} s of load on each. All servers run all the time; idle, they use ${figure(idleCpus)} CPUs together.`,
  );
  for (const system of systems) {
    checkGoing(context);
    const { perSecond } = await oneRound(context, system, Math.max(...writerCounts), {
      warmUpMs: plan.heatUpMs,
      measureMs: 500,
    });
    context.say(`${system.name} is warm: ${figure(perSecond)}/s`);
  }
  const results: Results = new Map(systems.map(({ name }) => [name, new Map()]));
  for (const writers of writerCounts) {
    for (let round = 0; round < plan.rounds; round++) {
      for (const system of systems) {
        checkGoing(context);
        const figures = await oneRound(context, system, writers, plan);
        checkGoing(context);
        const byWriters = results.get(system.name) as Map<number, Round[]>;
        byWriters.set(writers, [...(byWriters.get(writers) ?? []), figures]);
        context.say(`${system.name}, ${writers} writers, round ${round + 1}: ${figure(figures.perSecond)}/s`);
      }
    }
  }
  printResults(context, systems, results);
}
