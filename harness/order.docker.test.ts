/** One schedule file in containers and on the simulator: the same plan in the same order; what differs is told. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, it } from 'vitest';
import { engineForTests } from '../docker/testing/engine-for-tests.ts';
import { orderOn, orderOnSimulator } from './testing/order-worlds.ts';
import { expectSameOrder } from './testing/same-order.ts';

const engine = await engineForTests();
const folder = mkdtempSync(join(tmpdir(), 'certify-order-docker-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(engine.kind === 'none')(
  `one file in containers and on virtual time${engine.kind === 'none' ? ` (skipped: ${engine.why})` : ''}`,
  () => {
    it('plays the same events in the same order', async () => {
      expectSameOrder('docker', await orderOn('docker', folder), await orderOnSimulator(folder));
    });
  },
);
