/**
 * Writes the synthetic reports and, in real Chromium, screenshots of them: light and dark, wide and narrow.
 * Usage: node harness/report/testing/screenshots.ts FOLDER
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { renderHtml } from '../render-html.ts';
import { launchChromium } from './chromium.ts';
import { syntheticNames, syntheticReport } from './synthetic.ts';

const folder = resolve(process.argv[2] ?? 'screenshots');
mkdirSync(folder, { recursive: true });
const browser = await launchChromium();
try {
  for (const name of syntheticNames) {
    const report = syntheticReport(name);
    const path = join(folder, `${name}.html`);
    writeFileSync(path, renderHtml(report));
    for (const [theme, width, height] of [
      ['light', 1440, 900],
      ['dark', 1440, 900],
      ['light', 400, 860],
      ['dark', 400, 860],
    ] as const) {
      const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
      page.on('console', (message) => console.log(`${name}: console ${message.type()}: ${message.text()}`));
      page.on('pageerror', (error) => console.log(`${name}: ${error.stack}`));
      await page.goto(pathToFileURL(path).href);
      await page.waitForSelector('html[data-ready]');
      await page.screenshot({ path: join(folder, `${name}-${theme}-${width}-first.png`) });
      await page.screenshot({ path: join(folder, `${name}-${theme}-${width}-whole.png`), fullPage: true });
      const finding = report.findings.items[0];
      if (finding !== undefined) {
        await page.goto(`${pathToFileURL(path).href}#/finding/${finding.id}`);
        await page.waitForSelector('#detail h1');
        await page.screenshot({ path: join(folder, `${name}-${theme}-${width}-finding.png`), fullPage: true });
      }
      await page.close();
    }
  }
} finally {
  await browser.close();
}
