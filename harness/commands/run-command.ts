/** `certify run`: the real world, wired to the run loop. */
import type { Interruption } from '../run/interruption.ts';
import { certify } from '../run/run.ts';
import { judgeExpectation } from '../scenario.ts';
import { readScheduleFile } from '../schedule.ts';
import type { RunSettings } from '../settings.ts';
import { realWorld } from './real-world.ts';

/** Runs and returns the exit code of its verdict. */
export async function runCommand(settings: RunSettings, interruption: Interruption): Promise<number> {
  const scenario = readScheduleFile(settings);
  const { judged } = await certify(settings, await realWorld(settings, interruption));
  for (const line of judged.lines) process.stdout.write(`${line}\n`);
  const expectation = judgeExpectation(scenario?.expect ?? null, judged.verdict, judged.exitCode);
  if (expectation === null) return judged.exitCode;
  process.stdout.write(`${expectation.line}\n`);
  return expectation.exitCode;
}
