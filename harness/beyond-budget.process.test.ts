/** Runs past the fault budget on local processes: the loss counts, and passes only where it was asked for and is permitted. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-beyond-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function certify(
  name: string,
  schedule: object,
  ...words: string[]
): Promise<{ code: number | null; lines: string[] }> {
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(schedule));
  const common = ['--cluster', 'process', '--results', join(folder, 'results'), '--schedule', file, '--seed', '7'];
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), ...common, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  const text = out.replaceAll(/\u001b\[[0-9;]*m/g, '');
  return { code, lines: text.split('\n') };
}

/** Three of five nodes at once take every copy of some partitions; a later fault that all can survive gives evidence. */
const threeAtOnce = {
  durationMs: '32s',
  healFromMs: '28s',
  events: [
    { id: 'past', at: '5s', fault: 'kill', target: 'random:3', durationMs: '2s' },
    { id: 'within', at: '15s', fault: 'kill', target: 'random', durationMs: '5s' },
  ],
};

describe('--beyond-budget', { timeout: 180_000 }, () => {
  it('every holder at once, durable: violated', async () => {
    const schedule = {
      durationMs: '14s',
      healFromMs: '12s',
      events: [{ at: '4s', fault: 'kill', target: 'all', durationMs: '2s' }],
    };
    const { code, lines } = await certify(
      'all',
      schedule,
      '--beyond-budget',
      '--duration',
      '14s',
      '--rate',
      '300',
      '--partitions',
      '8',
    );
    expect(lines.filter((line) => line.includes('NOT CERTIFIED'))).toEqual([
      '✕ NOT CERTIFIED · VIOLATED  (process cluster, exit 1)',
    ]);
    expect(lines.some((line) => /\d acknowledged writes were lost/.test(line))).toBe(true);
    expect(code).toBe(1);
  });

  it('under the declared contract the loss is named first, and permitted', async () => {
    const { code, lines } = await certify(
      'three',
      threeAtOnce,
      '--beyond-budget',
      '--contract',
      'declared',
      '--duration',
      '32s',
      '--rate',
      '600',
      '--partitions',
      '16',
    );
    const first = lines.findIndex((line) => line === '') + 1;
    expect(lines[first]).toMatch(
      /^! \d+ writes lost.*, permitted by contract declared {2}\(process cluster, exit 0\)$/,
    );
    expect(code).toBe(0);
  });

  it('without it the same file kills no more than the contract survives, and nothing is lost', async () => {
    const { code, lines } = await certify(
      'within',
      threeAtOnce,
      '--contract',
      'declared',
      '--duration',
      '32s',
      '--rate',
      '600',
      '--partitions',
      '16',
    );
    expect(
      lines.some((line) => line.includes('CERTIFIED  (process cluster, exit 0)') || line.includes('INCONCLUSIVE')),
    ).toBe(true);
    expect(lines.some((line) => /\d writes? (was|were) lost|writes lost/.test(line))).toBe(false);
    expect([0, 3]).toContain(code);
  });
});
