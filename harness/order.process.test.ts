/** One schedule file on the simulator and on local processes: the same plan in the same order; what differs is told. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { orderOn, orderOnSimulator } from './testing/order-worlds.ts';
import { expectSameOrder } from './testing/same-order.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-order-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('one file on processes and on virtual time', { timeout: 150_000 }, () => {
  it('plays the same events in the same order', async () => {
    expectSameOrder('process', await orderOn('process', folder), await orderOnSimulator(folder));
  });
});
