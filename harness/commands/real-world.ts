/** Everything real that a run touches: clocks, engine, processes, files, the terminal. */
import { type Logger as Pino, pino } from 'pino';
import { openLedger } from '../../ledger/ledger.ts';
import { judgeRun, writePreliminary } from '../judge-run.ts';
import { loadSystem } from '../load-system.ts';
import type { RunFolder } from '../results.ts';
import { playChaos } from '../run/chaos-control.ts';
import type { Interruption } from '../run/interruption.ts';
import { runTagOf } from '../run/run-state.ts';
import type { World } from '../run/world.ts';
import type { RunSettings } from '../settings.ts';

/** The world of one run with these settings. Throws UsageError where the system cannot be had. */
export async function realWorld(
  settings: RunSettings,
  interruption: Interruption,
): Promise<World & { readonly log: RunLog }> {
  const log = new RunLog();
  return {
    log,
    system: await loadSystem(settings.system),
    clock: { nowMs: () => performance.now(), wallMs: () => Date.now() },
    logger: log,
    interruption,
    out: process.stdout,
    processId: process.pid,
    openLedger: (folder) => {
      log.open(folder);
      return openLedger({ path: folder.ledger, sync: settings.ledgerSync, runTag: runTagOf(folder.runId) });
    },
    // Loaded when it is needed: the engine's libraries take their time.
    openCluster: async (options) =>
      settings.cluster === 'docker'
        ? (await import('../clusters/docker.ts')).openDockerCluster(options)
        : (await import('../clusters/process.ts')).openProcessCluster(options),
    startChaos: playChaos,
    preliminary: writePreliminary,
    judge: judgeRun,
  };
}

/** The log of a run; goes nowhere until the run has a folder. */
export class RunLog {
  private log: Pino | null = null;

  open(folder: RunFolder): void {
    this.log = pino(
      { base: null, level: 'debug', timestamp: pino.stdTimeFunctions.isoTime },
      pino.destination({ dest: folder.harnessLog, sync: true }),
    );
  }

  debug(fields: object, message: string): void {
    this.log?.debug(fields, message);
  }

  info(fields: object, message: string): void {
    this.log?.info(fields, message);
  }

  warn(fields: object, message: string): void {
    this.log?.warn(fields, message);
  }

  error(fields: object, message: string): void {
    this.log?.error(fields, message);
  }
}
