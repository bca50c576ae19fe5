import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Command, parseCommandLine } from './cli.ts';
import { absentRolesOf, movesClocks, scheduleOf } from './schedule.ts';
import type { SystemStatus } from '../chaos/ports.ts';
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

describe('roles', () => {
  const statusOf = (preferredPrimary: string | null): SystemStatus => ({
    atMs: 0,
    leader: 'n1',
    voters: [],
    nodes: [],
    minInSync: 2,
    partitions: [
      {
        partition: 0,
        epoch: 1,
        term: 1,
        primary: 'n1',
        preferredPrimary,
        replicas: [],
        inSync: [],
        eligible: [],
        joining: [],
        health: 'Healthy',
        serving: true,
      },
    ],
  });

  it('that nobody has are not drawn: what cannot happen is no missing evidence', async () => {
    const settings = await settingsOf('--chaos', 'standard', '--duration', '30m', '--seed', '7');
    const drawn = (status: SystemStatus | null): string[] =>
      scheduleOf(settings, new Map(), absentRolesOf(status)).events.map(({ target }) => target.kind);
    expect(drawn(statusOf(null))).not.toContain('preferred-primary');
    expect(drawn(statusOf(null))).toContain('primary');
    expect(drawn(statusOf('n1'))).toContain('preferred-primary');
    expect(drawn(null)).toEqual(drawn(statusOf('n1')));
  });
});
