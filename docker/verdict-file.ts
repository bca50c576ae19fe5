/**
 * How a program tells the launcher that its exit code is a verdict and no accident.
 *
 * Node ends with 1 on any uncaught error, and 1 means "a write was lost" here. So a verdict counts only when it also
 * stands in the file that the launcher named; an end without it becomes 70.
 */
import { writeFileSync } from 'node:fs';

/** Environment variable that names the file. */
export const verdictFileVariable = 'ZARIS_VERDICT_FILE';

/** Writes the exit code that the process is about to end with; the last thing before the end. Without a launcher, nothing. */
export function announceVerdict(exitCode: number, env: NodeJS.ProcessEnv = process.env): void {
  const file = env[verdictFileVariable];
  if (file !== undefined && file !== '') writeFileSync(file, `${exitCode}\n`);
}
