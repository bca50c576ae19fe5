/** `kill -9` of the harness at any moment: the ledger opens, no node stays behind, and the run can be judged. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-death-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = join(import.meta.dirname, 'main.ts');
/** How long nodes may take to notice that their harness is gone, ms: seconds, where the machine gives them any time. */
const noticeMs = 30_000;
const moments = 4;
const seed = 20_261;

/** Processes whose environment names this run's folder; Linux only. */
function nodesOf(resultsDir: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/environ`, 'utf8').includes(`ZARIS_DATA_DIR=${resultsDir}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function killedAfter(atMs: number, resultsDir: string): Promise<void> {
  const schedule = join(folder, 'schedule.json');
  // A pause that is open most of the time: a frozen node cannot notice anything itself.
  const events = [
    { id: 'F1', at: '200ms', fault: 'pause', target: 'node:n2', durationMs: 9_000 },
    { id: 'F2', at: '9500ms', fault: 'kill', target: 'node:n1', durationMs: 2_000 },
  ];
  writeFileSync(schedule, JSON.stringify({ version: 1, durationMs: 14_000, healFromMs: 12_000, events }));
  const words = `--cluster process --nodes 3 --partitions 16 --sessions 8 --rate 300 --duration 14s --schedule ${schedule} --results ${resultsDir}`;
  const child = spawn(process.execPath, [program, ...words.split(' ')], { stdio: 'ignore' });
  await new Promise((resolve) => setTimeout(resolve, atMs));
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

async function gone(resultsDir: string): Promise<number[]> {
  const untilMs = performance.now() + noticeMs;
  let left = nodesOf(resultsDir);
  while (left.length > 0 && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    left = nodesOf(resultsDir);
  }
  return left;
}

describe.skipIf(process.platform !== 'linux')('kill -9 of the harness', { timeout: 300_000 }, () => {
  const prng = new Prng(seed);
  const times = Array.from({ length: moments }, (_, index) => Math.round(1_000 + index * 3_500 + prng.float() * 3_500));
  it.each(times)('after %d ms leaves no node, and a ledger that can be judged', async (atMs) => {
    const resultsDir = join(folder, `r${atMs}`);
    await killedAfter(atMs, resultsDir);
    expect(await gone(resultsDir)).toEqual([]);
    if (!existsSync(join(resultsDir, 'latest', 'ledger.sqlite'))) return;
    const again = (command: string) =>
      spawnSync(process.execPath, [program, command, 'latest', '--results', resultsDir], { encoding: 'utf8' });
    const resumed = again('resume');
    expect(resumed.stdout + resumed.stderr).toMatch(
      /cannot go on \(its local processes ended with the harness\)|ended before it had begun/,
    );
    const judged = again('verify');
    // Nothing is certified, and nothing is held against the store.
    expect([3, 64], judged.stdout + judged.stderr).toContain(judged.status);
    expect(judged.stdout + judged.stderr).toMatch(/did not reach the end of the run|empty/);
  });
});
