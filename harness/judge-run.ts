/** Judges a run in a thread of its own; and the preliminary report of the seconds after a signal. */
import { Worker } from 'node:worker_threads';
import type { RunFolder } from './results.ts';
import { emptyReport } from './report/empty-report.ts';
import { writeReportJson } from './report/write-report.ts';
import type { Tally } from './run/tally.ts';
import type { Judged } from './run/world.ts';
import { exitCodeOf } from './verdict.ts';

/** Judges the run in this folder, and writes its reports unless told not to. Rejects when the verifier fails, or when `signal` is aborted. */
export async function judgeRun(
  folder: RunFolder,
  signal: AbortSignal,
  { write }: { readonly write: boolean } = { write: true },
): Promise<Judged> {
  const worker = new Worker(new URL('./judge-thread.ts', import.meta.url), {
    workerData: { folder: folder.path, colour: process.stdout.isTTY === true, write },
  });
  const { promise, resolve, reject } = Promise.withResolvers<Judged>();
  const stop = (): void => reject(new Error('the verifier was stopped'));
  worker.once('message', resolve);
  worker.once('error', reject);
  worker.once('exit', (code) => reject(new Error(`the verifier ended with code ${code} and no verdict`)));
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', stop);
    await worker.terminate();
  }
}

/** Writes a report.json that says what is known at this moment, and that nothing has been judged yet. */
export async function writePreliminary(folder: RunFolder, tally: Tally, why: string): Promise<void> {
  const report = emptyReport();
  writeReportJson(folder.path, {
    ...report,
    run: { ...report.run, runId: folder.runId },
    verdict: {
      ...report.verdict,
      kind: 'interrupted',
      exitCode: exitCodeOf('interrupted'),
      headline: `The run is ${why}; nothing has been judged yet`,
      missing: ['The judgement is not complete.'],
      interruptedBy: why.replace('interrupted by ', ''),
    },
    strength: { ...report.strength, failovers: tally.failovers, handoffs: tally.handoffs },
    counts: { ...report.counts, acknowledgedWrites: tally.acknowledgedWrites },
  });
}
