/**
 * What the ledger itself can take: operations per second with intent and outcome of each on disk, by 64 sessions that do nothing else;
 * what it adds to the latency of an operation, flat out and at the default rate; and its memory over the operations of an hour.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Histogram } from 'hdr-histogram-js';
import { type Ledger, openLedger } from '../../ledger/ledger.ts';
import { encodeValue } from '../../ledger/values.ts';
import type { Completion, Operation } from '../../workloads/port.ts';
import { defaults } from '../settings.ts';
import { type BenchContext, checkGoing, pause } from './bench-context.ts';
import { figure, spreadOf, spreadText } from './statistics.ts';

const sessions = 64;
const valueBytes = 100;
/** Operations on a key before it is retired, as a run would. */
const operationsPerKey = 200;
const copies = 3;
const runTag = 'bench';
const plans = {
  full: { rounds: 5, measureMs: 8_000, pacedMs: 20_000, hourOperations: 7_200_000 },
  quick: { rounds: 2, measureMs: 1_500, pacedMs: 3_000, hourOperations: 200_000 },
} as const;
/** Looks at the memory while the operations of an hour are written. */
const memoryLooks = 12;

interface Load {
  /** Each session waits so long between two operations, ms; 0: not at all. */
  readonly pauseMs: number;
  readonly isOver: () => boolean;
  /** Operations so far, all sessions. */
  operations: number;
  /** Waits for an intent, microseconds. */
  readonly waits: Histogram;
}

const newLoad = (isOver: () => boolean, pauseMs = 0): Load => ({
  pauseMs,
  isOver,
  operations: 0,
  waits: build({ bitBucketSize: 32, autoResize: true, numberOfSignificantValueDigits: 3 }),
});

/** One session: write, then read it, each operation with its intent committed first; a key that is done with is retired. */
async function session(ledger: Ledger, index: number, load: Load): Promise<void> {
  let value = '';
  let retired = Promise.resolve();
  for (let turn = 0; !load.isOver(); turn++) {
    if (load.pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, load.pauseMs * (0.5 + Math.random())));
    const operationId = ledger.nextOperationId();
    const key = `k${index}-${Math.floor(turn / operationsPerKey)}`;
    const isWrite = turn % 2 === 0;
    if (isWrite) value = encodeValue(runTag, operationId, valueBytes);
    const operation: Operation = isWrite ? { f: 'write', key, value } : { f: 'read', key };
    const sinceMs = performance.now();
    await ledger.intent({ operationId, session: index, operation, atNs: ledger.nowNs() });
    load.waits.recordValue(Math.max(1, Math.round((performance.now() - sinceMs) * 1e3)));
    const invokeNs = ledger.nowNs();
    const served = { partition: index, epoch: 1, node: `n${1 + (index % 5)}`, attempts: 1 };
    const version = [1, turn + 1] as const;
    const completion: Completion = isWrite
      ? { kind: 'ok', version, ...served }
      : { kind: 'ok', version, value, ...served };
    // Not awaited: the next intent's commit covers it.
    void ledger.outcome({ session: index, completion, invokeNs, returnNs: ledger.nowNs() });
    load.operations++;
    if (turn % operationsPerKey !== operationsPerKey - 1) continue;
    await retired;
    retired = retire(ledger, key, completion);
  }
  await retired;
}

/** What a run writes down before it forgets a key. */
async function retire(ledger: Ledger, key: string, completion: Completion): Promise<void> {
  const atNs = ledger.nowNs();
  const phase = 'retire';
  const copy = { incarnation: 1, role: 'replica', kind: 'answered', value: null, version: null } as const;
  await Promise.all([
    ledger.finalRead({ key, phase, invokeNs: atNs, returnNs: atNs + 1, completion }),
    ...Array.from({ length: copies }, (_, node) =>
      ledger.replicaRead({ key, phase, node: `n${node + 1}`, atNs, appliedSeq: 1, commitSeq: 1, ...copy }),
    ),
    ledger.retire({ key, atNs, exposed: true }),
    ledger.release(key),
  ]);
}

const waitText = (load: Load): string =>
  [50, 99, 99.9, 100].map((share) => figure(load.waits.getValueAtPercentile(share) / 1e3)).join(' / ');

interface Round {
  readonly perSecond: number;
  readonly bytes: number;
  readonly load: Load;
}

/** A ledger under load until `untilOver` resolves. */
async function round(
  context: BenchContext,
  name: string,
  sync: 'normal' | 'full',
  pauseMs: number,
  untilOver: (load: Load) => Promise<void>,
): Promise<Round> {
  const path = join(context.workDir, `${name}.sqlite`);
  const ledger = await openLedger({ path, runTag, sync });
  let isOver = false;
  const load = newLoad(() => isOver, pauseMs);
  const sinceMs = performance.now();
  const running = Array.from({ length: sessions }, (_, index) => session(ledger, index, load));
  try {
    await untilOver(load);
  } finally {
    isOver = true;
    await Promise.all(running);
  }
  await ledger.flush();
  const seconds = (performance.now() - sinceMs) / 1000;
  await ledger.close();
  return { perSecond: load.operations / seconds, bytes: statSync(path).size / load.operations, load };
}

/** Measures both ways of syncing and prints rates, bytes and waits. */
export async function benchLedger(context: BenchContext): Promise<void> {
  const plan = context.isQuick ? plans.quick : plans.full;
  context.print(
    `${sessions} sessions, each operation (half writes of ${valueBytes} bytes, half reads) with its intent committed before and its outcome after, keys retired after ${operationsPerKey}; ${plan.rounds} rounds of ${plan.measureMs / 1000} s each way, in turns.`,
  );
  const results = { normal: [] as Round[], full: [] as Round[] };
  for (let index = 0; index < plan.rounds; index++) {
    for (const sync of ['normal', 'full'] as const) {
      checkGoing(context);
      const over = (): Promise<void> => pause(plan.measureMs, context.signal);
      const result = await round(context, `ledger-${sync}-${index}`, sync, 0, over);
      results[sync].push(result);
      context.say(`${sync}, round ${index + 1}: ${figure(result.perSecond)}/s`);
    }
  }
  const describe = {
    normal: 'survives kill -9 (the default)',
    full: 'survives power loss too (--ledger-sync full)',
  } as const;
  for (const sync of ['normal', 'full'] as const) {
    const rates = spreadOf(results[sync].map(({ perSecond }) => perSecond));
    const bytes = spreadOf(results[sync].map((each) => each.bytes));
    const [last] = results[sync].slice(-1);
    context.print(
      `  ${describe[sync]}: ${spreadText(rates)} operations per second, ${spreadText(bytes)} bytes each in the file; wait for the intent p50 / p99 / p99.9 / max ${last === undefined ? '' : waitText(last.load)} ms`,
    );
  }
  await benchPaced(context, plan.pacedMs);
  await benchHour(context, plan.hourOperations);
}

/** What the ledger adds to an operation when it is not the bottleneck. */
async function benchPaced(context: BenchContext, forMs: number): Promise<void> {
  checkGoing(context);
  const pauseMs = (sessions / defaults.rate) * 1e3;
  const { perSecond, load } = await round(context, 'ledger-paced', 'normal', pauseMs, () =>
    pause(forMs, context.signal),
  );
  context.print(
    `  at the default rate (${figure(perSecond)} operations per second): it adds p50 / p99 / p99.9 / max ${waitText(load)} ms to an operation`,
  );
}

/** Writes as many operations as an hour at 2,000 a second has, as fast as they go, and looks at the memory on the way. */
async function benchHour(context: BenchContext, operations: number): Promise<void> {
  checkGoing(context);
  const looks: number[] = [];
  const { perSecond, bytes, load } = await round(context, 'ledger-hour', 'normal', 0, async (running) => {
    while (running.operations < operations) {
      await pause(50, context.signal);
      if (running.operations < (operations * (looks.length + 1)) / memoryLooks) continue;
      looks.push(process.memoryUsage.rss() / 2 ** 20);
      context.say(`${figure(running.operations)} operations: ${figure(looks.at(-1) as number)} MiB`);
    }
  });
  context.print(
    `  ${figure(load.operations)} operations (an hour at 2,000 per second has 7.2 million) written at ${figure(perSecond)} per second: ${figure(bytes)} bytes each, resident memory ${looks.map((mib) => figure(mib)).join(', ')} MiB on the way`,
  );
}
