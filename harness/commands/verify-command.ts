/** `certify verify` and `certify report`: what can be done with a run that is over. */
import { messageOf, UsageError } from '../errors.ts';
import { judgeRun } from '../judge-run.ts';
import { openRunFolder, writeVerdict } from '../results.ts';
import { renderLastLines } from '../report/render-lines.ts';
import { renderAgain } from '../report/write-report.ts';
import { join } from 'node:path';

/** Judges a run again from its ledger alone, and writes its reports anew. Returns the exit code of the verdict. */
export async function verifyCommand(resultsDir: string, run: string): Promise<number> {
  const folder = openRunFolder(resultsDir, run);
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
