/**
 * `npm test`: static checks, then every test project, then one closing line counted from the runner's own results.
 *
 * Invariant: the exit code is 0 only if every step ran and none failed. A step that could not start counts as failed; were it
 * skipped in silence, a green line would mean nothing.
 *
 * Arguments: `--full` adds the long sweeps and the mutants (every hazard's test goes red without its rule); `--only NAME` runs one
 * project (unit, sim, process, browser, docker, full) without the static checks.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installBrowser } from './browser.ts';
import { connectEngine, ensureEngine, installDebianPackages } from '../docker/engine.ts';
import { ensureNodeImage } from '../docker/image.ts';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly numFailedTestSuites: number;
  readonly success: boolean;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const args = process.argv.slice(2);
const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : undefined;
const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
const broken: string[] = [];

function runStep(name: string, command: readonly string[]): boolean {
  const [program, ...rest] = command;
  const startedMs = performance.now();
  const result = spawnSync(program ?? '', rest, { stdio: ['ignore', 'inherit', 'inherit'] });
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  const ok = result.status === 0;
  say(`${ok ? 'ok' : 'FAILED'}: ${name} (${seconds} s)`);
  return ok;
}

function staticChecks(): void {
  const steps: [string, string[]][] = [
    ['type check', ['tsc', '-p', '.', '--noEmit']],
    ['type check of the report page', ['tsc', '-p', 'harness/report/browser', '--noEmit']],
    ['lint, with the import table and the purity of the cores', ['oxlint', '--type-aware', '--deny-warnings']],
    ['format', ['oxfmt', '--check']],
    ['unused files, exports and packages', ['knip']],
  ];
  for (const [name, command] of steps) if (!runStep(name, command)) broken.push(name);
}

function runProjects(projects: readonly string[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'zaris-tests-'));
  const output = join(folder, 'report.json');
  const chosen = projects.flatMap((project) => ['--project', project]);
  const result = spawnSync(
    'vitest',
    ['run', ...chosen, '--reporter=default', '--reporter=json', `--outputFile.json=${output}`],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, CI: '1' },
    },
  );
  try {
    const report = JSON.parse(readFileSync(output, 'utf8')) as VitestReport;
    counts.passed += report.numPassedTests;
    counts.failed += report.numFailedTests;
    counts.skipped += report.numPendingTests + report.numTodoTests;
    for (const file of report.testResults) {
      if (file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed')) {
        broken.push(`${file.name} did not run: ${file.message ?? ''}`);
      }
    }
    for (const file of report.testResults) {
      const skipped = file.assertionResults.filter((test) => test.status !== 'passed' && test.status !== 'failed');
      for (const test of skipped) say(`skipped: ${test.fullName}`);
    }
    if (result.status !== 0 && report.success)
      broken.push(`the runner of ${projects.join(', ')} exited with ${result.status}`);
  } catch (error) {
    broken.push(`${projects.join(', ')}: no results (${(error as Error).message})`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Engine, image and browser; where one cannot be had its tests skip themselves, counted and named. */
async function setUpWorlds(): Promise<void> {
  try {
    const { docker } = await connectEngine().catch(() => ensureEngine({ say }));
    await ensureNodeImage({ docker, projectDir: join(import.meta.dirname, '..'), say });
  } catch (error) {
    say(`no containers: ${(error as Error).message}`);
    if (process.env['CI'] !== undefined)
      broken.push('the container engine could not be had, and CI must not go without it');
  }
  await installBrowser({ say, installDebianPackages }).catch((error: unknown) => say(`no browser: ${String(error)}`));
}

if (only === undefined) staticChecks();
await setUpWorlds();
if (only === undefined) {
  runProjects(['unit', 'sim', 'process', 'browser']);
  runProjects(['docker']);
  if (args.includes('--full')) {
    runProjects(['full']);
    const name = 'every hazard goes red without its rule';
    if (!runStep(name, ['node', 'sim/mutants/run.ts'])) broken.push(name);
  }
} else {
  runProjects([only]);
}
for (const name of broken) say(`FAILED: ${name}`);
counts.failed += broken.length;
if (counts.passed === 0 && counts.failed === 0) {
  say('FAILED: not one test ran');
  counts.failed = 1;
}
process.exitCode = counts.failed === 0 ? 0 : 1;
say(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
