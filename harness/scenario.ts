/**
 * A schedule file as a scenario: its workload, its cluster, its length and the verdict that it expects, turned into the words that
 * somebody would have typed.
 *
 * Invariant: whatever stands on the command line wins over the file; a setting of the file that no option knows is refused. If
 * it were passed over, the scenario would run on another cluster than it was written for.
 */
import { readFileSync } from 'node:fs';
import type { Schedule } from '../chaos/schedule.ts';
import { parseSchedule, ScheduleError } from '../chaos/schedule-file.ts';
import { UsageError } from './errors.ts';
import type { Verdict } from './verdict.ts';

/** Option of each setting under `workload`, where the name is not the option's own. */
const workloadOptions: Readonly<Record<string, string>> = {
  name: 'workload',
  rate: 'rate',
  sessions: 'sessions',
  keys: 'keys',
  'read-ratio': 'read-ratio',
  'value-bytes': 'value-bytes',
  'active-keys': 'active-keys',
  'key-operations': 'key-operations',
  'max-keys': 'max-keys',
  'max-operations': 'max-operations',
};
/** And under `cluster`; NAMES in capitals are the environment of every node. */
const clusterOptions: Readonly<Record<string, string>> = {
  nodes: 'nodes',
  rf: 'rf',
  'min-in-sync': 'min-in-sync',
  partitions: 'partitions',
};

/** Words of the command line with those of its scenario file added. Throws UsageError for a setting that nothing knows. */
export function withScenario(words: readonly string[]): readonly string[] {
  const isRun = words[0] === undefined || words[0] === 'run' || words[0].startsWith('-');
  const file = isRun ? valueOf(words, '--schedule') : null;
  const schedule = file === null ? null : readQuietly(file);
  if (schedule === null || file === null) return words;
  const added: string[] = [];
  const add = (option: string, value: string): void => {
    if (valueOf(words, `--${option}`) === null) added.push(`--${option}`, value);
  };
  add('duration', `${Math.ceil(schedule.durationMs / 1_000)}s`);
  for (const [name, value] of Object.entries(schedule.workload)) {
    const option = workloadOptions[name];
    if (option === undefined) throw unknownSetting(file, 'workload', name, Object.keys(workloadOptions));
    add(option, String(value));
  }
  for (const [name, value] of Object.entries(schedule.cluster)) {
    const option = clusterOptions[name];
    if (option !== undefined) add(option, String(value));
    else if (/^[A-Z][A-Z0-9_]*$/.test(name)) {
      if (!hasEnvironment(words, name)) added.push('--node-env', `${name}=${value}`);
    } else throw unknownSetting(file, 'cluster', name, [...Object.keys(clusterOptions), 'NAMES_IN_CAPITALS']);
  }
  return [...words, ...added];
}

const unknownSetting = (file: string, part: string, name: string, known: readonly string[]): UsageError =>
  new UsageError(
    `The schedule ${file} cannot be used (${part}: unknown setting "${name}"; known: ${known.join(', ')}).`,
  );

function valueOf(words: readonly string[], flag: string): string | null {
  const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  if (at < 0) return null;
  const word = words[at] as string;
  return word === flag ? (words[at + 1] ?? '') : word.slice(flag.length + 1);
}

const hasEnvironment = (words: readonly string[], name: string): boolean =>
  words.some((word) => word.startsWith(`${name}=`) || word.startsWith(`--node-env=${name}=`));

/** A file that cannot be read is refused later, with its place in it. */
function readQuietly(file: string): Schedule | null {
  try {
    return parseSchedule(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof ScheduleError || (error as NodeJS.ErrnoException).code !== undefined) return null;
    throw error;
  }
}

/** What a run came to, against what its scenario expected. */
export interface Expectation {
  readonly line: string;
  readonly exitCode: number;
}

/** Exit code of a run that passed though its scenario expected otherwise: it did not show what it was written for. */
const unexpectedPass = 3;

/**
 * The last word on a scenario; null when it expects nothing. The verdict's own exit code stands, but for a pass that was not
 * expected: what was meant to fail and did not has proved nothing.
 */
export function judgeExpectation(expected: Schedule['expect'], verdict: Verdict, exitCode: number): Expectation | null {
  if (expected === null) return null;
  if (verdict === expected) return { line: `As the scenario expects: ${expected}.`, exitCode };
  return {
    line: `NOT as the scenario expects: ${verdict} instead of ${expected}.`,
    exitCode: exitCode === 0 ? unexpectedPass : exitCode,
  };
}
