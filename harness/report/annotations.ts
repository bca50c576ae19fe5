/** What GitHub Actions shows beside a job: annotations on standard output and the job summary. Silent elsewhere. */
import { appendFileSync } from 'node:fs';
import { firstScreen } from './first-screen.ts';
import type { RunReport } from './model.ts';
import { visible } from './text.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const data = (text: string): string => visible(text).replace(/%/g, '%25');
const property = (text: string): string => data(text).replace(/:/g, '%3A').replace(/,/g, '%2C');

/** Workflow commands, one a line; none unless GITHUB_ACTIONS is "true". */
export function githubAnnotations(report: RunReport, environment: Environment): string[] {
  if (environment['GITHUB_ACTIONS'] !== 'true') return [];
  const screen = firstScreen(report);
  const level = screen.tone === 'good' ? 'notice' : screen.tone === 'unsure' ? 'warning' : 'error';
  const line = (title: string, text: string): string => `::${level} title=${property(title)}::${data(text)}`;
  return [
    line(screen.word, `${screen.headline}. Replay: ${screen.replay}`),
    ...screen.losses.map((loss) =>
      line(
        loss.sentence,
        [loss.under, loss.whereNow === '' ? '' : `value now: ${loss.whereNow}`]
          .filter((part) => part !== '')
          .join('; '),
      ),
    ),
    ...screen.missing.map((missing) => line('Missing', missing)),
  ];
}

/** Appends the Markdown to the job summary when GitHub names a file for it; says whether it did. */
export function appendJobSummary(markdown: string, environment: Environment): boolean {
  const path = environment['GITHUB_STEP_SUMMARY'];
  if (environment['GITHUB_ACTIONS'] !== 'true' || path === undefined || path === '') return false;
  appendFileSync(path, markdown);
  return true;
}
