/** `certify list`: the runs in the results folder, with their verdicts. */
import { join } from 'node:path';
import Table from 'cli-table3';
import { listRuns, readVerdict } from '../results.ts';

/** Prints a table, oldest run first. */
export function listCommand(resultsDir: string): number {
  const runs = listRuns(resultsDir);
  if (runs.length === 0) {
    process.stdout.write(`There are no runs in ${resultsDir}.\n`);
    return 0;
  }
  const table = new Table({
    head: ['run', 'verdict', 'exit', 'headline'],
    style: { head: [], border: [] },
    wordWrap: true,
    colWidths: [36, 16, 6, 70],
  });
  for (const runId of runs) {
    const verdict = readVerdict(join(resultsDir, runId, 'verdict.json'));
    table.push([
      runId,
      verdict?.verdict ?? 'none',
      verdict === null ? '' : String(verdict.exitCode),
      verdict?.headline ?? 'ended without a verdict; "certify verify" judges what there is',
    ]);
  }
  process.stdout.write(`${table.toString()}\n`);
  return 0;
}
