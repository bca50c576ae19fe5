/** Test projects by the suffix that names their world: pure, sim, process, browser, docker; and the long sweeps apart. */
import { defineConfig } from 'vitest/config';

const worlds = ['sim', 'process', 'docker', 'browser', 'full'] as const;
/** What sockets, timers, browsers and processes do shows when it shows; only a test that fails anyway waits so long. */
const patience = { poll: { timeout: 10_000 } };
const exclude = ['node_modules/**', 'results/**', '.cache/**'];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          expect: patience,
          include: ['**/*.test.ts'],
          exclude: [...exclude, ...worlds.map((world) => `**/*.${world}.test.ts`)],
          testTimeout: 60_000,
        },
      },
      { test: { name: 'sim', include: ['**/*.sim.test.ts'], exclude, testTimeout: 300_000 } },
      {
        test: {
          name: 'process',
          expect: patience,
          include: ['**/*.process.test.ts'],
          exclude,
          testTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'browser',
          expect: patience,
          include: ['**/*.browser.test.ts'],
          exclude,
          testTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'docker',
          expect: patience,
          include: ['**/*.docker.test.ts'],
          exclude,
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
      {
        test: { name: 'full', include: ['**/*.full.test.ts'], exclude, testTimeout: 3_600_000, fileParallelism: false },
      },
    ],
  },
});
