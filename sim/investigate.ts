/**
 * From a failing seed to something that a person can read: the run reduced, kept as a counterexample, and traced around the
 * moment at which it went wrong.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrokenStore } from './broken/store.ts';
import type { Counterexample } from './counterexample.ts';
import { outcomeOf } from './outcome.ts';
import type { SimResult } from './job.ts';
import { SimOptionError } from './options.ts';
import { runSim } from './run-seed.ts';
import { catchOf } from './selftest.ts';
import { type Candidate, shrink, type Shrunk } from './shrink.ts';
import { TraceRecorder, traceLines } from './trace.ts';
import { traceHtml } from './trace-html.ts';
import { CircleError } from './trace-hash.ts';

/** What a run did wrong, as a stable word: the same word means the same failure. Null: nothing. */
export function failureOf(result: SimResult, store: BrokenStore | undefined): string | null {
  if (store !== undefined) return catchOf(store, result) === null ? null : 'caught';
  const { kind } = outcomeOf(result);
  return kind === 'passed' || kind === 'overshoot' || kind === 'no-evidence' ? null : kind;
}

/** Virtual time of the load (ms) by which it had failed; the end of the load where no moment can be named. */
export function failedAtMs(result: SimResult): number {
  const load = result.phases.find(({ name }) => name === 'load');
  if (load === undefined) return 0;
  const times = [
    ...result.judgement.findings.map(
      (finding) => Math.min(finding.operation?.invokeNs ?? Infinity, finding.witness?.atNs ?? Infinity) / 1e6,
    ),
    ...result.breaches.map(({ atMs }) => atMs),
  ];
  return Math.max(0, Math.min(load.toMs, ...times) - load.fromMs);
}

export interface ShrinkRequest {
  readonly first: Candidate;
  readonly store?: BrokenStore;
  readonly maxRuns: number;
  readonly boundMs: number;
  readonly print: (line: string) => void;
}

/** Reduces a failing run. Rejects with SimOptionError where it does not fail. */
export async function shrinkFailure(request: ShrinkRequest): Promise<Shrunk & { readonly failure: string }> {
  const { first, store, print } = request;
  const play = (candidate: Candidate): Promise<SimResult> =>
    runSim({ ...candidate, checkers: store === undefined, ...(store === undefined ? {} : { store }) });
  const result = await play(first);
  const failure = failureOf(result, store);
  if (failure === null) {
    const end = store === undefined ? `does not fail (${outcomeOf(result).kind})` : 'does not catch that store';
    throw new SimOptionError(`Seed ${first.seed} ${end} with these options, so there is nothing to reduce.`);
  }
  const fails = async (candidate: Candidate): Promise<number | null> => {
    try {
      const result = await play(candidate);
      return failureOf(result, store) === failure ? failedAtMs(result) : null;
    } catch (error) {
      if (error instanceof CircleError) return null;
      throw error;
    }
  };
  const shrunk = await shrink(first, {
    fails,
    maxRuns: request.maxRuns,
    boundMs: request.boundMs,
    onSmaller: ({ schedule, options }, what) =>
      print(
        `smaller (${what}): ${schedule.events.length} events, ${(options.durationMs / 1_000).toFixed(1)} s, ${options.sessions} sessions`,
      ),
  });
  return { ...shrunk, failure };
}

/** Partition that the first broken invariant names; null where it names none. */
function partitionOfBreach({ breaches }: SimResult): number | null {
  const named = /partition (\d+)/.exec(breaches[0]?.why ?? '');
  return named === null ? null : Number(named[1]);
}

/** Time shown before and after the moment of failure, ms. */
const shownBeforeMs = 4_000;
const shownAfterMs = 1_500;

/** Plays a counterexample and writes its trace as NAME.txt and NAME.html. Returns the paths. */
export async function traceCounterexample(
  example: Counterexample,
  store: BrokenStore | undefined,
  folder: string,
): Promise<string[]> {
  const { seed, options, schedule } = example;
  const job = { seed, options, schedule, checkers: store === undefined, ...(store === undefined ? {} : { store }) };
  const first = await runSim(job);
  const load = first.phases.find(({ name }) => name === 'load');
  const atMs = failedAtMs(first) + (load?.fromMs ?? 0);
  const finding = first.judgement.findings[0];
  const toMs = Math.max(
    atMs + shownAfterMs,
    finding?.witness === null || finding?.witness === undefined
      ? 0
      : Math.min(finding.witness.atNs / 1e6, atMs + 2 * shownBeforeMs),
  );
  let recorder: TraceRecorder | null = null;
  const result = await runSim({
    ...job,
    onWorld: (world) => {
      recorder = new TraceRecorder(world, {
        fromMs: Math.max(0, atMs - shownBeforeMs),
        toMs,
        partition: finding?.partition ?? partitionOfBreach(first),
      });
    },
  });
  if (recorder === null) return [];
  const trace = (recorder as TraceRecorder).finish(result, finding?.key ?? null);
  const title = `${example.name}: ${example.note}`;
  const paths = [join(folder, `${example.name}.txt`), join(folder, `${example.name}.html`)];
  writeFileSync(
    paths[0] as string,
    `${title}\nseed ${example.seed}, trace ${result.traceHash}\n\n${traceLines(trace).join('\n')}\n`,
  );
  writeFileSync(paths[1] as string, traceHtml(trace, title));
  return paths;
}
