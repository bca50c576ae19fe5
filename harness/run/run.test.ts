import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EnvironmentError } from '../../docker/errors.ts';
import { silentLogger } from '../../lib/logger.ts';
import { parseCommandLine } from '../cli.ts';
import type { RunSettings } from '../settings.ts';
import { MemoryLedger } from '../testing/memory-ledger.ts';
import { MemoryWorld } from '../testing/memory-world.ts';
import { decideVerdict, exitCodeOf } from '../verdict.ts';
import { canaryKeys } from './canary.ts';
import { playChaos } from './chaos-control.ts';
import { openLedger } from '../../ledger/ledger.ts';
import { judgeFolder } from '../judge-folder.ts';
import { parseReport } from '../report/model.ts';
import { runTagOf } from './run-state.ts';
import { Interruption } from './interruption.ts';
import { certify } from './run.ts';
import type { RunEnd, World } from './world.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-run-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A short schedule: two kills and a pause, healed before the end. */
const schedule = {
  version: 1,
  durationMs: 5_000,
  healFromMs: 4_000,
  events: [
    { id: 'F1', at: '300ms', fault: 'kill', target: 'node:n1', durationMs: 700 },
    { id: 'F2', at: '1200ms', fault: 'pause', target: 'node:n2', durationMs: 600 },
    { id: 'F3', at: '2500ms', fault: 'kill', target: 'node:n3', durationMs: 600 },
  ],
};

async function settingsOf(duration = '5s', ...more: string[]): Promise<RunSettings> {
  const file = join(folder, 'schedule.json');
  writeFileSync(file, JSON.stringify(schedule));
  const chaos = more.includes('--chaos') ? [] : ['--schedule', file];
  const words = [
    '--duration',
    duration,
    '--partitions',
    '16',
    '--sessions',
    '8',
    '--rate',
    '800',
    '--seed',
    '5',
    ...chaos,
    '--results',
    join(folder, 'results'),
    ...more,
  ];
  const command = await parseCommandLine(words, '0');
  if (command.kind !== 'run') throw new Error('not a run');
  return command.settings;
}

/** Only a run that hangs takes so long. */
const patienceMs = 60_000;
let nextProcessId = 1;

interface Rig {
  readonly cluster: MemoryWorld;
  readonly ledger: MemoryLedger;
  readonly world: World;
  readonly interruption: Interruption;
  readonly printed: string[];
}

function rig(overrides: Partial<World> = {}): Rig {
  const cluster = new MemoryWorld(5);
  const ledger = new MemoryLedger();
  const interruption = new Interruption();
  const printed: string[] = [];
  const world: World = {
    system: cluster.asSystem(),
    clock: { nowMs: () => performance.now(), wallMs: () => Date.now() },
    logger: silentLogger,
    interruption,
    out: { write: (text: string) => printed.push(text) },
    processId: nextProcessId++,
    openLedger: async () => ledger,
    openCluster: async () => cluster.asRunCluster(),
    startChaos: playChaos,
    preliminary: async () => undefined,
    judge: async () => {
      const end = ledger.metas.get('end') as RunEnd;
      const verdict = decideVerdict(end.reasons);
      return {
        verdict,
        exitCode: exitCodeOf(verdict),
        headline: verdict,
        lines: end.reasons.map((each) => each.reason),
      };
    },
    ...overrides,
  };
  return { cluster, ledger, world, interruption, printed };
}

/** Resolves when so many operations of the load have begun: what a run has done tells where it is, and the clock does not. */
const begun = (ledger: MemoryLedger, count: number): Promise<void> =>
  expect.poll(() => ledger.intents.length, { timeout: patienceMs }).toBeGreaterThan(count);

const endOf = (ledger: MemoryLedger): RunEnd => ledger.metas.get('end') as RunEnd;

describe('a run, end to end, in memory', () => {
  it('goes through faults, reads everything back and ends certified', { timeout: 120_000 }, async () => {
    const { cluster, ledger, world, printed } = rig();
    const { folder: run, judged } = await certify(await settingsOf(), world);
    expect(judged.lines).toEqual([]);
    expect(judged.exitCode).toBe(0);
    expect(cluster.disposed).toBe(1);
    expect(ledger.closed).toBe(true);
    const confirmed = ledger.faults.filter((row) => row.stage === 'confirmed').map((row) => row.faultId);
    expect(confirmed.toSorted()).toEqual(['F1', 'F2', 'F3']);
    expect(ledger.epochChanges.filter((row) => row.kind === 'failover').length).toBeGreaterThanOrEqual(6);
    const writtenKeys = new Set(
      ledger.intents.filter((row) => row.operation.f !== 'read').map((row) => row.operation.key),
    );
    const readKeys = new Set(ledger.finalReads.filter((row) => row.completion.kind === 'ok').map((row) => row.key));
    expect([...writtenKeys].filter((key) => !readKeys.has(key))).toEqual([]);
    expect(endOf(ledger).readBack.done).toBe(endOf(ledger).readBack.expected);
    expect(endOf(ledger).replicas.answered).toBe(endOf(ledger).replicas.asked);
    expect(endOf(ledger).canaryDeleted).toEqual(canaryKeys());
    expect(endOf(ledger).canarySeenLive).toEqual(canaryKeys());
    expect(existsSync(run.schedule)).toBe(true);
    expect(JSON.parse(readFileSync(run.verdict, 'utf8'))).toMatchObject({ verdict: 'certified', exitCode: 0 });
    expect(readFileSync(join(folder, 'results', 'latest', 'verdict.json'), 'utf8')).toContain('certified');
    expect(printed.join('')).toMatch(/failovers \d+/);
  });

  it('ends early at a signal, judged, with exit 130 and nothing left', { timeout: 120_000 }, async () => {
    let preliminary = 0;
    const { cluster, ledger, world, interruption } = rig({
      preliminary: async () => {
        preliminary++;
      },
    });
    const running = certify(await settingsOf('1h'), world);
    await begun(ledger, 1_200);
    interruption.received('SIGINT');
    // An hour early, or this test has no time left.
    const { judged } = await running;
    expect(judged.exitCode).toBe(130);
    expect(preliminary).toBe(1);
    expect(cluster.disposed).toBe(1);
    expect(endOf(ledger).interruptedBy).toBe('SIGINT');
    expect(endOf(ledger).readBack.expected).toBeGreaterThan(100);
    expect(endOf(ledger).readBack.done).toBe(endOf(ledger).readBack.expected);
  });

  it('stops at once at a second signal and still removes the cluster', { timeout: 120_000 }, async () => {
    const { cluster, ledger, world, interruption } = rig();
    const running = certify(await settingsOf('1h'), world);
    await begun(ledger, 500);
    interruption.received('SIGTERM');
    setTimeout(() => interruption.received('SIGTERM'), 50);
    const { judged } = await running;
    expect(judged.exitCode).toBe(130);
    expect(cluster.disposed).toBe(1);
  });

  it(
    'says environment when the cluster cannot be had, and harness fault when something breaks',
    { timeout: 120_000 },
    async () => {
      const noEngine = rig({ openCluster: () => Promise.reject(new EnvironmentError('No engine: start one.')) });
      expect((await certify(await settingsOf(), noEngine.world)).judged).toMatchObject({
        exitCode: 4,
        lines: ['No engine: start one.'],
      });
      const broken = rig({ startChaos: () => Promise.reject(new TypeError('x is undefined')) });
      const { judged } = await certify(await settingsOf(), broken.world);
      expect(judged.exitCode).toBe(70);
      expect(broken.cluster.disposed).toBe(1);
    },
  );

  it('ends in 70, cleaned up, when an error is caught by nobody', { timeout: 120_000 }, async () => {
    const { cluster, ledger, world, interruption } = rig();
    const running = certify(await settingsOf('1h'), world);
    await begun(ledger, 500);
    expect(interruption.fatal(new Error('boom'))).toBe(true);
    const { judged } = await running;
    expect(judged.exitCode).toBe(70);
    expect(judged.lines.join()).toContain('boom');
    expect(cluster.disposed).toBe(1);
  });

  it('notices a node that dies by itself, and a cluster that stays hurt', { timeout: 120_000 }, async () => {
    const { cluster, ledger, world, interruption, printed } = rig();
    cluster.startNode = async () => undefined;
    const running = certify(await settingsOf('1h', '--chaos', 'none'), world);
    await begun(ledger, 100);
    await cluster.kill('n5');
    await expect.poll(() => printed.join(''), { timeout: patienceMs }).toContain('n5 ended with exit code 137');
    interruption.received('SIGINT');
    const { judged } = await running;
    expect(judged.lines.join('\n')).toMatch(/n5 ended with exit code 137 without a fault of ours/);
    expect(judged.lines.join('\n')).toMatch(/not healthy 10 s after the last heal: nodes n5 are not alive/);
    expect(judged.exitCode).toBe(130);
  });

  it('is judged from its real ledger: certified, with a report', { timeout: 120_000 }, async () => {
    const { cluster, world } = rig({
      openLedger: (run) => openLedger({ path: run.ledger, runTag: runTagOf(run.runId) }),
      judge: async (run) => judgeFolder(run.path, false),
    });
    cluster.lostAnswers = 0.01;
    const { folder: run, judged } = await certify(await settingsOf(), world);
    const report = parseReport(JSON.parse(readFileSync(join(run.path, 'report.json'), 'utf8')));
    expect(report.verdict.missing).toEqual([]);
    expect(report.findings.items.map((each) => each.reason)).toEqual([]);
    expect(judged.exitCode).toBe(0);
    expect(report.faults.map((fault) => fault.outcome)).toEqual(['confirmed', 'confirmed', 'confirmed']);
    expect(report.strength.exposed).toBeGreaterThan(100);
    expect(report.canary.outcome).toBe('caught');
    expect(report.canary.checks.map((check) => check.where)).toEqual(
      expect.arrayContaining(['shadow history', 'read-back', 'autopsy', 'live check']),
    );
    expect(report.counts.readBack.done).toBe(report.counts.readBack.expected);
    expect(report.recovery.find((row) => row.faultKind === 'all')?.firstAck?.count).toBeGreaterThan(3);
    expect(report.nodes.find((lane) => lane.nodeId === 'n1')?.spans.map((span) => span.state)).toContain('killed');
    for (const file of ['report.html', 'report.md', 'junit.xml', 'schedule.json', 'verdict.json', 'logs'])
      expect(existsSync(join(run.path, file)), file).toBe(true);
  });

  it('is judged from its real ledger: violated, with the planted losses listed', { timeout: 120_000 }, async () => {
    const { cluster, world } = rig({
      openLedger: (run) => openLedger({ path: run.ledger, runTag: runTagOf(run.runId) }),
      judge: async (run) => judgeFolder(run.path, false),
    });
    const execute = cluster.store.execute.bind(cluster.store);
    let lost = 0;
    cluster.store.execute = (operation, nowMs) => {
      const completion = execute(operation, nowMs);
      if (operation.f === 'write' && operation.key.startsWith('s') && operation.key.endsWith('7') && lost < 9) {
        cluster.store.forget(operation.key);
        lost++;
      }
      return completion;
    };
    const { folder: run, judged } = await certify(await settingsOf(), world);
    const report = parseReport(JSON.parse(readFileSync(join(run.path, 'report.json'), 'utf8')));
    expect(judged.exitCode).toBe(1);
    expect(report.findings.totals).toEqual([{ kind: 'lost', count: 9 }]);
    expect(
      report.findings.items.every(
        (finding) => finding.key.endsWith('7') && finding.node !== null && finding.replicas.length === 3,
      ),
    ).toBe(true);
    expect(report.canary.outcome).toBe('caught');
  });

  it('sees a planted loss live', { timeout: 120_000 }, async () => {
    const { cluster, ledger, world, printed } = rig();
    const lose = setInterval(() => {
      const row = ledger.intents.find(
        (each) =>
          each.operation.f === 'write' && each.operation.key.startsWith('s') && ledger.committed.has(each.operationId),
      );
      if (row !== undefined) cluster.store.forget(row.operation.key);
    }, 50);
    await certify(await settingsOf('5s', '--workload', 'set', '--read-ratio', '0.7'), world);
    clearInterval(lose);
    expect(printed.join('')).toContain('LOSS SEEN');
  });
});
