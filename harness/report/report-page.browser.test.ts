/** The page in a real Chromium: from the first screen to a lost write and back, by mouse and by keyboard, wide and narrow. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunReport } from './model.ts';
import { renderHtml } from './render-html.ts';
import { renderJunit } from './render-junit.ts';
import { chromiumPath, launchChromium } from './testing/chromium.ts';
import { controlKey, scriptKey } from './testing/synthetic-findings.ts';
import { syntheticNames, syntheticReport } from './testing/synthetic.ts';
import { visible } from './text.ts';

const widths = [
  ['wide', 1440],
  ['narrow', 360],
] as const;
const missing = chromiumPath() === null;

/** How late a slow machine shows what the address says, ms; the page itself needs one task. */
const lateHashMs = 300;
/** Run in the page: every listener to `hashchange` hears of it that much later. */
const hashLater = (lateMs: number): void => {
  const target = globalThis as unknown as { addEventListener: (type: string, heard: (event: unknown) => void) => void };
  const add = target.addEventListener.bind(target);
  target.addEventListener = (type, heard) =>
    add(type, type === 'hashchange' ? (event) => setTimeout(() => heard(event), lateMs) : heard);
};

describe.skipIf(missing)(
  `report page${missing ? ' (skipped: no Chromium is installed)' : ''}`,
  () => {
    let browser: Browser;
    let folder = '';
    let problems: string[] = [];
    const violated = syntheticReport('violated');

    beforeAll(async () => {
      browser = await launchChromium();
      folder = mkdtempSync(join(tmpdir(), 'report-page-'));
    }, 60_000);
    afterAll(async () => {
      await browser.close();
      rmSync(folder, { recursive: true, force: true });
    });

    async function open(
      report: RunReport,
      width: number,
      theme: 'light' | 'dark' = 'light',
      hashLateMs = 0,
    ): Promise<Page> {
      problems = [];
      const path = join(folder, `${report.run.runId}.html`);
      writeFileSync(path, renderHtml(report));
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: theme });
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) problems.push(message.text());
      });
      page.on('pageerror', (error) => problems.push(error.message));
      page.on('dialog', (dialog) => {
        problems.push(`dialog ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on('request', (request) => {
        if (!request.url().startsWith('file:') && !request.url().startsWith('data:'))
          problems.push(`request ${request.url()}`);
      });
      if (hashLateMs > 0) await page.addInitScript(hashLater, hashLateMs);
      await page.goto(pathToFileURL(path).href);
      await page.waitForSelector('html[data-ready]');
      return page;
    }

    /** The address changes at once, the page with a later task: until then what is hidden takes no focus and no key. */
    const back = async (page: Page): Promise<void> => {
      await page.locator('#overview').waitFor({ state: 'visible' });
      expect(await page.locator('#detail').isHidden()).toBe(true);
    };
    const focused = (page: Page): Promise<string> =>
      page.evaluate<string>(
        "document.activeElement.getAttribute('href') ?? (document.activeElement.id || document.activeElement.className)",
      );
    const span = (page: Page): Promise<string> => page.locator('.tools .span').innerText();

    const spilled = (page: Page): Promise<number> =>
      page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

    it.each(widths)('%s: from the first screen to a lost write and back', async (_, width) => {
      const page = await open(violated, width);
      const link = page.locator('#first a.open').first();
      await expect.poll(() => link.isVisible()).toBe(true);
      await link.click();
      await page.waitForSelector('#detail h1');
      expect(await page.locator('#overview').isHidden()).toBe(true);
      const id = violated.findings.items.find((item) => item.group === 'C1')?.id ?? '';
      const text = await page.locator('#detail').innerText();
      for (const words of [
        `${id}: lost write`,
        'was acknowledged at',
        'under epoch',
        'Last read that saw it',
        'First that did not',
        'The kill of',
        'What each replica says now',
        violated.run.replay,
      ]) {
        expect(text.includes(words), words).toBe(true);
      }
      expect(await spilled(page)).toBe(0);
      await page.goBack();
      await back(page);
      await page.goForward();
      await page.locator('#back').click();
      await back(page);
      expect(await page.locator('#findings').isVisible()).toBe(true);
      expect(await spilled(page)).toBe(0);
      expect(problems).toEqual([]);
      await page.close();
    });

    it.each(widths)('%s: a lost write is told in order, and leads back to the verdict', async (_, width) => {
      const page = await open(violated, width);
      await page.locator('#first a.open').first().click();
      const story = await page.locator('#detail .story').innerText();
      const told = ['was acknowledged at', 'began at', 'First that did not', 'Now:'];
      const places = told.map((words) => story.indexOf(words));
      expect(places).not.toContain(-1);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      expect(await page.locator('#detail .life .event-own').count()).toBe(1);
      await page.locator('#to-verdict').focus();
      await page.keyboard.press('Enter');
      await back(page);
      expect(await page.locator('#verdict').isVisible()).toBe(true);
      expect(
        await page.evaluate('Math.round(document.querySelector("#first").getBoundingClientRect().top) < 100'),
      ).toBe(true);
      expect(problems).toEqual([]);
      await page.close();
    });

    it('groups after the first three are closed, open by keyboard, and by a filter', async () => {
      const page = await open(violated, 1440);
      const groups = page.locator('#findings details');
      const count = await groups.count();
      expect(count).toBeGreaterThan(3);
      expect(await page.locator('#findings details[open]').count()).toBe(3);
      await groups.nth(3).locator('summary').focus();
      await page.keyboard.press('Enter');
      await expect.poll(() => page.locator('#findings details[open]').count()).toBe(4);
      await page.locator('#filter').fill('stale');
      await expect.poll(() => page.locator('#findings details:not([open])').count()).toBe(0);
      expect(problems).toEqual([]);
      await page.close();
    });

    it('prints the verdict, the losses and the tables without controls', async () => {
      const page = await open(violated, 794);
      await page.emulateMedia({ media: 'print' });
      for (const hidden of ['.top', '.tools', '#filter', 'button'])
        await expect.poll(() => page.locator(hidden).first().isVisible(), { message: hidden }).toBe(false);
      for (const shown of ['#verdict', '.losses', '#replay', '#promises table'])
        expect(await page.locator(shown).first().isVisible(), shown).toBe(true);
      expect(await spilled(page)).toBe(0);
      expect((await page.pdf({ format: 'A4' })).subarray(0, 4).toString()).toBe('%PDF');
      expect(problems).toEqual([]);
      await page.close();
    });

    it.each(widths)('%s: works by keyboard alone', async (_, width) => {
      const page = await open(violated, width, 'light', lateHashMs);
      const link = page.locator('#first a.open').first();
      await link.focus();
      await page.keyboard.press('Enter');
      await page.waitForSelector('#detail h1:focus');
      await page.locator('#back').focus();
      await page.keyboard.press('Enter');
      await back(page);
      // What was asked for is the list, and the link stands in the verdict above it.
      await expect.poll(() => focused(page)).toBe('findings');
      await page.locator('.stack').focus();
      expect(await focused(page)).toBe('stack');
      const before = await span(page);
      await page.keyboard.press('+');
      await expect.poll(() => span(page)).not.toBe(before);
      await page.keyboard.press('n');
      await expect.poll(() => page.locator('.readout').innerText()).toContain('open: ');
      await page.keyboard.press('0');
      await expect.poll(() => span(page)).toBe(before);
      expect(problems).toEqual([]);
      await page.close();
    });

    it('the focus returns with the page: to the link that opened the finding, or to what was asked for', async () => {
      const page = await open(violated, 1440, 'light', lateHashMs);
      const openFrom = async (place: string): Promise<string> => {
        const link = page.locator(`${place} a[href^="#/finding/"]`).last();
        await link.focus();
        await page.keyboard.press('Enter');
        await page.waitForSelector('#detail h1:focus');
        return (await link.getAttribute('href')) ?? '';
      };
      const follow = async (id: string): Promise<void> => {
        await page.locator(id).focus();
        await page.keyboard.press('Enter');
        await back(page);
      };
      const first = await openFrom('#first');
      await page.goBack();
      await back(page);
      expect(await focused(page)).toBe(first);
      const listed = await openFrom('#findings details[open]');
      await follow('#back');
      expect(await focused(page)).toBe(listed);
      await openFrom('#findings details[open]');
      await follow('#to-verdict');
      expect(await focused(page)).toBe('first');
      const told = await openFrom('#first');
      await follow('#to-verdict');
      expect(await focused(page)).toBe(told);
      await openFrom('#first');
      await follow('#back');
      expect(await focused(page)).toBe('findings');
      expect(problems).toEqual([]);
      await page.close();
    });

    it('hover and zoom are linked across charts and lanes', async () => {
      const page = await open(violated, 1440);
      const charts = page.locator('.chart canvas');
      await charts.first().scrollIntoViewIfNeeded();
      const box = await charts.first().boundingBox();
      if (box === null) throw new Error('the first chart has no box');
      await page.mouse.move(box.x + box.width / 2, box.y + 40);
      await expect.poll(() => page.locator('.hair').isVisible()).toBe(true);
      await expect.poll(() => page.locator('.legend b').first().innerText()).not.toBe('');
      await expect.poll(() => page.locator('.legend b').nth(2).innerText()).not.toBe('');
      const picture = (): Promise<string[]> =>
        page.evaluate<string[]>("[...document.querySelectorAll('.stack canvas')].map((one) => one.toDataURL())");
      const before = await picture();
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2 + 120, box.y + 40, { steps: 4 });
      await page.mouse.up();
      await expect.poll(async () => (await picture()).filter((one, index) => one === before[index]).length).toBe(0);
      await page.mouse.dblclick(box.x + box.width / 2, box.y + 40);
      await expect.poll(() => span(page)).toContain('20 min of 20 min');
      expect(problems).toEqual([]);
      await page.close();
    });

    it('shows hostile keys and log lines as text', async () => {
      const page = await open(violated, 1440);
      const find = async (key: string): Promise<void> => {
        const finding = violated.findings.items.find((item) => item.key === key);
        await page.evaluate(`location.hash = '#/finding/${finding?.id}'`);
        await expect.poll(() => page.locator('#detail h1').innerText()).toContain(visible(key));
      };
      await find(scriptKey);
      await find(controlKey);
      expect(await page.locator('.evidence').first().innerText()).toContain('\\u{1b}[31mrefused');
      expect(await page.locator('main script').count()).toBe(0);
      expect(problems).toEqual([]);
      await page.close();
    });

    it('filters findings, shows a whole group, unknown findings and a moment of a fault', async () => {
      const page = await open(violated, 1440);
      const rows = page.locator('#findings tbody tr');
      const few = await rows.count();
      await page.getByRole('button', { name: 'Show all 37 of this group' }).click();
      await expect.poll(() => rows.count()).toBe(few + 37 - 8);
      await page.locator('#filter').fill('stale');
      await expect.poll(() => rows.count()).toBe(4);
      await page.locator('#filter').fill('no such key');
      await expect.poll(() => page.locator('#findings').innerText()).toContain('No listed finding matches');
      await page.getByRole('button', { name: 'Show F3 on the time line' }).click();
      await expect.poll(() => page.locator('.readout').innerText()).toContain('(fault F3)');
      await page.evaluate("location.hash = '#/finding/NOPE'");
      await expect.poll(() => page.locator('#detail').innerText()).toContain('No finding NOPE is listed');
      expect(problems).toEqual([]);
      await page.close();
    });

    it.each(syntheticNames)('%s opens in both themes without a console error or a sideways scroll', async (name) => {
      const report = syntheticReport(name);
      for (const [width, theme] of [
        [1440, 'light'],
        [400, 'dark'],
      ] as const) {
        const page = await open(report, width, theme);
        const background = (): Promise<string> =>
          page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
        const before = await background();
        await page.locator('#theme').click();
        await expect.poll(background).not.toBe(before);
        expect(await spilled(page)).toBe(0);
        expect(problems).toEqual([]);
        await page.close();
      }
    });

    it('JUnit is XML to a real parser', async () => {
      const page = await browser.newPage();
      const parsed = await page.evaluate((xml) => {
        const Parser = (
          globalThis as unknown as {
            DOMParser: new () => {
              parseFromString(text: string, type: string): { querySelectorAll(query: string): { length: number } };
            };
          }
        ).DOMParser;
        const document = new Parser().parseFromString(xml, 'application/xml');
        return {
          errors: document.querySelectorAll('parsererror').length,
          cases: document.querySelectorAll('testcase').length,
        };
      }, renderJunit(violated));
      expect(parsed).toEqual({ errors: 0, cases: violated.promises.length + violated.gates.length + 2 });
      await page.close();
    });
  },
  60_000,
);
