import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseCommandLine } from '../cli.ts';
import type { RunSettings } from '../settings.ts';
import { storedSettings } from '../stored-settings.ts';
import { replayCommand } from './replay-command.ts';

const results = mkdtempSync(join(tmpdir(), 'replay results-'));
mkdirSync(join(results, 'RUN'));
writeFileSync(join(results, 'RUN', 'schedule.json'), '{}');
afterAll(() => rmSync(results, { recursive: true }));

async function parse(words: readonly string[]): Promise<RunSettings> {
  const command = await parseCommandLine(words, '0');
  if (command.kind !== 'run') throw new Error(`not a run but ${command.kind}`);
  return command.settings;
}

/** The words that a real shell makes of the command, without its `npm run certify --`. */
function throughShell(command: string): string[] {
  const args = command.replace('npm run certify -- ', '');
  return execFileSync('sh', ['-c', `printf '%s\\0' ${args}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);
}

describe('the replay command', () => {
  const given = [
    ...['--duration', '45s', '--rf', '3', '--nodes', '7', '--partitions', '16', '--min-in-sync', '1', '--seed', '0xb'],
    ...['--cluster', 'process', '--rate', '800', '--sessions', '9', '--workload', 'set:2,counters:1', '--keys', 'zipf'],
    ...['--read-ratio', '0.5', '--value-bytes', '200', '--active-keys', '17', '--key-operations', '33'],
    ...['--max-keys', '5000', '--max-operations', '1000', '--beyond-budget', '--on-loss', 'stop'],
    ...[
      '--node-entry',
      'sim/broken/main.ts',
      '--node-env',
      "A=it's $HOME; b",
      '--node-env',
      'B=',
      '--contract',
      'declared',
    ],
  ];

  it.each([
    ['defaults', ['--seed', '7']],
    ['everything', given],
    ['no limit to the rate', ['--seed', '7', '--rate', 'max']],
  ])('pasted into a shell gives the same run: %s', async (_, words) => {
    const settings = await parse([...words, '--results', results]);
    const command = replayCommand(storedSettings(settings), `0x${settings.seed.toString(16)}`, 'RUN');
    const again = await parse([...throughShell(command), '--results', results]);
    expect(again).toEqual({ ...settings, scheduleFile: join(results, 'RUN', 'schedule.json') });
  });
});
