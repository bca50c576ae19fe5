/**
 * `certify serve`: the results folder in a browser, on 127.0.0.1 only.
 *
 * Invariant: only the known files of run folders leave, never through a link or a path with dots, and only to requests that
 * name this very host (so that a foreign page cannot read results through a rebound name).
 */
import { createReadStream, lstatSync, realpathSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, sep } from 'node:path';
import { diffColumns, diffRows, diffRuns } from './diff-runs.ts';
import { findRun, type ListedRun, listRuns, runCells, runColumns } from './list-runs.ts';
import { html, type Markup, trusted } from './markup.ts';
import { trendColumns, trendRuns, trendTableRows, trendText } from './trend-runs.ts';

const address = '127.0.0.1';

const contentTypes: Readonly<Record<string, string>> = {
  'report.html': 'text/html; charset=utf-8',
  'report.json': 'application/json; charset=utf-8',
  'report.md': 'text/plain; charset=utf-8',
  'junit.xml': 'application/xml; charset=utf-8',
  'schedule.json': 'application/json; charset=utf-8',
};

const style = `:root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:24px auto;max-width:1200px;padding:0 20px;font-variant-numeric:tabular-nums}
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{text-align:left;padding:4px 16px 4px 0;border-bottom:1px solid light-dark(#e7eaed,#262b30);white-space:nowrap}
th{font-weight:600;font-size:12px}a{color:light-dark(#0061a0,#6cbcf0)}h1{font-size:22px}h2{font-size:17px;margin-top:32px}`;

const noMarkup: readonly Markup[] = [];

function page(title: string, body: Markup): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        <style>
          ${trusted(style)}
        </style>
      </head>
      <body>
        <h1>${title}</h1>
        ${body}
      </body>
    </html>`.source;
}

function table(heads: readonly string[], rows: readonly (readonly (string | Markup)[])[]): Markup {
  return html`<table>
    <thead>
      <tr>
        ${heads.map((head) => html`<th>${head}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            ${row.map((cell) => html`<td>${cell}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

function indexPage(resultsFolder: string): string {
  const runs = listRuns(resultsFolder);
  const previous = (index: number): ListedRun | undefined => runs.slice(index + 1).find((run) => run.kind === 'read');
  const rows = runs.map((run, index) => {
    const [name = '', ...cells] = runCells(run);
    const older = previous(index);
    const path = encodeURIComponent(run.name);
    const compare =
      run.kind === 'read' && older !== undefined
        ? html`<a href="/diff?a=${encodeURIComponent(older.name)}&amp;b=${path}">diff to the one before</a>`
        : '';
    return [run.kind === 'read' ? html`<a href="/${path}/report.html">${name}</a>` : name, ...cells, compare];
  });
  const trend = trendRuns(runs.flatMap((run) => (run.kind === 'read' ? [run.report] : [])));
  const body =
    trend === null || trend.rows.length === 0
      ? html`<p>${trendText(trend)}</p>`
      : html`${trend.sentences.map((text) => html`<p>${text}</p>`)}${table(trendColumns, trendTableRows(trend))}`;
  return page(
    'Certification runs',
    html`${rows.length === 0 ? html`<p>No run yet.</p>` : noMarkup}${rows.length > 0 ? table([...runColumns, ''], rows) : noMarkup}
      <h2>Trend</h2>
      ${body}`,
  );
}

function diffPage(resultsFolder: string, query: URLSearchParams): string {
  const [a, b] = [findRun(resultsFolder, query.get('a') ?? ''), findRun(resultsFolder, query.get('b') ?? 'latest')];
  return page(
    `${a.name} → ${b.name}`,
    html`<p><a href="/">all runs</a></p>
      ${table(diffColumns, diffRows(diffRuns(a.report, b.report)))}`,
  );
}

/** The file behind /RUN/FILE, or null: unknown name, a link on the way, not a file. */
function fileOf(resultsFolder: string, parts: readonly string[]): { path: string; type: string } | null {
  const [run, name] = parts;
  const type = name === undefined ? undefined : contentTypes[name];
  if (run === undefined || name === undefined || type === undefined || parts.length !== 2 || /^\.|[/\\\0]/.test(run))
    return null;
  const path = join(resultsFolder, run, name);
  const standing = lstatSync(path, { throwIfNoEntry: false });
  if (standing === undefined || !standing.isFile()) return null;
  // `latest` is a link to a run beside it; anything that leads outside is refused.
  const real = realpathSync(path);
  return real.startsWith(realpathSync(resultsFolder) + sep) ? { path: real, type } : null;
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'content-type': type,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  });
  response.end(body);
}

function answer(resultsFolder: string, port: number, request: IncomingMessage, response: ServerResponse): void {
  const host = request.headers.host ?? '';
  if (host !== `${address}:${port}` && host !== `localhost:${port}`)
    return send(response, 421, 'text/plain', 'this server answers to 127.0.0.1 only\n');
  if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, 'text/plain', 'only GET\n');
  const url = new URL(request.url ?? '/', `http://${address}`);
  if (url.pathname === '/') return send(response, 200, 'text/html; charset=utf-8', indexPage(resultsFolder));
  if (url.pathname === '/diff')
    return send(response, 200, 'text/html; charset=utf-8', diffPage(resultsFolder, url.searchParams));
  const found = fileOf(resultsFolder, url.pathname.slice(1).split('/').map(decodeURIComponent));
  if (found === null) return send(response, 404, 'text/plain', 'not found\n');
  response.writeHead(200, {
    'content-type': found.type,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  createReadStream(found.path)
    .on('error', () => response.destroy())
    .pipe(response);
}

/** Serves until closed. Port 0 takes a free one. Rejects when the port is taken. */
export function serveResults(
  resultsFolder: string,
  port: number,
): Promise<{ readonly url: string; readonly server: Server }> {
  return new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      try {
        answer(resultsFolder, (server.address() as AddressInfo).port, request, response);
      } catch (error) {
        send(response, 400, 'text/plain', `${error instanceof Error ? error.message : 'bad request'}\n`);
      }
    });
    server.once('error', reject);
    server.listen(port, address, () =>
      resolve({ url: `http://${address}:${(server.address() as AddressInfo).port}/`, server }),
    );
  });
}
