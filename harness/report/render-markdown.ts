/** `report.md`, for the summary of a CI job: the first screen, then the tables that fit one. All outside text is escaped. */
import { firstScreen } from './first-screen.ts';
import { isUnplaced, whereNow } from './finding-words.ts';
import type { RunReport } from './model.ts';
import {
  escapeMarkdown,
  formatBytes,
  formatCount,
  formatDuration,
  formatOffset,
  formatWall,
  shortened,
  visible,
} from './text.ts';

/** Findings listed here; the page lists more. */
const findingsShown = 20;

const code = (text: string): string => `<code>${escapeMarkdown(text)}</code>`;

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  return [
    '',
    `| ${heads.join(' | ')} |`,
    `|${heads.map(() => ' --- |').join('')}`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
    '',
  ];
}

/** A fence longer than any run of backticks inside. */
function fenced(text: string): string[] {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((found) => found[0].length));
  const fence = '`'.repeat(longest + 1);
  return [`${fence}sh`, visible(text), fence];
}

function findings(report: RunReport): string[] {
  const { items, total } = report.findings;
  if (total === 0) return [];
  const shown = items.slice(0, findingsShown);
  const rows = shown.map((finding) => [
    escapeMarkdown(finding.id),
    finding.kind,
    code(shortened(finding.key, 60)),
    isUnplaced(finding) ? '–' : formatOffset(finding.operation.acknowledgedAtMs ?? finding.operation.invokedAtMs, true),
    escapeMarkdown(finding.node ?? '–'),
    finding.epoch === null ? '–' : String(finding.epoch),
    escapeMarkdown(whereNow(finding.replicas)),
  ]);
  return [
    '### Findings',
    ...table(['id', 'kind', 'key', 'acknowledged', 'by', 'epoch', 'value now'], rows),
    `${formatCount(shown.length)} of ${formatCount(total)} listed here; report.html lists more, with a page for each.`,
    '',
  ];
}

function tables(report: RunReport): string[] {
  const promises = report.promises.map((one) => [
    escapeMarkdown(one.title),
    `**${one.outcome}**`,
    escapeMarkdown(one.detail),
  ]);
  const gates = report.gates.map((one) => [code(one.expression), `**${one.outcome}**`, escapeMarkdown(one.detail)]);
  const recovery = report.recovery.map((row) => [
    escapeMarkdown(row.faultKind),
    String(row.faults),
    ...(row.firstAck === null ? ['–', '–'] : [formatDuration(row.firstAck.p50Ms), formatDuration(row.firstAck.p99Ms)]),
    row.healthy === null ? '–' : formatDuration(row.healthy.p99Ms),
    String(row.neverRecovered),
  ]);
  return [
    '### Promises',
    ...table(['promise', 'outcome', 'detail'], promises),
    ...(gates.length === 0 ? [] : ['### Gates', ...table(['fail if', 'outcome', 'found'], gates)]),
    ...(recovery.length === 0
      ? []
      : [
          '### Recovery',
          ...table(['fault', 'faults', 'first ack p50', 'first ack p99', 'healthy p99', 'never'], recovery),
        ]),
  ];
}

/** The whole summary as Markdown. */
export function renderMarkdown(report: RunReport): string {
  const screen = firstScreen(report);
  const { system, host, run } = report;
  const lines = [
    `## ${screen.sign} ${escapeMarkdown(`${screen.word} (${screen.first})`)}`,
    '',
    `**${escapeMarkdown(screen.headline)}**`,
    '',
    escapeMarkdown(screen.identity),
    '',
    ...(screen.nothingFound === null ? [] : [escapeMarkdown(screen.nothingFound)]),
    ...screen.losses.flatMap((loss) => [
      `- **${escapeMarkdown(loss.sentence)}**  `,
      `  ${escapeMarkdown(loss.under)}${loss.whereNow === '' ? '' : `  \n  Value now: ${escapeMarkdown(loss.whereNow)}`}`,
    ]),
    ...(screen.moreLosses === null ? [] : [`- ${escapeMarkdown(screen.moreLosses)}`]),
    ...(screen.missing.length === 0
      ? []
      : [
          '',
          report.verdict.kind === 'violated' ? '### Also wrong or missing' : '### Missing',
          '',
          ...screen.missing.map((one) => `- ${escapeMarkdown(one)}`),
        ]),
    '',
    '### Replay',
    '',
    ...fenced(screen.replay),
    '',
    escapeMarkdown(screen.replayNote),
    '',
    '### How strong',
    '',
    ...screen.strength.map((line) => `- ${escapeMarkdown(line)}`),
    ...table(
      ['', '', ''],
      screen.facts.map((fact) => [
        escapeMarkdown(fact.label),
        `**${escapeMarkdown(fact.value)}**`,
        escapeMarkdown(fact.note),
      ]),
    ),
    ...findings(report),
    ...tables(report),
    '### What this run did not test',
    '',
    ...report.limits.map((limit) => `- ${escapeMarkdown(limit)}`),
    '',
    `Run ${code(run.runId)}, ${formatWall(run.startedAt, 0)} UTC, build ${code(system.build)}, host ${escapeMarkdown(`${host.name} (${host.os}, ${host.cpus} cpus)`)}, ledger ${formatBytes(report.ledger.bytes)}, peak memory ${formatBytes(report.peakMemoryBytes)}.`,
  ];
  return `${lines.join('\n')}\n`;
}
