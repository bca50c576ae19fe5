/** `certify run`: the real world, wired to the run loop. */
import { type Logger as Pino, pino } from 'pino';
import { openLedger } from '../../ledger/ledger.ts';
import type { RunFolder } from '../results.ts';
import { playChaos } from '../run/chaos-control.ts';
import type { Interruption } from '../run/interruption.ts';
import { certify } from '../run/run.ts';
import { runTagOf } from '../run/run-state.ts';
import type { World } from '../run/world.ts';
import { readScheduleFile } from '../schedule.ts';
import type { RunSettings } from '../settings.ts';
import { systemNamed } from '../systems/catalogue.ts';
import { judgeRun, writePreliminary } from '../judge-run.ts';

/** Runs and returns the exit code of its verdict. */
export async function runCommand(settings: RunSettings, interruption: Interruption): Promise<number> {
  readScheduleFile(settings);
  const log = new RunLog();
  const world: World = {
    system: systemNamed(settings.system),
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
  const { judged } = await certify(settings, world);
  for (const line of judged.lines) process.stdout.write(`${line}\n`);
  return judged.exitCode;
}

/** The log of a run; goes nowhere until the run has a folder. */
class RunLog {
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
