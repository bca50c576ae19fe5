/** The last lines of standard output: the first screen as text, in the same words. */
import picocolors from 'picocolors';
import { firstScreen, type Tone } from './first-screen.ts';
import type { RunReport } from './model.ts';
import { visible } from './text.ts';

export interface LineOptions {
  /** Colours only where the output is a terminal that has them. */
  readonly colour: boolean;
  /** Where report.html lies, for the last line; null when there is none. */
  readonly reportPath: string | null;
}

type Paint = (text: string) => string;

/** At most about 25 lines; every one safe to print. */
export function renderLastLines(report: RunReport, options: LineOptions): string[] {
  const screen = firstScreen(report);
  const colours = picocolors.createColors(options.colour);
  const paints: Readonly<Record<Tone, Paint>> = {
    good: colours.green,
    bad: colours.red,
    unwell: colours.magenta,
    unsure: colours.yellow,
  };
  const tone = paints[screen.tone];
  const quiet = (text: string): string => colours.dim(visible(text));
  const lines = [
    '',
    tone(colours.bold(visible(`${screen.sign} ${screen.word}  (${screen.first})`))),
    colours.bold(visible(screen.headline)),
    quiet(screen.identity),
    '',
  ];
  for (const loss of screen.losses) {
    lines.push(`  ${tone('•')} ${visible(loss.sentence)}`, `    ${quiet(loss.under)}`);
    if (loss.whereNow !== '') lines.push(`    value now: ${visible(loss.whereNow)}`);
  }
  if (screen.moreLosses !== null) lines.push(`    ${visible(screen.moreLosses)}`);
  if (screen.nothingFound !== null) lines.push(`  ${visible(screen.nothingFound)}`);
  for (const missing of screen.missing) lines.push(`  ${tone('!')} ${visible(missing)}`);
  if (lines.at(-1) !== '') lines.push('');
  lines.push(visible(screen.facts.map((fact) => `${fact.label} ${fact.value}`).join(' · ')));
  lines.push(...screen.strength.map(visible));
  lines.push('', `replay: ${colours.bold(visible(screen.replay))}`);
  if (options.reportPath !== null) lines.push(`report: ${visible(options.reportPath)}`);
  return lines;
}
