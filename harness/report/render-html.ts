/**
 * `report.html`: one self-contained file, no network. The first screen and the small tables are plain markup, readable
 * without a script; time line, findings and faults are drawn by the page's own script from the embedded report.
 *
 * Invariant: text from outside stands in the file only escaped (`html`) or as script-safe JSON that the page shows as text.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { firstScreen } from './first-screen.ts';
import { renderFirstScreen } from './html-first-screen.ts';
import { renderTables } from './html-tables.ts';
import { linkBrowserScript } from './link-browser.ts';
import { html, type Markup, trusted } from './markup.ts';
import type { RunReport } from './model.ts';
import { formatWall, scriptSafeJson } from './text.ts';

const here = import.meta.dirname;

interface Assets {
  readonly style: string;
  readonly chartStyle: string;
  readonly chartScript: string;
  readonly script: string;
}

let cached: Assets | null = null;

/** Reads style, chart library and page script once per process. */
function assets(): Assets {
  if (cached !== null) return cached;
  const library = (name: string): string =>
    readFileSync(createRequire(import.meta.url).resolve(`uplot/dist/${name}`), 'utf8');
  cached = {
    style: readFileSync(join(here, 'browser', 'style.css'), 'utf8'),
    chartStyle: library('uPlot.min.css'),
    chartScript: library('uPlot.iife.min.js'),
    script: linkBrowserScript(join(here, 'browser', 'main.ts')),
  };
  return cached;
}

/** A script that holds "</script" would end its own element. */
function inlineScript(source: string): Markup {
  if (/<\/script/i.test(source)) throw new Error('an inlined script must not contain its own end tag');
  return trusted(`<script>${source}</script>`);
}

const navigation = [
  ['timeline', 'Timeline'],
  ['findings', 'Findings'],
  ['promises', 'Promises'],
  ['recovery', 'Recovery'],
  ['faults', 'Faults'],
  ['settings', 'Settings'],
] as const;

function header(report: RunReport): Markup {
  return html`<a class="skip" href="#first">Skip to the verdict</a>
    <header class="top">
      <a class="home" href="#first">Loss report</a>
      <span class="run">${report.run.runId} · ${formatWall(report.run.startedAt, 0)} UTC</span>
      <nav aria-label="Sections">${navigation.map(([id, title]) => html`<a href="#${id}">${title}</a>`)}</nav>
      <button type="button" id="theme" aria-label="Light or dark">◐</button>
    </header>`;
}

const icon = (tone: string): string => {
  const fill = tone === 'good' ? '%23009e73' : tone === 'bad' ? '%23d55e00' : '%23e69f00';
  return `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'><rect width='8' height='8' rx='2' fill='${fill}'/></svg>`;
};

/** The whole page as text. */
export function renderHtml(report: RunReport): string {
  const screen = firstScreen(report);
  const files = assets();
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta
          http-equiv="Content-Security-Policy"
          content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
        />
        <title>${`${screen.sign} ${screen.word}: ${screen.headline}`}</title>
        <link rel="icon" href="${trusted(icon(screen.tone))}" />
        <style>
          ${trusted(files.chartStyle)}
        </style>
        <style>
          ${trusted(files.style)}
        </style>
      </head>
      <body>
        ${header(report)}
        <main id="overview">
          ${renderFirstScreen(screen, report)}
          <section id="timeline" aria-labelledby="timeline-title">
            <h2 id="timeline-title">Timeline</h2>
            <noscript><p>The timeline needs JavaScript.</p></noscript>
          </section>
          <section id="findings" aria-labelledby="findings-title"><h2 id="findings-title">Findings</h2></section>
          ${renderTables(report)}
        </main>
        <main id="detail" hidden tabindex="-1"></main>
        <footer>
          ${report.run.cluster} cluster · report format ${report.formatVersion} · made from the ledger of run
          ${report.run.runId}
        </footer>
        <script type="application/json" id="report-data">
          ${trusted(scriptSafeJson(report))}
        </script>
        ${inlineScript(files.chartScript)} ${inlineScript(files.script)}
      </body>
    </html> `;
  return page.source;
}
