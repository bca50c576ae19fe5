/**
 * The harness dies in the middle of a run: what is left is the file as it stands and a cluster under faults. In memory the
 * death is a world whose every call never returns again; the file is copied at that moment, as a crash would leave it.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openLedgerReader } from '../../ledger/reader.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { openLedger } from '../../ledger/ledger.ts';
import { silentLogger } from '../../lib/logger.ts';
import type { StoreClient } from '../../workloads/port.ts';
import { judgeFolder } from '../judge-folder.ts';
import { parseReport, type RunReport } from '../report/model.ts';
import { lookAtRun, takeLedger } from '../resume-run.ts';
import { openRunFolder, type RunFolder } from '../results.ts';
import { MemoryWorld } from '../testing/memory-world.ts';
import { parseCommandLine } from '../cli.ts';
import { playChaos } from './chaos-control.ts';
import { Interruption } from './interruption.ts';
import type { RunLedger } from './ports.ts';
import { certify, resume } from './run.ts';
import { runTagOf } from './run-state.ts';
import type { World } from './world.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-resume-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const loadMs = 8_000;
/** The pause is long, so that a death in the middle of it is one also where the processor was taken away for seconds. */
const schedule = {
  version: 1,
  durationMs: loadMs,
  healFromMs: 7_000,
  events: [
    { id: 'F1', at: '300ms', fault: 'kill', target: 'node:n1', durationMs: 700 },
    { id: 'F2', at: '1500ms', fault: 'pause', target: 'node:n2', durationMs: 4_500 },
    { id: 'F3', at: '6500ms', fault: 'kill', target: 'node:n3', durationMs: 400 },
  ],
};

const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/** A thing whose methods stop returning once `dead.now` is true. */
function mortal<T extends object>(thing: T, dead: { now: boolean }): T {
  return new Proxy(thing, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return (...words: unknown[]) =>
        dead.now
          ? name === 'nowNs' || name === 'nextOperationId'
            ? 0
            : never()
          : (value.apply(target, words) as unknown);
    },
  });
}

interface Life {
  readonly ledgers: Ledger[];
  /** What the ledger was told of faults: `F2 confirmed`. */
  readonly faults: string[];
}

function worldOf(
  cluster: MemoryWorld,
  dead: { now: boolean },
  { ledgers, faults }: Life = { ledgers: [], faults: [] },
): World {
  const system = cluster.asSystem();
  return {
    system: {
      ...system,
      connect: (options) => {
        const running = system.connect(options);
        const wrapped = mortal(running, dead);
        return new Proxy(wrapped, {
          get: (target, name) =>
            name === 'client'
              ? (session: number): StoreClient => mortal(running.client(session), dead)
              : (Reflect.get(target, name) as unknown),
        });
      },
    },
    clock: { nowMs: () => performance.now(), wallMs: () => Date.now() },
    logger: silentLogger,
    interruption: new Interruption(),
    out: { write: () => undefined },
    processId: 1,
    openLedger: async (run) => {
      const ledger = await openLedger({ path: run.ledger, runTag: runTagOf(run.runId) });
      ledgers.push(ledger);
      const fault: RunLedger['fault'] = (row) => {
        faults.push(`${row.faultId} ${row.stage}`);
        return ledger.fault(row);
      };
      const heard = new Proxy<RunLedger>(ledger, {
        get(target, name) {
          const value = name === 'fault' ? fault : (Reflect.get(target, name) as unknown);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      });
      return mortal<RunLedger>(heard, dead);
    },
    openCluster: async () => ({ ...cluster.asRunCluster(), cluster: mortal(cluster.asRunCluster().cluster, dead) }),
    startChaos: playChaos,
    preliminary: async () => undefined,
    judge: async (run) => judgeFolder(run.path, false),
  };
}

/**
 * Runs, dies `atMs` after its ledger was opened (later, if what is to be in the ledger is not there yet), and gives back the
 * folder as a crash would leave it.
 */
async function runAndDie(cluster: MemoryWorld, atMs: number, after: string | null = null): Promise<RunFolder> {
  const file = join(folder, 'schedule.json');
  writeFileSync(file, JSON.stringify(schedule));
  const words =
    `--duration ${loadMs / 1_000}s --partitions 16 --sessions 8 --rate 800 --seed 5 --schedule ${file}`.split(' ');
  const command = await parseCommandLine([...words, '--results', join(folder, 'dying')], '0');
  if (command.kind !== 'run') throw new Error('not a run');
  const dead = { now: false };
  const life: Life = { ledgers: [], faults: [] };
  const { ledgers } = life;
  void certify(command.settings, worldOf(cluster, dead, life)).catch(() => undefined);
  while (ledgers.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await new Promise((resolve) => setTimeout(resolve, atMs));
  while (after !== null && !life.faults.includes(after)) await new Promise((resolve) => setTimeout(resolve, 5));
  dead.now = true;
  await ledgers[0]?.flush();
  cpSync(join(folder, 'dying'), join(folder, 'results'), { recursive: true, verbatimSymlinks: true });
  return openRunFolder(join(folder, 'results'), 'latest');
}

async function goOn(cluster: MemoryWorld, found: RunFolder): Promise<RunReport> {
  const state = lookAtRun(found, () => ({ kind: 'dead', proof: 'the test says so' }));
  if (state.kind !== 'abandoned') throw new Error(`run is ${state.kind}`);
  const { ledger, resumed } = await takeLedger(found, state.settings);
  await resume({ ...found, runId: state.runId }, state.settings, ledger, resumed, worldOf(cluster, { now: false }));
  return parseReport(JSON.parse(readFileSync(join(found.path, 'report.json'), 'utf8')));
}

describe('a run whose harness died', () => {
  it(
    'goes on under an open fault: healed, read back, with its gap, and certifies nothing',
    { timeout: 120_000 },
    async () => {
      const cluster = new MemoryWorld(5);
      const found = await runAndDie(cluster, 2_600, 'F2 confirmed');
      expect((await cluster.state('n2')).kind).toBe('paused');
      // Everything that is needed stands in the run's own folder.
      rmSync(join(folder, 'schedule.json'));
      const report = await goOn(cluster, found);
      expect(report.verdict.kind).toBe('inconclusive');
      expect(report.verdict.missing).toEqual([
        expect.stringMatching(/Nothing was recorded for \d+ ms: the harness was not running/),
      ]);
      expect(report.ledger.gaps).toHaveLength(1);
      expect(report.findings.total).toBe(0);
      expect(report.faults.map((fault) => [fault.id, fault.outcome])).toEqual([
        ['F1', 'confirmed'],
        ['F2', 'confirmed'],
        ['F3', 'skipped'],
        ['F3r1', 'confirmed'],
      ]);
      expect(report.faults.every((fault) => fault.outcome === 'skipped' || fault.stages.healVerifiedMs !== null)).toBe(
        true,
      );
      expect(report.counts.readBack.done).toBe(report.counts.readBack.expected);
      expect(report.canary.outcome).toBe('caught');
      const load = report.phases.find((phase) => phase.name === 'load');
      const gap = report.ledger.gaps[0];
      if (load === undefined || gap === undefined) throw new Error('no load or no gap');
      // The whole load is given, and what went before the death is not given again.
      expect(load.toMs - load.fromMs - (gap.toMs - gap.fromMs)).toBeGreaterThan(loadMs - 500);
      expect(load.toMs - gap.toMs).toBeLessThan(loadMs);
      using reader = openLedgerReader(found.path);
      const ids = [...reader.operations()].map((operation) => operation.operationId);
      expect(new Set(ids).size).toBe(ids.length);
      const inDoubt = [...reader.operations()].filter((operation) => operation.error?.includes('the harness died'));
      expect(inDoubt.every((operation) => operation.outcome === 'info')).toBe(true);
    },
  );

  it('goes on from any moment', { timeout: 240_000 }, async () => {
    for (const atMs of [150, 1_900, loadMs + 600]) {
      const cluster = new MemoryWorld(5);
      const found = await runAndDie(cluster, atMs);
      const report = await goOn(cluster, found);
      expect([atMs, report.verdict.kind, report.findings.total]).toEqual([atMs, 'inconclusive', 0]);
      expect(report.counts.readBack.done, String(atMs)).toBe(report.counts.readBack.expected);
      rmSync(join(folder, 'dying'), { recursive: true });
      rmSync(join(folder, 'results'), { recursive: true });
    }
  });

  it('still sees a loss that was there before', { timeout: 120_000 }, async () => {
    const cluster = new MemoryWorld(5);
    const found = await runAndDie(cluster, 2_600, 'F1 confirmed');
    using reader = openLedgerReader(found.path);
    const [lost] = [...reader.operations()].filter(
      (operation) => operation.f === 'write' && operation.outcome === 'ok' && operation.key.startsWith('s'),
    );
    cluster.store.forget(lost?.key ?? '');
    const report = await goOn(cluster, found);
    expect(report.verdict.kind).toBe('violated');
    expect(report.findings.totals).toEqual([{ kind: 'lost', count: 1 }]);
    expect(report.findings.items[0]?.key).toBe(lost?.key);
  });

  it('is left alone while its harness lives, or may live, or once it is over', { timeout: 120_000 }, async () => {
    const cluster = new MemoryWorld(5);
    const found = await runAndDie(cluster, 1_000, 'F1 confirmed');
    expect(lookAtRun(found)).toMatchObject({ kind: 'owned', why: expect.stringContaining('still running') });
    expect(lookAtRun(found, () => ({ kind: 'unknown', why: 'another machine' }))).toMatchObject({ kind: 'owned' });
    await goOn(cluster, found);
    expect(lookAtRun(found, () => ({ kind: 'dead', proof: '' }))).toEqual({ kind: 'over' });
  });

  it(
    'that cannot go on is judged as it is: inconclusive, with the gap that it ends in',
    { timeout: 120_000 },
    async () => {
      const found = await runAndDie(new MemoryWorld(5), 2_600, 'F1 confirmed');
      const judged = judgeFolder(found.path, false);
      expect(judged.exitCode).toBe(3);
      const report = parseReport(JSON.parse(readFileSync(join(found.path, 'report.json'), 'utf8')));
      expect(report.ledger.gaps.map((gap) => gap.reason)).toEqual([
        'the harness ended here, before the end of the run',
      ]);
      expect(report.verdict.missing.join('\n')).toContain('did not reach the end');
      expect(report.phases.map((phase) => phase.name)).toContain('load');
    },
  );
});
