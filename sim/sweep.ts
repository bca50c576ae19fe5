/**
 * A sweep: many seeds over worker threads. A share of them plays twice and must give the same trace hash.
 *
 * Invariant: every seed ends as passed or as a failure with its replay command; a thread that dies, or a simulator that
 * throws, is a failure of its seed, never a seed fewer.
 */
import { Worker } from 'node:worker_threads';
import { Coverage } from './coverage.ts';
import type { Pins } from './options.ts';
import type { Outcome, OutcomeKind } from './outcome.ts';

export interface SweepTask {
  readonly seed: number;
  readonly pins: Pins;
  readonly isTwice: boolean;
}

export type SweepReply =
  | { readonly kind: 'played'; readonly outcome: Outcome; readonly secondHash: string | null }
  | { readonly kind: 'broke'; readonly seed: number; readonly why: string };

export interface SweepFailure {
  readonly seed: number;
  readonly kind: OutcomeKind | 'not-deterministic' | 'simulator-fault';
  readonly reasons: readonly string[];
  /** One line that plays it again. */
  readonly replay: string;
}

export interface SweepOptions {
  readonly seeds: readonly number[];
  readonly pins: Pins;
  readonly jobs: number;
  /** Ends the sweep at the first failure. */
  readonly stopAtFirst: boolean;
  /** Aborted: no further seed is started. */
  readonly interrupted?: AbortSignal;
  readonly onPlayed?: (progress: SweepTotals) => void;
}

export interface SweepTotals {
  seeds: number;
  passed: number;
  operations: number;
  acknowledgedWrites: number;
  confirmedFaults: number;
  failovers: number;
  handoffs: number;
  exposed: number;
  virtualMs: number;
  events: number;
  /** Sum over the threads. */
  workMs: number;
  playedTwice: number;
  readonly failures: SweepFailure[];
  readonly coverage: Coverage;
}

/** Young objects are many and short-lived: a larger nursery spares collections. */
const nurseryMb = 128;
/** Every so many seeds one plays twice. */
const twiceEvery = 16;

/** The command that plays a seed again. */
export function replayCommand(seed: number, pins: Pins): string {
  const words = Object.entries(pins).map(([name, value]) => ` --pin ${name}=${value}`);
  return `npm run certify -- sim --seed ${seed}${words.join('')}`;
}

/** Plays all seeds (or up to the first failure); resolves with the totals. */
export async function sweep(options: SweepOptions): Promise<SweepTotals> {
  const totals: SweepTotals = {
    seeds: 0,
    passed: 0,
    operations: 0,
    acknowledgedWrites: 0,
    confirmedFaults: 0,
    failovers: 0,
    handoffs: 0,
    exposed: 0,
    virtualMs: 0,
    events: 0,
    workMs: 0,
    playedTwice: 0,
    failures: [],
    coverage: new Coverage(),
  };
  const tasks = options.seeds.values().map((seed, index): SweepTask => ({
    seed,
    pins: options.pins,
    isTwice: index % twiceEvery === 0,
  }));
  const next = (): SweepTask | null => {
    if (options.interrupted?.aborted === true || (options.stopAtFirst && totals.failures.length > 0)) return null;
    const step = tasks.next();
    return step.done === true ? null : step.value;
  };
  const jobs = Math.max(1, Math.min(options.jobs, options.seeds.length));
  await Promise.all(
    Array.from({ length: jobs }, () =>
      work(next, (reply) => {
        count(totals, reply, options.pins);
        options.onPlayed?.(totals);
      }),
    ),
  );
  totals.failures.sort((a, b) => a.seed - b.seed);
  return totals;
}

async function work(next: () => SweepTask | null, done: (reply: SweepReply) => void): Promise<void> {
  let worker: Worker | null = null;
  for (let task = next(); task !== null; task = next()) {
    worker ??= new Worker(new URL('./sweep-worker.ts', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: nurseryMb },
    });
    const reply = await played(worker, task);
    done(reply);
    // A thread that broke may be in any state.
    if (reply.kind === 'broke') {
      await worker.terminate();
      worker = null;
    }
  }
  await worker?.terminate();
}

function played(worker: Worker, task: SweepTask): Promise<SweepReply> {
  return new Promise((resolve) => {
    const onMessage = (reply: SweepReply): void => end(reply);
    const onError = (error: Error): void => end({ kind: 'broke', seed: task.seed, why: error.message });
    const onExit = (code: number): void =>
      end({ kind: 'broke', seed: task.seed, why: `the thread ended with code ${code}` });
    const end = (reply: SweepReply): void => {
      worker.off('message', onMessage).off('error', onError).off('exit', onExit);
      resolve(reply);
    };
    worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    worker.postMessage(task);
  });
}

function count(totals: SweepTotals, reply: SweepReply, pins: Pins): void {
  totals.seeds += 1;
  const fail = (seed: number, kind: SweepFailure['kind'], reasons: readonly string[]): void => {
    totals.failures.push({ seed, kind, reasons, replay: replayCommand(seed, pins) });
  };
  if (reply.kind === 'broke') return fail(reply.seed, 'simulator-fault', [reply.why]);
  const { outcome, secondHash } = reply;
  for (const name of [
    'operations',
    'acknowledgedWrites',
    'confirmedFaults',
    'failovers',
    'handoffs',
    'exposed',
    'virtualMs',
    'events',
  ] as const)
    totals[name] += outcome[name];
  totals.workMs += outcome.wallMs;
  totals.coverage.add(outcome.coverage);
  if (secondHash !== null) totals.playedTwice += 1;
  if (secondHash !== null && secondHash !== outcome.traceHash) {
    fail(outcome.seed, 'not-deterministic', [
      `played twice it gave the trace hashes ${outcome.traceHash} and ${secondHash}`,
    ]);
  } else if (outcome.kind === 'passed') totals.passed += 1;
  else fail(outcome.seed, outcome.kind, outcome.reasons);
}
