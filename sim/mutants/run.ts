/**
 * `node sim/mutants/run.ts [--hazard N] [--name TEXT]`: breaks one rule at a time in a copy of the sources and runs that hazard's
 * tests there, which must fail by the assertion that the catalogue names; then puts back the bug of each kept counterexample, whose
 * replay must be red. Exit code 0 only if every mutant is caught so. `--counterexamples` does the latter alone.
 *
 * Invariant: the sources of this checkout are only read. The unchanged copy, with the store's asserts off, must pass first: else a
 * failure would say nothing.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { mutants } from './catalogue.ts';
import { type KeptBug, keptBugs } from './of-counterexamples.ts';
import { applyEdit, assertsOff, type Edit, type Mutant } from './mutant.ts';

/** Wall time of one run of the tests, ms: a mutant may make the nodes run in circles. */
const runBoundMs = 300_000;
const copied = [
  'lib',
  'zaris',
  'workloads',
  'chaos',
  'ledger',
  'harness',
  'docker',
  'sim',
  'regressions',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
];
const root = join(import.meta.dirname, '..', '..');
const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface TestResult {
  readonly fullName: string;
  readonly status: string;
  readonly failureMessages?: readonly string[];
}

function copySources(): string {
  const folder = mkdtempSync(join(tmpdir(), 'zaris-mutants-'));
  for (const name of copied) {
    const from = join(root, name);
    if (!existsSync(from)) continue;
    cpSync(from, join(folder, name), {
      recursive: true,
      filter: (source) => !['node_modules', 'results'].includes(basename(source)),
    });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** Results of the tests whose name matches; throws where they could not be run at all. */
function runTests(folder: string, pattern: string): TestResult[] {
  const output = join(folder, 'report.json');
  rmSync(output, { force: true });
  const runner = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const reporter = ['--reporter=json', `--outputFile.json=${output}`];
  const args = [runner, 'run', '--root', folder, '--project', 'sim', 'sim/hazards', '-t', pattern, ...reporter];
  const { stderr, stdout } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    timeout: runBoundMs,
    env: { ...process.env, CI: '1' },
  });
  if (!existsSync(output)) throw new Error(`the tests did not run: ${stderr || stdout}`);
  const report = JSON.parse(readFileSync(output, 'utf8')) as {
    testResults: { status: string; message?: string; assertionResults: TestResult[] }[];
  };
  for (const { status, message, assertionResults } of report.testResults) {
    if (status === 'failed' && assertionResults.length === 0) throw new Error(`a test file did not load: ${message}`);
  }
  return report.testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'passed' || status === 'failed');
}

/** Applies edits in the copy for as long as `during` runs. */
function withEdits<T>(folder: string, edits: readonly Edit[], during: () => T): T {
  const before = new Map<string, string>();
  try {
    for (const edit of edits) {
      const path = join(folder, edit.file);
      const text = readFileSync(path, 'utf8');
      if (!before.has(path)) before.set(path, text);
      writeFileSync(path, applyEdit(text, edit));
    }
    return during();
  } finally {
    for (const [path, text] of before) writeFileSync(path, text);
  }
}

const patternOf = (hazard: number): string => `\\b${hazard}\\. `;
const firstLine = (message: string): string => message.split('\n')[0] ?? '';

interface Verdict {
  readonly caught: boolean;
  readonly text: string;
}

/** Did the named test fail with the named message? */
function judge(results: readonly TestResult[], test: string, message: string): Verdict {
  const failed = results.filter(({ status }) => status === 'failed');
  if (failed.length === 0) return { caught: false, text: `survives: ${results.length} tests passed` };
  for (const result of failed) {
    const found = result.failureMessages?.find((text) => text.includes(message));
    if (found !== undefined && result.fullName.includes(test)) return { caught: true, text: firstLine(found) };
  }
  const others = failed.map(({ fullName, failureMessages }) => `${fullName}: ${firstLine(failureMessages?.[0] ?? '')}`);
  return { caught: false, text: `red, but not as expected: ${others.join(' | ')}` };
}

function tryMutant(folder: string, mutant: Mutant): Verdict {
  const run = (edits: readonly Edit[]): TestResult[] =>
    withEdits(folder, edits, () => runTests(folder, patternOf(mutant.hazard)));
  try {
    const verdict = judge(run([...assertsOff, ...mutant.edits]), mutant.test, mutant.red);
    if (!verdict.caught || mutant.asserted === undefined) return verdict;
    const asserted = judge(run(mutant.edits), '', mutant.asserted);
    if (!asserted.caught) return { caught: false, text: `its assert is silent: ${asserted.text}` };
    return { caught: true, text: `${verdict.text}; asserted too: ${asserted.text}` };
  } catch (error) {
    return { caught: false, text: (error as Error).message };
  }
}

/** Replays a counterexample with its bug put back. */
function tryCounterexample(folder: string, { counterexample, edits, red }: KeptBug): Verdict {
  try {
    const { status, stdout, stderr } = withEdits(folder, edits, () =>
      spawnSync(
        process.execPath,
        ['harness/main.ts', 'sim', '--replay', join('regressions', `${counterexample}.json`)],
        { cwd: folder, encoding: 'utf8', timeout: runBoundMs },
      ),
    );
    const said = stdout.split('\n').find((line) => line.startsWith('It ')) ?? firstLine(stderr);
    return { caught: status === 1 && said.includes(red), text: said };
  } catch (error) {
    return { caught: false, text: (error as Error).message };
  }
}

/** Every kept counterexample with its bug put back; returns how many stay green. */
function tryCounterexamples(folder: string): number {
  let survivors = 0;
  for (const bug of keptBugs) {
    const { caught, text } = tryCounterexample(folder, bug);
    if (!caught) survivors += 1;
    say(`${caught ? 'red     ' : 'SURVIVED'} ${bug.counterexample}`);
    say(`             ${text}`);
  }
  say(`${keptBugs.length - survivors} of ${keptBugs.length} counterexamples are red with their bug put back`);
  return survivors;
}

function main(): number {
  const { values } = parseArgs({
    options: {
      hazard: { type: 'string' },
      name: { type: 'string' },
      counterexamples: { type: 'boolean', default: false },
    },
  });
  const chosen = mutants.filter(
    ({ hazard, name }) =>
      (values.hazard === undefined || String(hazard) === values.hazard) &&
      (values.name === undefined || name.includes(values.name)),
  );
  const folder = copySources();
  let survivors = 0;
  let stale = 0;
  try {
    const isAll = values.hazard === undefined && values.name === undefined;
    if (isAll || values.counterexamples) stale = tryCounterexamples(folder);
    if (values.counterexamples) return stale === 0 ? 0 : 1;
    const pattern = values.hazard === undefined ? '\\d+\\. ' : patternOf(Number(values.hazard));
    const baseline = withEdits(folder, assertsOff, () => runTests(folder, pattern));
    const failing = baseline.filter(({ status }) => status !== 'passed');
    if (failing.length > 0 || baseline.length === 0) {
      say(`FAILED: the unchanged sources fail already: ${failing.map(({ fullName }) => fullName).join(', ')}`);
      return 1;
    }
    for (const mutant of chosen) {
      const startedMs = performance.now();
      const { caught, text } = tryMutant(folder, mutant);
      if (!caught) survivors += 1;
      const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
      say(`${caught ? 'red     ' : 'SURVIVED'} ${String(mutant.hazard).padStart(2)}  ${mutant.name}  (${seconds} s)`);
      say(`             rule: ${mutant.rule}`);
      say(`             ${text}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  say(`${chosen.length - survivors} of ${chosen.length} mutants are caught by their hazard's test`);
  return survivors === 0 && stale === 0 && chosen.length > 0 ? 0 : 1;
}

process.exitCode = main();
