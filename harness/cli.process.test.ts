import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-cli-'));
  writeFileSync(join(folder, 'a-file'), '');
  writeFileSync(join(folder, 'bad-schedule.json'), '{"events": 7}');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the program; its verdict file must say the same as its exit code. */
function certify(
  words: readonly string[],
  environment: Record<string, string> = {},
): { code: number | null; out: string; error: string } {
  const verdictFile = join(folder, `verdict-${Math.random()}`);
  const env = { ...process.env, ZARIS_VERDICT_FILE: verdictFile, ...environment };
  const result = spawnSync(process.execPath, [join(import.meta.dirname, 'main.ts'), ...words], {
    encoding: 'utf8',
    env,
    cwd: folder,
  });
  expect(Number(readFileSync(verdictFile, 'utf8'))).toBe(result.status);
  return { code: result.status, out: result.stdout, error: result.stderr };
}

describe('the program on bad input: one sentence, exit 64', { timeout: 120_000 }, () => {
  it.each([
    [['--rf', '0'], /--rf must be a whole number/],
    [['--rf', '9'], /--rf 9 needs at least 9 nodes, but --nodes is 5/],
    [['--duration', '4x'], /--duration must be a duration such as/],
    [['--no-such-flag'], /no option or command "no-such-flag"/],
    [['--schedule', 'bad-schedule.json'], /bad-schedule.json cannot be used/],
    [['--results', 'a-file/results'], /results folder .* cannot be written/],
    [['verify', 'no-such-run'], /no run "no-such-run"/],
    [['selftest', '--cluster', 'docker', '--only', 'no-such-store'], /no broken store "no-such-store"/],
  ])('%j', (words, expected) => {
    const { code, out, error } = certify(words);
    expect(error).toMatch(expected);
    expect(error.trim().split('\n')).toHaveLength(1);
    expect(error).toMatch(/\.\n$/);
    expect(code).toBe(64);
    expect(out).toBe('');
  });

  it('says environment, exit 4, in one sentence when the engine is dead', () => {
    const { code, out } = certify(['--duration', '5s', '--results', 'dead'], {
      DOCKER_HOST: `unix://${folder}/no-engine.sock`,
    });
    expect(code).toBe(4);
    expect(out).toMatch(/No Docker engine answers/);
  });

  it('so does the self-test, before it plays anything', () => {
    const { code, out, error } = certify(['selftest', '--cluster', 'docker', '--results', 'dead-too'], {
      DOCKER_HOST: `unix://${folder}/no-engine.sock`,
    });
    expect(code).toBe(4);
    expect(error).toMatch(/^certify: No Docker engine answers [^\n]*\.\n$/);
    expect(out).toBe('');
    expect(existsSync(join(folder, 'dead-too'))).toBe(false);
  });

  it('prints help with examples and exit codes, exit 0', () => {
    const { code, out } = certify(['--help']);
    expect(code).toBe(0);
    for (const words of [
      '--duration',
      '--rf',
      'Exit codes',
      '130',
      'certify --duration 4h --rf 3',
      'verify [run]',
      'resume <run>',
      'export <run>',
      'reproduce <run>',
    ])
      expect(out).toContain(words);
  });

  it('lists an empty results folder, exit 0', () => {
    expect(certify(['list', '--results', 'nothing'])).toMatchObject({
      code: 0,
      out: 'There are no runs in nothing.\n',
    });
  });
});
