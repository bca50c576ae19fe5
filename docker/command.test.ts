import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { runBash, runCommand } from './command.ts';

const home = mkdtempSync(join(tmpdir(), 'command-'));
writeFileSync(join(home, '.bashrc'), 'echo noise\n');
afterAll(() => rmSync(home, { recursive: true, force: true }));

describe('commands of the host', () => {
  it('reads nothing of the user before a script', async () => {
    vi.stubEnv('HOME', home);
    vi.stubEnv('SHLVL', '0');
    vi.stubEnv('BASH_ENV', join(home, '.bashrc'));
    try {
      expect(await runBash('echo $((6 * 7))', 60_000)).toMatchObject({ exitCode: 0, stdout: '42\n' });
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('tells an exit code, a program that is not there, and one that takes too long', async () => {
    expect(await runBash('exit 3', 60_000)).toMatchObject({ exitCode: 3, timedOut: false });
    const missing = await runCommand('no-such-program-of-ours', []);
    expect(missing).toMatchObject({ exitCode: -1, timedOut: false });
    expect(missing.stderr).toContain('ENOENT');
    expect(await runBash('exec sleep 600', 300)).toMatchObject({ exitCode: -1, timedOut: true });
  });
});
