import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Command, parseCommandLine } from './cli.ts';
import { movesClocks, scheduleOf } from './schedule.ts';
import type { RunSettings } from './settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'schedule-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function settingsOf(...words: string[]): Promise<RunSettings> {
  const command = (await parseCommandLine(words, '1')) as Extract<Command, { kind: 'run' }>;
  return command.settings;
}

function file(name: string, kind: string): string {
  const path = join(folder, `${name}.json`);
  const fault = kind === 'clock' ? { kind, offsetMs: 60_000 } : { kind };
  const event = { at: '5s', fault, target: 'n1', durationMs: '2s' };
  writeFileSync(path, JSON.stringify({ durationMs: '30s', events: [event] }));
  return path;
}

describe('whether a run may move clocks', () => {
  it.each([
    [['--faults', 'kill,clock'], true],
    [['--faults', 'kill'], false],
    [['--chaos', 'standard'], false],
    [['--chaos', 'brutal'], true],
    [['--chaos', 'brutal', '--faults', 'kill'], false],
    [['--chaos', 'none', '--faults', 'clock'], false],
    [['--schedule', file('moves', 'clock')], true],
    [['--schedule', file('kills', 'kill')], false],
  ])('%j: %s', async (words, moves) => {
    expect(movesClocks(await settingsOf(...words))).toBe(moves);
  });

  it('is so for whatever schedule has such a fault', async () => {
    const settings = await settingsOf('--chaos', 'brutal', '--duration', '30m', '--seed', '7');
    const kinds = scheduleOf(settings, new Map()).events.map(({ fault }) => fault.kind);
    expect(kinds).toContain('clock');
  });
});
