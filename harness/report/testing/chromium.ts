/** Finds and starts an installed Chromium for tests and screenshots; nothing is downloaded. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { present } from '../../../lib/assert.ts';

const places = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** Path of an installed Chromium, or null; tests without one are skipped by name. */
export const chromiumPath = (): string | null =>
  places.find((place) => place !== undefined && existsSync(place)) ?? null;

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** A headless browser that talks to nobody. The caller closes it. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: present(chromiumPath(), 'an installed Chromium'),
    headless: true,
    args: quiet,
  });
}
