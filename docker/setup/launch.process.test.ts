import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const program = `
const [what, code] = process.argv.slice(2);
const say = (verdict) => require('node:fs').writeFileSync(process.env.ZARIS_VERDICT_FILE, verdict + '\\n');
if (what === 'judge') { say(code); process.exit(Number(code)); }
if (what === 'lie') { say('0'); process.exit(Number(code)); }
if (what === 'silent') process.exit(Number(code));
if (what === 'throw') throw new Error('boom');
if (what === 'die') process.kill(process.pid, code);
if (what === 'show') { console.log(JSON.stringify([process.env.PATH.split(':')[0], process.env.TESTCONTAINERS_RYUK_DISABLED, process.argv.slice(3)])); say(0); }
if (what === 'wait') {
  let signals = 0;
  process.on('SIGINT', () => { signals++; setTimeout(() => { console.log('signals ' + signals); say(130); process.exit(130); }, 200); });
  setTimeout(() => {}, 120000); console.log('waiting');
}
if (what === 'sleep') { setTimeout(() => {}, 120000); console.log('waiting'); }
`;

describe('the launcher', { timeout: 120_000 }, () => {
  let project: string;
  const lockText = '{"lockfileVersion": 3}';
  const stamp = () => join(project, 'node_modules', '.setup-stamp');

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), 'zaris-launcher-'));
    mkdirSync(join(project, 'docker', 'setup'), { recursive: true });
    mkdirSync(join(project, 'node_modules', '.bin'), { recursive: true });
    copyFileSync(join(import.meta.dirname, 'launch.mjs'), join(project, 'docker', 'setup', 'launch.mjs'));
    symlinkSync(process.execPath, join(project, 'node_modules', '.bin', 'node'));
    writeFileSync(join(project, 'package-lock.json'), lockText);
    writeFileSync(stamp(), `${createHash('sha256').update(lockText).digest('hex')}\n`);
    writeFileSync(join(project, 'main.cjs'), program);
  });
  afterAll(() => rmSync(project, { recursive: true }));

  const argumentsOf = (args: readonly string[]) => [join(project, 'docker', 'setup', 'launch.mjs'), ...args];
  const launch = (...args: string[]) =>
    spawnSync(process.execPath, argumentsOf(args), { encoding: 'utf8', env: { ...process.env, npm_execpath: '' } });

  it.each([
    ['a verdict of 0', ['judge', '0'], 0],
    ['a verdict of 1', ['judge', '1'], 1],
    ['a usage error', ['judge', '64'], 64],
    ['success without a verdict', ['silent', '0'], 70],
    ['an uncaught error', ['throw'], 70],
    ['a code that is not the verdict', ['lie', '1'], 70],
    ['a crash', ['die', 'SIGSEGV'], 70],
    ['a kill that did not come through the launcher', ['die', 'SIGTERM'], 70],
  ])('ends %s as it should', (_what, args, code) => {
    expect(launch('--verdict', 'main.cjs', ...args).status).toBe(code);
  });

  it('passes any code on where no verdict is asked for', () => {
    expect(launch('main.cjs', 'silent', '3').status).toBe(3);
  });

  it('puts our programs first, turns the reaper off, and passes arguments as they are', () => {
    const shown: unknown = JSON.parse(launch('--verdict', 'main.cjs', 'show', '--a b', '', '*').stdout);
    expect(shown).toEqual([join(project, 'node_modules', '.bin'), 'true', ['--a b', '', '*']]);
  });

  it('passes one signal on once, also when the whole group gets it, and leaves no file', async () => {
    // A place of its own: others on this machine may be launched meanwhile.
    const place = mkdtempSync(join(project, 'tmp-'));
    const env = { ...process.env, TMPDIR: place };
    const child = spawn(process.execPath, argumentsOf(['--verdict', 'main.cjs', 'wait']), { detached: true, env });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await once(child.stdout, 'data');
    expect(readdirSync(place)).toHaveLength(1);
    process.kill(-(child.pid ?? 0), 'SIGINT');
    // Only then has all of the output come.
    expect(await once(child, 'close')).toEqual([130, null]);
    expect(output).toContain('signals 1');
    expect(readdirSync(place)).toEqual([]);
  });

  it('calls a program that dies of a forwarded signal interrupted', async () => {
    const child = spawn(process.execPath, argumentsOf(['--verdict', 'main.cjs', 'sleep']));
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([130, null]);
  });

  it('installs again when the lock file has changed, and says in one line when it cannot', () => {
    writeFileSync(join(project, 'package-lock.json'), '{"lockfileVersion": 3, "changed": true}');
    const failed = spawnSync(process.execPath, argumentsOf(['main.cjs', 'silent', '0']), {
      encoding: 'utf8',
      env: { ...process.env, npm_execpath: '', PATH: '/nonexistent' },
    });
    expect(failed.status).toBe(4);
    expect(failed.stderr).toContain('The dependencies could not be installed');
    expect(existsSync(join(project, '.cache', 'setup.lock'))).toBe(false);
    writeFileSync(join(project, 'package-lock.json'), lockText);
    expect(launch('main.cjs', 'silent', '0').status).toBe(0);
  });

  it('asks for an entry', () => {
    expect(launch().status).toBe(64);
  });
});
