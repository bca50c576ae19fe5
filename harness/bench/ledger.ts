/** What the ledger itself can take: operations per second with intent and outcome of each on disk, by 64 sessions that do nothing else. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type Ledger, openLedger } from '../../ledger/ledger.ts';
import { encodeValue } from '../../ledger/values.ts';
import type { Completion, Operation } from '../../workloads/port.ts';
import { type BenchContext, checkGoing, pause } from './bench-context.ts';
import { figure, spreadOf, spreadText } from './statistics.ts';

const sessions = 64;
const valueBytes = 100;
const keysPerSession = 500;
const runTag = 'bench';
const plans = { full: { rounds: 5, measureMs: 8_000 }, quick: { rounds: 2, measureMs: 1_500 } } as const;

/** One session: write, then read it, each operation with its intent committed first. */
async function session(ledger: Ledger, index: number, isOver: () => boolean): Promise<number> {
  let operations = 0;
  let value = '';
  for (let turn = 0; !isOver(); turn++) {
    const operationId = ledger.nextOperationId();
    const key = `k${index}-${(turn >> 1) % keysPerSession}`;
    const isWrite = turn % 2 === 0;
    if (isWrite) value = encodeValue(runTag, operationId, valueBytes);
    const operation: Operation = isWrite ? { f: 'write', key, value } : { f: 'read', key };
    await ledger.intent({ operationId, session: index, operation, atNs: ledger.nowNs() });
    const invokeNs = ledger.nowNs();
    const served = {
      partition: index,
      epoch: 1,
      node: `n${1 + (index % 5)}`,
      attempts: 1,
      version: [1, turn + 1] as const,
    };
    const completion: Completion = isWrite ? { kind: 'ok', ...served } : { kind: 'ok', value, ...served };
    // Not awaited: the next intent's commit covers it.
    void ledger.outcome({ session: index, completion, invokeNs, returnNs: ledger.nowNs() });
    operations++;
  }
  return operations;
}

async function round(
  context: BenchContext,
  name: string,
  sync: 'normal' | 'full',
  measureMs: number,
): Promise<[number, number]> {
  const path = join(context.workDir, `${name}.sqlite`);
  const ledger = await openLedger({ path, runTag, sync });
  let isOver = false;
  const sinceMs = performance.now();
  const running = Array.from({ length: sessions }, (_, index) => session(ledger, index, () => isOver));
  try {
    await pause(measureMs, context.signal);
  } finally {
    isOver = true;
  }
  const counts = await Promise.all(running);
  await ledger.flush();
  const seconds = (performance.now() - sinceMs) / 1000;
  await ledger.close();
  const operations = counts.reduce((sum, count) => sum + count, 0);
  return [operations / seconds, statSync(path).size / operations];
}

/** Measures both ways of syncing and prints rates and bytes. */
export async function benchLedger(context: BenchContext): Promise<void> {
  const plan = context.isQuick ? plans.quick : plans.full;
  context.print(
    `${sessions} sessions, each operation (half writes of ${valueBytes} bytes, half reads) with its intent committed before and its outcome after; ${plan.rounds} rounds of ${plan.measureMs / 1000} s each way, in turns.`,
  );
  const results = { normal: [] as [number, number][], full: [] as [number, number][] };
  for (let index = 0; index < plan.rounds; index++) {
    for (const sync of ['normal', 'full'] as const) {
      checkGoing(context);
      const result = await round(context, `ledger-${sync}-${index}`, sync, plan.measureMs);
      results[sync].push(result);
      context.say(`${sync}, round ${index + 1}: ${figure(result[0])}/s`);
    }
  }
  const describe = {
    normal: 'survives kill -9 (the default)',
    full: 'survives power loss too (--ledger-sync full)',
  } as const;
  for (const sync of ['normal', 'full'] as const) {
    const rates = spreadOf(results[sync].map(([rate]) => rate));
    const bytes = spreadOf(results[sync].map(([, size]) => size));
    context.print(
      `  ${describe[sync]}: ${spreadText(rates)} operations per second, ${spreadText(bytes)} bytes each in the file`,
    );
  }
}
