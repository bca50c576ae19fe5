/**
 * What `certify verify` takes: ledgers of 1, 10 and 50 million operations on 100,000 keys, made in bulk, each judged by the command
 * itself in a process of its own. CPU time beside wall time, since a shared machine makes the latter say little.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { operationColumns } from '../../ledger/schema.ts';
import {
  type SyntheticLedger,
  syntheticCopies,
  syntheticNodes,
  syntheticPartitions,
  writeSyntheticLedger,
} from '../../ledger/testing/synthetic-ledger.ts';
import { parseCommandLine } from '../cli.ts';
import { storedSettings } from '../stored-settings.ts';
import { zaris } from '../systems/zaris.ts';
import { type BenchContext, checkGoing } from './bench-context.ts';
import { cpuSeconds } from './cpu-time.ts';
import { figure } from './statistics.ts';

const keys = 100_000;
const sessions = 64;
const plans = { full: [1_000_000, 10_000_000, 50_000_000], quick: [1_000_000] } as const;
const program = join(import.meta.dirname, '..', 'main.ts');
/** How often the process is looked at; what it used since the last look is not counted, ms. */
const lookEveryMs = 50;

/** Everything that a run writes beside its operations, so that the command has all it looks for. */
async function metaOf(resultsDir: string): Promise<(made: SyntheticLedger) => Record<string, unknown>> {
  const words = ['--cluster', 'process', '--results', resultsDir, '--seed', '1', '--rate', '14000'];
  const command = await parseCommandLine(words, '0');
  if (command.kind !== 'run') throw new Error(`not a run but ${command.kind}`);
  const { settings } = command;
  const plan = {
    clusterId: 'bench',
    nodeCount: syntheticNodes,
    replicationFactor: syntheticCopies,
    minInSync: 2,
    partitionCount: syntheticPartitions,
  };
  return (made) => ({
    settings: { ...storedSettings(settings), durationMs: Math.max(5_000, Math.round(made.loadNs / 1e6)) },
    runId: 'bench',
    runTag: 'bench',
    plan,
    origin: { bootId: 'bench', monotonicNs: '0', wallMs: Date.now() },
    facts: {
      build: 'synthetic',
      engine: null,
      versions: [],
      name: zaris.name,
      replicationFactor: syntheticCopies,
      minInSync: 2,
      partitions: syntheticPartitions,
      contract: zaris.contract(plan),
      capabilities: zaris.capabilities,
      promises: zaris.clientPromises,
      peek: true,
    },
    'phase:load': { fromNs: 2e9, toNs: 2e9 + made.loadNs },
    canary: made.canaries.map((key) => ({ key, kind: 'lost' })),
    written: {
      intents: made.operations,
      operations: made.operations,
      finalReads: made.finalReads,
      replicaReads: made.replicaReads,
      faults: made.faults,
      epochChanges: made.epochChanges,
    },
    end: {
      interruptedBy: null,
      reasons: [],
      readBack: { expected: made.finalReads, done: made.finalReads },
      replicas: { asked: made.replicaReads, answered: made.replicaReads },
      canaryDeleted: made.canaries,
      canarySeenLive: made.canaries,
      peakMemoryBytes: 0,
    },
    endedAtNs: made.endNs,
  });
}

interface Verified {
  readonly verdict: string;
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
  readonly peakMib: number;
}

/** Runs `certify verify` on a results folder. */
async function verify(context: BenchContext, resultsDir: string): Promise<Verified> {
  const sinceMs = performance.now();
  const child = spawn(process.execPath, [program, 'verify', 'bench', '--results', resultsDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
    signal: context.signal,
  });
  let out = '';
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  // The kernel's own account of a process that is still there: its peak, and what it used.
  let seen = { cpuSeconds: 0, peakKib: 0 };
  const timer = setInterval(() => (seen = accountOf(child.pid as number) ?? seen), lookEveryMs);
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => resolve());
  });
  clearInterval(timer);
  const wallSeconds = (performance.now() - sinceMs) / 1_000;
  const verdict = out.split('\n').find((line) => line.trim() !== '') ?? 'no verdict';
  return { verdict, wallSeconds, cpuSeconds: seen.cpuSeconds, peakMib: seen.peakKib / 1_024 };
}

/** CPU time of a process, and the most memory that it ever had; null once it is gone. */
function accountOf(pid: number): { readonly cpuSeconds: number; readonly peakKib: number } | null {
  const used = cpuSeconds(pid);
  if (used === null) return null;
  try {
    const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return peak === undefined ? null : { cpuSeconds: used, peakKib: Number(peak) };
  } catch {
    return null;
  }
}

/** Makes and judges a ledger of each size, and one of the smallest size from which a write is missing. */
export async function benchVerifyScale(context: BenchContext): Promise<void> {
  const sizes = context.isQuick ? plans.quick : plans.full;
  const cases = [
    { operations: 1_000_000, losesOne: true },
    ...sizes.map((operations) => ({ operations, losesOne: false })),
  ];
  context.print(
    `Ledgers of ${keys.toLocaleString('en-US')} keys: registers, compare-and-set chains, unique keys, churn, counters, a kill every 20 s; ${operationColumns.length} columns per operation in one plain table; judged by "certify verify" in a process of its own.`,
  );
  for (const { operations, losesOne } of cases) {
    checkGoing(context);
    const resultsDir = join(context.workDir, `scale-${operations}`);
    const folder = join(resultsDir, 'bench');
    mkdirSync(folder, { recursive: true });
    const path = join(folder, 'ledger.sqlite');
    context.say(`making ${operations.toLocaleString('en-US')} operations`);
    const made = writeSyntheticLedger(path, {
      operations,
      keys,
      sessions,
      seed: 1,
      losesOne,
      meta: await metaOf(resultsDir),
    });
    const bytes = statSync(path).size;
    checkGoing(context);
    context.say(`judging ${operations.toLocaleString('en-US')} operations`);
    const judged = await verify(context, resultsDir);
    rmSync(resultsDir, { recursive: true });
    const rows = made.operations + made.finalReads + made.replicaReads;
    context.print(
      [
        `  ${operations.toLocaleString('en-US')} operations${losesOne ? ', one acknowledged write missing' : ''} (${figure(rows / operations)} rows and ${figure(bytes / operations)} bytes each, read-backs and replicas' answers included):`,
        `    CPU ${figure((judged.cpuSeconds / operations) * 1e6)} µs per operation, ${figure(operations / judged.wallSeconds)} operations per second of wall time (${figure(judged.wallSeconds)} s), peak memory ${figure(judged.peakMib)} MiB`,
        `    ${judged.verdict}`,
      ].join('\n'),
    );
  }
}
