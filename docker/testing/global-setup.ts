/**
 * Run once before the container tests: gets an engine (installing one where that is possible) and makes the base image,
 * so that the tests really run on a fresh machine. Where no engine is to be had it says why, and they are skipped.
 */
import { ensureBaseImage } from '../base-image.ts';
import { ensureEngine } from '../engine.ts';
import { EnvironmentError } from '../errors.ts';
import { sweep } from '../sweep.ts';
import { projectDir } from './engine-for-tests.ts';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Vitest calls this by its name. */
export async function setup(): Promise<void> {
  process.env['TESTCONTAINERS_RYUK_DISABLED'] = 'true';
  try {
    const { docker } = await ensureEngine({ say });
    await ensureBaseImage({ docker, projectDir, say });
    await sweep(docker);
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error;
    say(`Container tests are skipped: ${error.message}`);
  }
}
