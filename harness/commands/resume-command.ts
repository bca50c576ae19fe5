/** `certify resume`: goes on with a run whose harness died, or judges what there is where it cannot go on. */
import { UsageError } from '../errors.ts';
import { loadSystem } from '../load-system.ts';
import { openRunFolder } from '../results.ts';
import { lookAtRun, takeLedger } from '../resume-run.ts';
import type { Interruption } from '../run/interruption.ts';
import { resume } from '../run/run.ts';
import type { RunSettings } from '../settings.ts';
import { realWorld } from './real-world.ts';
import { verifyCommand } from './verify-command.ts';

/** Returns the exit code of the run's verdict; a run with a gap certifies nothing, so at best that is 3. */
export async function resumeCommand(resultsDir: string, run: string, interruption: Interruption): Promise<number> {
  const found = openRunFolder(resultsDir, run);
  const state = lookAtRun(found);
  switch (state.kind) {
    case 'over':
      throw new UsageError(`Run ${found.runId} has reached its end; "certify verify ${run}" judges it again.`);
    case 'owned':
      throw new UsageError(`Run ${found.runId} cannot be taken over: ${state.why}.`);
    case 'abandoned':
      break;
  }
  const folder = { ...found, runId: state.runId };
  const obstacle = await obstacleOf(state.settings, state.runId);
  if (obstacle !== null) {
    process.stdout.write(`Run ${state.runId} cannot go on (${obstacle}); judging what there is.\n`);
    return await verifyCommand(resultsDir, run);
  }
  const world = await realWorld(state.settings, interruption);
  world.log.open(folder);
  const { ledger, resumed } = await takeLedger(folder, state.settings);
  const judged = await resume(folder, state.settings, ledger, resumed, world);
  for (const line of judged.lines) process.stdout.write(`${line}\n`);
  return judged.exitCode;
}

/** Why there is no cluster to go on with; null when there is one. */
async function obstacleOf({ cluster, system }: RunSettings, runId: string): Promise<string | null> {
  if (cluster === 'process') return 'its local processes ended with the harness';
  return await (
    await import('../clusters/docker.ts')
  ).adoptionObstacle(runId, (await loadSystem(system)).program?.ports);
}
