/**
 * Measurements of the ledger, by hand: `node ledger/testing/measure.ts write OPERATIONS` and
 * `node ledger/testing/measure.ts verify OPERATIONS KEYS THREADS`. Files go to the system's temporary folder and are removed.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Prng } from '../../lib/prng.ts';
import type { Completion, Operation } from '../../workloads/port.ts';
import { judgeLedger } from '../judge-ledger.ts';
import { openLedger } from '../ledger.ts';
import { encodeValue } from '../values.ts';
import { writeSyntheticLedger } from './synthetic-ledger.ts';

const sessions = 64;
const valueBytes = 100;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** 64 sessions, each awaiting its intent before it goes on: the rate of a store that answers at once. */
async function measureWrites(path: string, operations: number): Promise<void> {
  const ledger = await openLedger({ path, runTag: 'measure', minFreeBytes: 0 });
  const prng = new Prng(1);
  const waitsMs: number[] = [];
  let started = 0;
  let seq = 0;
  const run = async (session: number): Promise<void> => {
    while (started < operations) {
      const operationId = ++started;
      const key = `r${prng.below(100_000)}`;
      const operation: Operation = prng.chance(0.5)
        ? { f: 'read', key }
        : { f: 'write', key, value: encodeValue('measure', operationId, valueBytes) };
      const beforeMs = performance.now();
      await ledger.intent({ operationId, session, operation, atNs: ledger.nowNs() });
      waitsMs.push(performance.now() - beforeMs);
      const invokeNs = ledger.nowNs();
      const served = { partition: 7, epoch: 9, node: 'n1', attempts: 1 };
      const completion: Completion =
        operation.f === 'read'
          ? { kind: 'ok', value: null, ...served }
          : { kind: 'ok', version: [3, ++seq], ...served };
      void ledger.outcome({ session, completion, invokeNs, returnNs: ledger.nowNs() });
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: sessions }, (_, session) => run(session)));
  await ledger.flush();
  const seconds = (performance.now() - startedMs) / 1_000;
  const rssMib = Math.round(process.memoryUsage.rss() / 2 ** 20);
  await ledger.close();
  waitsMs.sort((a, b) => a - b);
  const at = (share: number): string =>
    (waitsMs[Math.min(waitsMs.length - 1, Math.floor(waitsMs.length * share))] ?? 0).toFixed(2);
  const cpu = process.cpuUsage();
  say(
    `${Math.round(operations / seconds)} operations/s with intent before send, ${sessions} sessions; ${(statSync(path).size / operations).toFixed(1)} bytes each`,
  );
  say(
    `wait for the intent, ms: p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}, max ${at(1)}; rss ${rssMib} MiB; CPU ${((cpu.user + cpu.system) / operations).toFixed(1)} µs/operation`,
  );
}

async function measureVerification(path: string, operations: number, keys: number, threads: number): Promise<void> {
  writeSyntheticLedger(path, { operations, keys, sessions, seed: 1 });
  say(
    `${operations} operations on ${keys} keys: ${(statSync(path).size / operations).toFixed(1)} bytes each, read-backs included`,
  );
  const beforeCpu = process.cpuUsage();
  const startedMs = performance.now();
  const judgement = await judgeLedger(
    path,
    {
      ttlLateBoundNs: 60e9,
      minAckedInFaultWindows: 0,
      replicasPerKey: 3,
      promises: { maxAttempts: 3, deadlineNs: 60e9 },
      recoveryBoundNs: 60e9,
      mayExceedBudget: false,
      mayLosePartitions: false,
      searchMsPerKey: 1_000,
      searchMemoBytes: 1 << 26,
    },
    threads,
  );
  const seconds = (performance.now() - startedMs) / 1_000;
  const cpu = process.cpuUsage(beforeCpu);
  say(
    `${judgement.verdict}; ${(operations / seconds / 1e6).toFixed(3)} million operations/s on ${threads} threads; CPU ${((cpu.user + cpu.system) / operations).toFixed(2)} µs/operation; peak rss ${Math.round(process.resourceUsage().maxRSS / 1_024)} MiB; longest history ${judgement.counts.longestHistory}`,
  );
}

const [what, operations = '1000000', keys = '100000', threads = '2'] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'ledger-measure-'));
try {
  if (what === 'write') await measureWrites(join(folder, 'ledger.sqlite'), Number(operations));
  else if (what === 'verify')
    await measureVerification(join(folder, 'ledger.sqlite'), Number(operations), Number(keys), Number(threads));
  else say('usage: node ledger/testing/measure.ts write|verify [OPERATIONS] [KEYS] [THREADS]');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
