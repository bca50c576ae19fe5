/** Ctrl-C ends `certify sim`, at once and with nothing left behind. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const entry = fileURLToPath(new URL('../main.ts', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'zaris-sim-command-'));
let child: ChildProcess | null = null;
afterEach(() => {
  child?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Waits until the program has said something that matches. */
async function said(program: ChildProcess, pattern: RegExp): Promise<string> {
  let text = '';
  // Read to the end: a program whose output nobody takes ends by that.
  return await new Promise((resolve, reject) => {
    program.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (pattern.test(text)) resolve(text);
    });
    program.stdout?.on('end', () => reject(new Error(`it never said ${String(pattern)}: ${text}`)));
  });
}

describe('certify sim', () => {
  it('ends at a signal with 130, and leaves no run and no unfinished ledger', async () => {
    child = spawn(process.execPath, [entry, 'sim', '--seed', '3', '--duration', '100h', '--results', folder]);
    const ended = once(child, 'exit');
    await said(child, /Seed 3: /);
    expect(readdirSync(folder).filter((name) => name.startsWith('.unfinished-'))).toHaveLength(1);
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
    expect(readdirSync(folder)).toEqual([]);
  }, 120_000);
});
