/**
 * `certify compare A B …`: several systems side by side, from their reports: what each promises, what it lost, how long it took to
 * come back from each kind of fault, and which promises held.
 *
 * Invariant: a number stands in the table only where its run has it; runs that did not play the same faults are called so in the
 * first lines, since their numbers cannot be set beside each other.
 */
import { html, type Markup } from './markup.ts';
import type { RunReport } from './model.ts';
import { escapeMarkdown, formatCount, formatDuration, formatShare, plural } from './text.ts';

/** A table with one column per run, the first column names the row. */
export interface CompareTable {
  readonly title: string;
  readonly rows: readonly { readonly name: string; readonly cells: readonly string[] }[];
}

export interface RunComparison {
  readonly heads: readonly string[];
  /** What makes the runs hard to compare; empty when nothing does. */
  readonly warnings: readonly string[];
  readonly tables: readonly CompareTable[];
  /** The command that plays each run again. */
  readonly replays: readonly string[];
}

const none = '–';

function lossesOf(report: RunReport): string {
  const lost = report.findings.totals.find(({ kind }) => kind === 'lost')?.count ?? 0;
  const { judged } = report.strength;
  return lost === 0 ? `0 of ${formatCount(judged)} judged` : `${formatCount(lost)} of ${formatCount(judged)} judged`;
}

function othersOf(report: RunReport): string {
  const others = report.findings.totals.filter(({ kind, count }) => kind !== 'lost' && count > 0);
  return others.length === 0 ? 'none' : others.map(({ kind, count }) => `${formatCount(count)} ${kind}`).join(', ');
}

/** The worst share of the load's seconds without a single acknowledged write. */
function unavailableShare({ series, phases }: RunReport): string {
  const load = phases.find((phase) => phase.name === 'load');
  if (load === undefined) return none;
  const first = Math.max(0, Math.floor((load.fromMs - series.fromMs) / series.bucketMs));
  const last = Math.ceil((load.toMs - series.fromMs) / series.bucketMs);
  const buckets = series.ackedPerSecond.slice(first, last);
  if (buckets.length === 0) return none;
  const silent = buckets.filter((acked) => (acked ?? 0) === 0).length;
  return `${formatShare(silent / buckets.length)} (${formatDuration(silent * series.bucketMs)})`;
}

const facts: readonly { readonly name: string; readonly of: (report: RunReport) => string }[] = [
  { name: 'verdict', of: ({ verdict }) => `${verdict.kind}, exit ${verdict.exitCode}` },
  { name: 'judged by', of: ({ verdict }) => `--contract ${verdict.contract}` },
  { name: 'an acknowledgement promises', of: ({ system }) => system.contract },
  {
    name: 'nodes, copies',
    of: ({ run, system }) => `${run.nodeCount} nodes on ${run.cluster}, ${system.replicationFactor} copies`,
  },
  {
    name: 'acknowledged writes',
    of: ({ counts, performance }) =>
      `${formatCount(counts.acknowledgedWrites)} (${formatCount(Math.round(performance.ackedPerSecond))}/s)`,
  },
  { name: 'lost acknowledged writes', of: lossesOf },
  { name: 'other findings', of: othersOf },
  { name: 'failovers', of: ({ strength }) => formatCount(strength.failovers) },
  { name: 'without an acknowledged write', of: unavailableShare },
  {
    name: 'outcome unknown',
    of: ({ counts }) => formatCount(counts.operations.reduce((sum, row) => sum + row.info, 0)),
  },
];

function recoveryCell(report: RunReport, kind: string): string {
  const row = report.recovery.find((each) => each.faultKind === kind);
  if (row === undefined) return 'not injected';
  const faults = plural(row.faults, 'fault');
  const never = row.neverRecovered === 0 ? '' : `, ${row.neverRecovered} never`;
  if (row.firstAck === null) return `${faults}, no primary hit${never}`;
  const { p50Ms, maxMs, count } = row.firstAck;
  return `${formatDuration(p50Ms)} median, ${formatDuration(maxMs)} worst (${faults}, ${plural(count, 'primary', 'primaries')} hit${never})`;
}

function healthyCell(report: RunReport, kind: string): string {
  const healthy = report.recovery.find((each) => each.faultKind === kind)?.healthy ?? null;
  return healthy === null ? none : `${formatDuration(healthy.p50Ms)} median, ${formatDuration(healthy.maxMs)} worst`;
}

/** Planned faults as a text that is equal for runs of one schedule. */
const scheduleOf = (report: RunReport): string =>
  JSON.stringify([
    report.run.plannedMs,
    report.faults.map((fault) => fault.id).toSorted(),
    [...new Set(report.faults.map((fault) => fault.kind))].toSorted(),
  ]);

function warningsOf(reports: readonly RunReport[]): string[] {
  const warnings: string[] = [];
  const differs = (of: (report: RunReport) => unknown): boolean =>
    new Set(reports.map((report) => JSON.stringify(of(report)))).size > 1;
  if (differs(scheduleOf)) warnings.push('These runs did not play the same schedule of faults.');
  if (differs(({ run }) => run.cluster)) warnings.push('These runs were made on different kinds of cluster.');
  if (differs(({ host }) => [host.name, host.cpus])) warnings.push('These runs were made on different machines.');
  const unwell = reports.filter(
    (report) => report.preliminary || !['certified', 'violated'].includes(report.verdict.kind),
  );
  for (const report of unwell)
    warnings.push(`Run ${report.run.runId} has no complete verdict (${report.verdict.kind}).`);
  return warnings;
}

/** Compares two runs or more, in the order given. */
export function compareRuns(reports: readonly RunReport[]): RunComparison {
  const kinds = [...new Set(reports.flatMap((report) => report.recovery.map((row) => row.faultKind)))].toSorted(
    (a, b) => Number(a !== 'all') - Number(b !== 'all') || a.localeCompare(b),
  );
  const row = (name: string, of: (report: RunReport) => string) => ({ name, cells: reports.map(of) });
  return {
    heads: reports.map(({ system, run }) => `${system.name} (${run.runId})`),
    warnings: warningsOf(reports),
    tables: [
      { title: 'What was kept', rows: facts.map(({ name, of }) => row(name, of)) },
      {
        title: 'From the fault to the next acknowledged write',
        rows: kinds.map((kind) => row(kind === 'all' ? 'all faults' : kind, (report) => recoveryCell(report, kind))),
      },
      {
        title: 'From the fault until every copy was back',
        rows: kinds.map((kind) => row(kind === 'all' ? 'all faults' : kind, (report) => healthyCell(report, kind))),
      },
    ],
    replays: reports.map((report) => report.run.replay),
  };
}

/** The comparison as Markdown. */
export function compareMarkdown({ heads, warnings, tables, replays }: RunComparison): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(escapeMarkdown).join(' | ')} |`;
  const blocks = tables.map(({ title, rows }) =>
    [
      `## ${title}`,
      '',
      line(['', ...heads]),
      `| --- |${heads.map(() => ' --- |').join('')}`,
      ...rows.map(({ name, cells }) => line([name, ...cells])),
    ].join('\n'),
  );
  return [
    '# Systems side by side',
    ...(warnings.length === 0 ? [] : [warnings.map((warning) => `- **${escapeMarkdown(warning)}**`).join('\n')]),
    ...blocks,
    ['## Again', '', ...replays.map((replay) => `    ${replay}`)].join('\n'),
    '',
  ].join('\n\n');
}

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color-scheme:light dark}
table{border-collapse:collapse;width:100%;margin:0 0 2rem}th,td{border:1px solid #8884;padding:.4rem .6rem;text-align:left;vertical-align:top}
thead th{background:#8881}tbody th{font-weight:600;white-space:nowrap}.warning{border-left:4px solid #c60;padding:.2rem .8rem}pre{overflow:auto}`;

/** The comparison as a page that needs nothing else. */
export function compareHtml({ heads, warnings, tables, replays }: RunComparison): string {
  const block = ({ title, rows }: CompareTable): Markup =>
    html`<h2>${title}</h2>
      <table>
        <thead>
          <tr>
            <th></th>
            ${heads.map((head) => html`<th>${head}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ({ name, cells }) =>
              html`<tr>
                <th>${name}</th>
                ${cells.map((cell) => html`<td>${cell}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>`;
  const page = html`<h1>Systems side by side</h1>
    ${warnings.map((warning) => html`<p class="warning">${warning}</p>`)}${tables.map(block)}
    <h2>Again</h2>
    <pre>${replays.join('\n')}</pre>`;
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>Systems side by side</title><style>${style}</style><body>${page.source}</body></html>\n`;
}
