/** `certify compare RUN RUN …`: prints the runs side by side, and writes the same as Markdown and as a page. */
import { join } from 'node:path';
import { messageOf, UsageError } from '../errors.ts';
import { compareHtml, compareMarkdown, compareRuns } from '../report/compare-runs.ts';
import { findRun } from '../report/list-runs.ts';
import { writeWhole } from '../results.ts';

const fewestRuns = 2;

export interface CompareWish {
  readonly runs: readonly string[];
  readonly resultsDir: string;
  /** Path of the files, without their endings; null: `compare` in the results folder. */
  readonly out: string | null;
}

/** Returns 0; a comparison passes no judgement. Throws UsageError for a run that is not there. */
export function compareCommand({ runs, resultsDir, out }: CompareWish): number {
  if (runs.length < fewestRuns)
    throw new UsageError('A comparison needs at least two runs; "certify list" shows what there is.');
  const reports = runs.map((name) => {
    try {
      return findRun(resultsDir, name).report;
    } catch (error) {
      throw new UsageError(
        `The run "${name}" cannot be compared (${messageOf(error)}); "certify list" shows what there is.`,
      );
    }
  });
  const comparison = compareRuns(reports);
  const text = compareMarkdown(comparison);
  const path = out ?? join(resultsDir, 'compare');
  writeWhole(`${path}.md`, text);
  writeWhole(`${path}.html`, compareHtml(comparison));
  process.stdout.write(`${text}\nWritten to ${path}.md and ${path}.html\n`);
  return 0;
}
