/** Judges a run in a thread of its own; and the preliminary report of the seconds after a signal. */
import { Worker } from 'node:worker_threads';
import type { RunFolder } from './results.ts';
import { type Meta, runPart } from './assemble/head-part.ts';
import { emptyReport } from './report/empty-report.ts';
import { writeReportJson } from './report/write-report.ts';
import type { RunReport } from './report/model.ts';
import type { RunSettings } from './settings.ts';
import { storedSettings } from './stored-settings.ts';
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

/** Writes a report.json that says what is known at this moment, losses that the live check saw among it, and that nothing has been judged yet. */
export async function writePreliminary(
  folder: RunFolder,
  settings: RunSettings,
  tally: Tally,
  why: string,
): Promise<void> {
  const report = emptyReport();
  const { losses } = tally;
  const known = losses === 0 ? '' : `; so far ${losses} acknowledged writes were seen missing`;
  writeReportJson(folder.path, {
    ...report,
    run: runSoFar(folder, settings),
    system: { ...report.system, name: settings.system, replicationFactor: settings.replicationFactor },
    verdict: {
      ...report.verdict,
      kind: 'interrupted',
      exitCode: exitCodeOf('interrupted'),
      headline: `The run is ${why}${known}; nothing has been judged yet`,
      missing: ['The judgement is not complete.'],
      interruptedBy: why.replace('interrupted by ', ''),
    },
    findings: { ...report.findings, total: losses, totals: losses === 0 ? [] : [{ kind: 'lost', count: losses }] },
    strength: { ...report.strength, failovers: tally.failovers, handoffs: tally.handoffs },
    counts: { ...report.counts, acknowledgedWrites: tally.acknowledgedWrites },
  });
}

/** What can be said of the run without its ledger; the time of its start stands in its id. */
function runSoFar({ runId }: RunFolder, settings: RunSettings): RunReport['run'] {
  const [, day, time] = /^(\d{8})-(\d{6})-/.exec(runId) ?? [];
  const digits = `${day ?? '19700101'}${time ?? '000000'}`;
  const iso = digits.replace(/^(....)(..)(..)(..)(..)(..)$/, '$1-$2-$3T$4:$5:$6.000Z');
  const meta: Meta = (key) =>
    ({
      runId,
      settings: storedSettings(settings),
      origin: { wallMs: Date.parse(iso) },
    })[key];
  return { ...runPart(meta, Math.max(0, Date.now() - Date.parse(iso)) * 1e6), endedAt: null };
}
