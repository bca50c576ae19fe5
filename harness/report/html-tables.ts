/** The tables below the time line that need no script: promises, recovery, coverage, canary, limits, settings. */
import { html, type Markup } from './markup.ts';
import type { Recovery } from './model-timeline.ts';
import type { RunReport } from './model.ts';
import { formatBytes, formatCount, formatDuration, formatOffset, formatWall } from './text.ts';

const outcomeSigns: Readonly<Record<string, string>> = {
  held: '✓',
  broken: '✕',
  unknown: '?',
  'not-tested': '–',
  passed: '✓',
  failed: '✕',
  caught: '✓',
  missed: '✕',
  'not-run': '?',
};

function outcome(name: string): Markup {
  return html`<span class="outcome outcome-${name}"
    ><span aria-hidden="true">${outcomeSigns[name] ?? ''}</span> ${name.replace('-', ' ')}</span
  >`;
}

function table(
  heads: readonly string[],
  rows: readonly (readonly (string | number | Markup)[])[],
  caption = '',
): Markup {
  return html`<div class="scroll">
    <table>
      ${
        caption === ''
          ? null
          : html`<caption>
              ${caption}
            </caption>`
      }
      <thead>
        <tr>
          ${heads.map((head) => html`<th scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${row.map((cell, index) => (index === 0 ? html`<th scope="row">${cell}</th>` : html`<td>${cell}</td>`))}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function promises(report: RunReport): Markup {
  const gates =
    report.gates.length === 0
      ? null
      : html`<h3>Gates of this job</h3>
          ${table(
            ['fail if', 'outcome', 'found'],
            report.gates.map((gate) => [html`<code>${gate.expression}</code>`, outcome(gate.outcome), gate.detail]),
          )}`;
  return html`<section id="promises" aria-labelledby="promises-title">
    <h2 id="promises-title">Promises</h2>
    ${table(
      ['promise', 'outcome', 'detail'],
      report.promises.map((promise) => [promise.title, outcome(promise.outcome), promise.detail]),
    )}
    ${gates}
    <h3>Canary: ${outcome(report.canary.outcome)}</h3>
    <p class="quiet">Faults planted in every run, kept out of its counts; the checkers must report exactly these.</p>
    ${table(
      ['planted', 'kind', 'planted', 'reported', 'seen by'],
      report.canary.checks.map((check) => [check.name, check.kind, check.planted, check.reported, check.where]),
    )}
  </section>`;
}

const quantileCells = (value: Recovery['firstAck']): string[] =>
  value === null ? ['–', '–', '–'] : [value.p50Ms, value.p99Ms, value.maxMs].map(formatDuration);

function recovery(report: RunReport): Markup {
  const rows = report.recovery.map((row) => [
    row.faultKind,
    row.faults,
    ...quantileCells(row.firstAck),
    ...quantileCells(row.healthy),
    row.neverRecovered === 0 ? '0' : html`<b class="bad">✕ ${row.neverRecovered}</b>`,
  ]);
  return html`<section id="recovery" aria-labelledby="recovery-title">
    <h2 id="recovery-title">Recovery</h2>
    <p class="quiet">
      From a fault’s injection, per partition that it touched: to the first acknowledged write, and back to Healthy.
    </p>
    ${table(['fault', 'faults', 'first ack p50', 'p99', 'max', 'healthy p50', 'p99', 'max', 'never'], rows)}
  </section>`;
}

function coverage(report: RunReport): Markup {
  const { coverage: matrix } = report;
  const most = Math.max(1, ...matrix.confirmed.flat());
  const rows = matrix.kinds.map((kind, row) => [
    kind,
    ...matrix.roles.map((_, column) => {
      const hits = matrix.confirmed[row]?.[column] ?? 0;
      const level = hits === 0 ? 0 : 1 + Math.min(3, Math.floor((hits / most) * 4));
      return html`<span class="cell level-${level}">${hits === 0 ? 'none' : formatCount(hits)}</span>`;
    }),
  ]);
  const missed =
    matrix.notInjected.length === 0
      ? null
      : html`<ul>
          ${matrix.notInjected.map((one) => html`<li>${one.kind}: not injected, ${one.reason}</li>`)}
        </ul>`;
  return html`<section id="coverage" aria-labelledby="coverage-title">
      <h2 id="coverage-title">Coverage</h2>
      <p class="quiet">Confirmed faults by kind and by what the target was at that moment.</p>
      ${table(['', ...matrix.roles], rows)}${missed}
    </section>
    <section id="faults" aria-labelledby="faults-title"><h2 id="faults-title">Faults</h2></section>
    <section id="limits" aria-labelledby="limits-title">
      <h2 id="limits-title">What this run did not test</h2>
      <ul>
        ${report.limits.map((limit) => html`<li>${limit}</li>`)}
      </ul>
    </section>`;
}

const named = (rows: readonly { readonly name: string; readonly value: string }[], caption: string): Markup =>
  table(
    ['', ''],
    rows.map((row) => [row.name, html`<code>${row.value}</code>`]),
    caption,
  );

function settings(report: RunReport): Markup {
  const { run, system, host, counts, ledger } = report;
  const identity = [
    { name: 'build under test', value: system.build },
    { name: 'contract', value: system.contract },
    {
      name: 'replication factor',
      value: `${system.replicationFactor}, min in sync ${system.minInSync}, ${system.partitions} partitions (read live)`,
    },
    { name: 'seed', value: run.seed },
    { name: 'chaos level, preset', value: `${run.chaosLevel}, ${run.preset}` },
    {
      name: 'started, ended (UTC)',
      value: `${formatWall(run.startedAt, 0)}, ${run.endedAt === null ? 'not ended' : formatWall(run.endedAt, 0)}`,
    },
    {
      name: 'host',
      value: `${host.name}: ${host.os}, kernel ${host.kernel}, ${host.cpus} cpus, ${formatBytes(host.memoryBytes)}`,
    },
    { name: 'engine', value: host.engine ?? 'none' },
    {
      name: 'sessions, keys, retired keys',
      value: `${formatCount(counts.sessions)}, ${formatCount(counts.keys)}, ${formatCount(counts.retiredKeys)}`,
    },
    { name: 'ledger, peak memory', value: `${formatBytes(ledger.bytes)}, ${formatBytes(report.peakMemoryBytes)}` },
  ];
  const operations = table(
    ['operation', 'ok', 'fail (no effect)', 'info (unknown)'],
    counts.operations.map((row) => [row.kind, formatCount(row.ok), formatCount(row.fail), formatCount(row.info)]),
    'Operations by outcome',
  );
  const phases = table(
    ['phase', 'from', 'took'],
    report.phases.map((phase) => [phase.name, formatOffset(phase.fromMs), formatDuration(phase.toMs - phase.fromMs)]),
    'Phases',
  );
  const gaps =
    ledger.gaps.length === 0
      ? null
      : table(
          ['gap from', 'to', 'reason'],
          ledger.gaps.map((gap) => [formatOffset(gap.fromMs), formatOffset(gap.toMs), gap.reason]),
          'Gaps in the ledger',
        );
  return html`<section id="settings" aria-labelledby="settings-title">
    <h2 id="settings-title">Settings, versions, host</h2>
    <div class="pair">
      ${named(identity, 'This run')}
      <div>${named(report.settings, 'Settings')}${named(report.versions, 'Versions')}</div>
    </div>
    <div class="pair">${operations}${phases}</div>
    ${gaps}
  </section>`;
}

/** Promises, recovery, coverage, the place of the faults table, limits, settings. */
export function renderTables(report: RunReport): Markup {
  return html`${promises(report)}${recovery(report)}${coverage(report)}${settings(report)}`;
}
