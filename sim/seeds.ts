/** Which seeds a sweep plays. In CI they follow from the commit, so that a red build can be played again by anybody. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Prng } from '../lib/prng.ts';

/** Variables that name the commit where there is no repository. */
const commitVariables = ['ZARIS_COMMIT', 'GITHUB_SHA', 'CI_COMMIT_SHA'] as const;

/** The commit that is tested: told by the environment, else by git; null when neither knows. */
export function currentCommit(environment: NodeJS.ProcessEnv = process.env): string | null {
  for (const name of commitVariables) {
    const told = environment[name];
    if (told !== undefined && told !== '') return told;
  }
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return null;
  }
}

/** First seed that follows from a commit's name. */
export const seedOfCommit = (commit: string): number => new Prng(0).fork(commit).uint32() >>> 4;

/** `count` seeds in a row. */
export const seedsFrom = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => (first + index) >>> 0);
