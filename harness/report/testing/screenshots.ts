/**
 * Screenshots of reports in real Chromium: light and dark, wide and narrow; of the synthetic reports, or of real runs.
 * Usage: node harness/report/testing/screenshots.ts FOLDER [NAME=RUN_FOLDER …]
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { renderHtml } from '../render-html.ts';
import { launchChromium } from './chromium.ts';
import { syntheticNames, syntheticReport } from './synthetic.ts';

const views = [
  ['light', 1280, 860],
  ['dark', 1280, 860],
  ['light', 420, 860],
  ['dark', 420, 860],
] as const;

/** Pictures of the first screen, the whole page and the first listed finding; console messages are printed. */
async function picture(browser: Browser, folder: string, name: string, path: string): Promise<void> {
  for (const [theme, width, height] of views) {
    const file = (part: string): string => join(folder, `${name}-${theme}-${width}-${part}.png`);
    const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
    page.on('console', (message) => console.log(`${name}: console ${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => console.log(`${name}: ${error.stack}`));
    await page.goto(pathToFileURL(path).href);
    await page.waitForSelector('html[data-ready]');
    await page.screenshot({ path: file('first') });
    await page.screenshot({ path: file('whole'), fullPage: true });
    const finding = page.locator('#first a.open').first();
    if ((await finding.count()) > 0) {
      await finding.click();
      await page.waitForSelector('#detail h1');
      await page.screenshot({ path: file('finding'), fullPage: true });
    }
    await page.close();
  }
}

const folder = resolve(process.argv[2] ?? 'screenshots');
const runs = process.argv.slice(3);
mkdirSync(folder, { recursive: true });
const browser = await launchChromium();
try {
  for (const name of runs.length > 0 ? [] : syntheticNames) {
    const path = join(folder, `${name}.html`);
    writeFileSync(path, renderHtml(syntheticReport(name)));
    await picture(browser, folder, name, path);
  }
  for (const run of runs) {
    const [name = '', path = ''] = run.split('=');
    await picture(browser, folder, name, resolve(path, 'report.html'));
  }
} finally {
  await browser.close();
}
