/** `certify verify` and `certify report`: what can be done with a run that is over. */
import { messageOf, UsageError } from '../errors.ts';
import { judgeRun } from '../judge-run.ts';
import { changedSinceCertified } from '../certificate.ts';
import { openRunFolder, type RunFolder, writeVerdict } from '../results.ts';
import { exitCodeOf } from '../verdict.ts';
import { renderLastLines } from '../report/render-lines.ts';
import { renderAgain } from '../report/write-report.ts';
import { join } from 'node:path';

/**
 * Judges a run again from its ledger alone, and writes its reports anew. Returns the exit code of the verdict. Where the ledger is
 * not the one that the certificate beside it was made for, nothing is written, and what would have passed is inconclusive: a run
 * that was edited must not be certified by asking once more.
 */
export async function verifyCommand(resultsDir: string, run: string): Promise<number> {
  const folder = openRunFolder(resultsDir, run);
  const changed = changedSinceCertified(folder.path);
  if (changed.length > 0) return judgeChanged(folder, changed);
  const judged = await judgeRun(folder, new AbortController().signal);
  writeVerdict(folder, {
    runId: folder.runId,
    verdict: judged.verdict,
    exitCode: judged.exitCode,
    headline: judged.headline,
  });
  process.stdout.write(`${judged.lines.join('\n')}\n`);
  return judged.exitCode;
}

async function judgeChanged(folder: RunFolder, changed: readonly string[]): Promise<number> {
  process.stdout.write(
    `The run was changed after it was certified; nothing is claimed for it, and no file is written:\n`,
  );
  for (const sentence of changed) process.stdout.write(`  ${sentence}\n`);
  let judged;
  try {
    judged = await judgeRun(folder, new AbortController().signal, { write: false });
  } catch (error) {
    process.stdout.write(`It cannot be judged any more: ${messageOf(error).replace(/\.$/, '')}.\n`);
    return exitCodeOf('inconclusive');
  }
  const { exitCode, headline } = judged;
  process.stdout.write(`As it is now it would be judged ${judged.verdict}: ${headline.replace(/\.$/, '')}.\n`);
  return exitCode === 0 ? exitCodeOf('inconclusive') : exitCode;
}

/** Renders the reports of a run again from its report.json. */
export function reportCommand(resultsDir: string, run: string): number {
  const folder = openRunFolder(resultsDir, run);
  try {
    const report = renderAgain(folder.path);
    process.stdout.write(
      `${renderLastLines(report, { colour: process.stdout.isTTY === true, reportPath: join(folder.path, 'report.html') }).join('\n')}\n`,
    );
    return 0;
  } catch (error) {
    throw new UsageError(
      `The report of ${run} cannot be rendered (${messageOf(error)}); "certify verify ${run}" judges the ledger again.`,
    );
  }
}
