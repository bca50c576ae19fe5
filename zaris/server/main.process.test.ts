/** The node as a process: wrong settings, a taken port, a graceful end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const entry = new URL('./main.ts', import.meta.url).pathname;
let directory = '';
const started: Run[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'zaris-main-'));
});
afterEach(async () => {
  for (const node of started.splice(0)) {
    node.child.kill('SIGKILL');
    // A dying node may still write.
    await node.closed;
  }
  await rm(directory, { recursive: true, force: true });
});

interface Run {
  readonly child: ChildProcess;
  /** Ended, and all of its output has come. */
  readonly closed: Promise<unknown>;
  readonly text: () => string;
  readonly errors: () => string;
}

function run(settings: Record<string, string>, flags: readonly string[] = []): Run {
  const ports = { ZARIS_HOST: '127.0.0.1', ZARIS_CLIENT_PORT: '0', ZARIS_CLUSTER_PORT: '0', ZARIS_HTTP_PORT: '0' };
  const env = { PATH: process.env['PATH'], ...ports, ...settings };
  const child = spawn(process.execPath, [entry, ...flags], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(child, 'close');
  let text = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const made = { child, closed, text: () => text, errors: () => errors };
  started.push(made);
  return made;
}

async function exitCode({ child, closed }: Run): Promise<number | null> {
  await closed;
  return child.exitCode;
}

async function says(node: Run, words: string): Promise<void> {
  for (const endMs = performance.now() + 60_000; !node.text().includes(words);) {
    if (performance.now() > endMs || node.child.exitCode !== null)
      throw new Error(`never said "${words}": ${node.text()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('zaris/server/main.ts', () => {
  it.each([
    [{}, [], /ZARIS_NODE_ID is not set/],
    [{ ZARIS_NODE_ID: 'n1' }, [], /ZARIS_DATA_DIR is not set/],
    [{ ZARIS_NODE_ID: 'n1', ZARIS_DATA_DIR: '/nowhere', ZARIS_PEERS: 'n2' }, [], /ZARIS_PEERS has "n2"/],
    [{ ZARIS_DATA_DIR: '/nowhere' }, ['--node-id', 'n 1'], /ZARIS_NODE_ID is "n 1"/],
  ])('wrong usage %j %j is one sentence and exit 64', async (settings, flags, sentence) => {
    const node = run(settings, flags);
    expect(await exitCode(node)).toBe(64);
    expect(node.errors()).toMatch(sentence);
    expect(node.errors().trim().split('\n')).toHaveLength(1);
  });

  it('ends with 0 on SIGTERM', async () => {
    const node = run({ ZARIS_NODE_ID: 'n1', ZARIS_DATA_DIR: directory });
    await says(node, 'a node starts');
    node.child.kill('SIGTERM');
    expect(await exitCode(node)).toBe(0);
    expect(node.text()).toContain('a node ends');
  });

  it('refuses a control log that it cannot trust', async () => {
    await writeFile(join(directory, 'control.log'), 'something else entirely');
    const node = run({ ZARIS_NODE_ID: 'n1', ZARIS_DATA_DIR: directory });
    expect(await exitCode(node)).toBe(1);
    expect(node.text()).toContain('no control log of this version');
  });

  it('refuses a port that is taken', async () => {
    const first = run({ ZARIS_NODE_ID: 'n1', ZARIS_DATA_DIR: join(directory, 'a') });
    await says(first, 'a node starts');
    const [, port] = /"client":(\d+)/.exec(first.text()) as RegExpExecArray;
    const second = run({
      ZARIS_NODE_ID: 'n2',
      ZARIS_DATA_DIR: join(directory, 'b'),
      ZARIS_CLIENT_PORT: port as string,
    });
    expect(await exitCode(second)).toBe(1);
    expect(second.text()).toContain('EADDRINUSE');
  });
});
