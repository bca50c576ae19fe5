import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Command, parseCommandLine } from './cli.ts';
import { judgeExpectation, withScenario } from './scenario.ts';
import type { RunSettings } from './settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'scenario-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
function file(schedule: object): string {
  const path = join(folder, `${++count}.json`);
  writeFileSync(path, JSON.stringify({ durationMs: '90s', events: [], ...schedule }));
  return path;
}

async function settingsOf(...words: string[]): Promise<RunSettings> {
  const command = (await parseCommandLine(words, '1')) as Extract<Command, { kind: 'run' }>;
  return command.settings;
}

const scenario = {
  workload: { name: 'registers', sessions: 16, rate: 300 },
  cluster: { nodes: 3, rf: 2, partitions: 8, ZARIS_SUSPECT_ESCALATION_MS: 4_000 },
};

describe('a scenario file', () => {
  it('says how long, what load and which cluster', async () => {
    const settings = await settingsOf('--schedule', file(scenario));
    expect(settings).toMatchObject({
      durationMs: 90_000,
      sessions: 16,
      ratePerSecond: 300,
      nodeCount: 3,
      replicationFactor: 2,
      partitionCount: 8,
      nodeEnvironment: { ZARIS_SUSPECT_ESCALATION_MS: '4000' },
    });
    expect(settings.mix).toHaveLength(1);
  });

  it('the command line wins', async () => {
    const words = [
      '--schedule',
      file(scenario),
      '--duration=2m',
      '--nodes',
      '5',
      '--node-env',
      'ZARIS_SUSPECT_ESCALATION_MS=9000',
    ];
    expect(await settingsOf(...words)).toMatchObject({
      durationMs: 120_000,
      nodeCount: 5,
      replicationFactor: 2,
      nodeEnvironment: { ZARIS_SUSPECT_ESCALATION_MS: '9000' },
    });
  });

  it('a setting that nothing knows is refused in one sentence with its place', async () => {
    await expect(settingsOf('--schedule', file({ workload: { sesions: 3 } }))).rejects.toThrow(
      /workload: unknown setting "sesions"; known: name, rate/,
    );
    await expect(settingsOf('--schedule', file({ cluster: { rff: 3 } }))).rejects.toThrow(
      /cluster: unknown setting "rff"/,
    );
    // And what the option itself refuses stays refused.
    await expect(settingsOf('--schedule', file({ cluster: { rf: 9 } }))).rejects.toThrow(
      '--rf 9 needs at least 9 nodes',
    );
  });

  it('other commands and files that cannot be read are left as they are', () => {
    for (const words of [
      ['list'],
      [],
      ['--schedule', '/no/such/file'],
      ['reproduce', 'latest', '--schedule', file(scenario)],
    ]) {
      expect(withScenario(words)).toEqual(words);
    }
  });
});

describe('what it expects', () => {
  it('is said, and a pass that was not expected does not pass', () => {
    expect(judgeExpectation(null, 'certified', 0)).toBeNull();
    expect(judgeExpectation('violated', 'violated', 1)).toMatchObject({
      exitCode: 1,
      line: 'As the scenario expects: violated.',
    });
    expect(judgeExpectation('certified', 'certified', 0)).toMatchObject({ exitCode: 0 });
    expect(judgeExpectation('violated', 'certified', 0)).toMatchObject({
      exitCode: 3,
      line: expect.stringContaining('NOT as') as unknown,
    });
    expect(judgeExpectation('certified', 'violated', 1)).toMatchObject({ exitCode: 1 });
  });
});
