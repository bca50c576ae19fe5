/** The example of the guide, run as the guide says: conformance, then a short certified run, through the command line. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { shapeProblems } from '../../../harness/conformance/shape.ts';
import { system as template } from '../template.ts';

const projectDir = join(import.meta.dirname, '../../..');
const adapter = join(import.meta.dirname, 'adapter.ts');
const results = mkdtempSync(join(tmpdir(), 'tiny-map-'));
afterAll(() => rmSync(results, { recursive: true, force: true }));

function certify(...words: string[]) {
  const done = spawnSync(process.execPath, [join(projectDir, 'harness/main.ts'), ...words], {
    cwd: projectDir,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}` },
  });
  return { exitCode: done.status, text: `${done.stdout}${done.stderr}` };
}

describe('the guide’s example', () => {
  it('is as short as the guide says', () => {
    expect(readFileSync(adapter, 'utf8').split('\n').length).toBeLessThan(101);
  });

  it('passes the conformance test', () => {
    const { exitCode, text } = certify('conformance', adapter, '--cluster', 'process');
    expect(text).toContain('tiny-map keeps to the port');
    expect(exitCode).toBe(0);
  }, 120_000);

  it('is certified over pauses, with what it does not offer named', () => {
    const run = [
      '--cluster',
      'process',
      '--duration',
      '15s',
      '--faults',
      'pause',
      '--min-failovers',
      '0',
      '--min-acked-per-fault',
      '4',
      '--rate',
      '400',
      '--sessions',
      '8',
    ];
    const { exitCode, text } = certify('--system', adapter, ...run, '--seed', '7', '--results', results);
    expect(text).toContain('CERTIFIED  (process cluster, exit 0)');
    expect(exitCode).toBe(0);
    const [runId = ''] = readdirSync(results).filter((name) => name !== 'latest');
    const report = readFileSync(join(results, runId, 'report.md'), 'utf8');
    expect(report).toContain('The workload counters was left out: tiny-map does not offer counters.');
  }, 240_000);

  it('is refused with a sentence when the file is no adapter', () => {
    const { exitCode, text } = certify('--system', join(import.meta.dirname, 'server-that-is-not-there.ts'));
    expect(text).toMatch(/^certify: There is no file /);
    expect(exitCode).toBe(64);
  });

  it('has a template that is an adapter by its shape', () => {
    expect(shapeProblems(template)).toEqual([]);
  });
});
