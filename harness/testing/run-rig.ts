/**
 * For tests of whole runs: the run loop on a store in memory, with a real ledger and the real judge, and everything replaceable.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openLedger } from '../../ledger/ledger.ts';
import { silentLogger } from '../../lib/logger.ts';
import { parseCommandLine } from '../cli.ts';
import { judgeFolder } from '../judge-folder.ts';
import { parseReport, type RunReport } from '../report/model.ts';
import type { RunFolder } from '../results.ts';
import { playChaos } from '../run/chaos-control.ts';
import { Interruption } from '../run/interruption.ts';
import { certify } from '../run/run.ts';
import { runTagOf } from '../run/run-state.ts';
import type { Judged, World } from '../run/world.ts';
import type { RunSettings } from '../settings.ts';
import { MemoryWorld } from './memory-world.ts';

/** Two kills and a pause, healed before the end. */
export const shortSchedule = {
  version: 1,
  durationMs: 5_000,
  healFromMs: 4_000,
  events: [
    { id: 'F1', at: '300ms', fault: 'kill', target: 'node:n1', durationMs: 700 },
    { id: 'F2', at: '1200ms', fault: 'pause', target: 'node:n2', durationMs: 600 },
    { id: 'F3', at: '2500ms', fault: 'kill', target: 'node:n3', durationMs: 600 },
  ],
};

/** Settings of a run of five seconds (unless `--duration` says otherwise) under {@link shortSchedule}. */
export async function shortSettings(folder: string, ...more: string[]): Promise<RunSettings> {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'schedule.json');
  writeFileSync(file, JSON.stringify(shortSchedule));
  const duration = more.includes('--duration') ? '' : '--duration 5s ';
  const words = `${duration}--partitions 16 --sessions 8 --rate 800 --seed 5`.split(' ');
  const command = await parseCommandLine(
    [...words, '--schedule', file, '--results', join(folder, 'results'), ...more],
    '0',
  );
  if (command.kind !== 'run') throw new Error(`not a run but ${command.kind}`);
  return command.settings;
}

export interface RunRig {
  readonly cluster: MemoryWorld;
  readonly interruption: Interruption;
  readonly world: World;
  readonly printed: string[];
}

let nextProcessId = 1;

/** A world in memory; `overrides` are made from it, so that they can wrap what is there. */
export function runRig(overrides: (rig: RunRig) => Partial<World> = () => ({})): RunRig {
  const cluster = new MemoryWorld(5);
  const interruption = new Interruption();
  const printed: string[] = [];
  const world: World = {
    system: cluster.asSystem(),
    clock: { nowMs: () => performance.now(), wallMs: () => Date.now() },
    logger: silentLogger,
    interruption,
    out: { write: (text: string) => printed.push(text) },
    processId: nextProcessId++,
    openLedger: (run) => openLedger({ path: run.ledger, runTag: runTagOf(run.runId) }),
    openCluster: async () => cluster.asRunCluster(),
    startChaos: playChaos,
    preliminary: async () => undefined,
    judge: async (run) => judgeFolder(run.path, false),
  };
  const rig = { cluster, interruption, printed, world };
  return { ...rig, world: { ...world, ...overrides(rig) } };
}

/** Runs and reads the report. */
export async function runAndReport(
  settings: RunSettings,
  world: World,
): Promise<{ readonly folder: RunFolder; readonly judged: Judged; readonly report: RunReport }> {
  const { folder, judged } = await certify(settings, world);
  return { folder, judged, report: reportOf(folder.path) };
}

export const reportOf = (path: string): RunReport =>
  parseReport(JSON.parse(readFileSync(join(path, 'report.json'), 'utf8')));
