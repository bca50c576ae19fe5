/**
 * Measures the synthetic four-hour report in real Chromium: file size, time to render it here, to open it, to zoom it.
 * Usage: node harness/report/testing/measure.ts [ROUNDS]; prints one JSON line. Exits 1 when a goal of the issue is missed.
 */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { renderHtml } from '../render-html.ts';
import { medianOf } from '../trend-runs.ts';
import { launchChromium } from './chromium.ts';
import { syntheticReport } from './synthetic.ts';

const openGoalMs = 2_000;
const sizeGoalBytes = 10_000_000;
const rounds = Number(process.argv[2] ?? 5);

const folder = mkdtempSync(join(tmpdir(), 'report-measure-'));
const path = join(folder, 'report.html');
const report = syntheticReport('big');
const renderStart = performance.now();
writeFileSync(path, renderHtml(report));
const renderMs = performance.now() - renderStart;

const openMs: number[] = [];
const scriptMs: number[] = [];
const zoomMs: number[] = [];
const browser = await launchChromium();
try {
  for (let round = 0; round < rounds; round++) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const start = performance.now();
    await page.goto(pathToFileURL(path).href);
    await page.waitForSelector('html[data-ready]');
    // Two frames: what the script drew is on the screen.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    openMs.push(performance.now() - start);
    scriptMs.push(Number(await page.evaluate('document.documentElement.dataset.ready')));
    await page.locator('.stack').focus();
    for (const key of ['+', '+', 'ArrowRight', '+', '0']) {
      const before = performance.now();
      await page.keyboard.press(key);
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      zoomMs.push(performance.now() - before);
    }
    await page.close();
  }
} finally {
  await browser.close();
}
const bytes = statSync(path).size;
rmSync(folder, { recursive: true, force: true });
const rounded = (values: readonly number[]): { median: number; max: number } => ({
  median: Math.round(medianOf(values)),
  max: Math.round(Math.max(...values)),
});
console.log(
  JSON.stringify({
    faults: report.faults.length,
    epochChanges: report.epochs.length,
    findings: report.findings.items.length,
    buckets: report.series.ackedPerSecond.length,
    bytes,
    renderMs: Math.round(renderMs),
    openMs: rounded(openMs),
    pageReadyMs: rounded(scriptMs),
    zoomMs: rounded(zoomMs),
    rounds,
  }),
);
if (bytes > sizeGoalBytes || medianOf(openMs) > openGoalMs) process.exitCode = 1;
