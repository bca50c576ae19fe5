/**
 * The command that plays a run again, from the settings in its ledger: same faults by file, same workload by seed.
 *
 * Invariant: every setting that changes what the cluster or its load does, and is not the default, is named. One that is left out
 * makes the replay another run under the same seed.
 */
import { defaultMix, describeMix } from '../../workloads/mix.ts';
import { defaultPlannedPerRole } from '../evidence-minimums.ts';
import { defaults } from '../settings.ts';

type Stored = Readonly<Record<string, unknown>>;

/** Setting, flag, and the value that needs no flag. */
const flags: readonly (readonly [setting: string, flag: string, silent: unknown])[] = [
  ['partitionCount', '--partitions', defaults.partitions],
  ['minInSync', '--min-in-sync', null],
  ['system', '--system', 'zaris'],
  ['cluster', '--cluster', 'docker'],
  ['image', '--image', null],
  ['build', '--build', null],
  ['nodeEntry', '--node-entry', null],
  ['contract', '--contract', 'durable'],
  ['workload', '--workload', describeMix(defaultMix)],
  ['sessions', '--sessions', defaults.sessions],
  ['distribution', '--keys', defaults.distribution],
  ['readRatio', '--read-ratio', defaults.readRatio],
  ['valueBytes', '--value-bytes', defaults.valueBytes],
  ['activeKeys', '--active-keys', defaults.activeKeys],
  ['operationsPerKey', '--key-operations', defaults.operationsPerKey],
  ['maxLiveKeys', '--max-keys', defaults.maxLiveKeys],
  ['maxOperations', '--max-operations', null],
  ['onLoss', '--on-loss', 'continue'],
];

/** What the verdict needs: without them a run that a gate stopped would pass when played again. */
const evidenceFlags: readonly (readonly [setting: string, flag: string])[] = [
  ['minAcked', '--min-acked'],
  ['minAckedPerFault', '--min-acked-per-fault'],
  ['minFailovers', '--min-failovers'],
  ['minPlannedPerRole', '--min-planned-per-role'],
];

/** One word for a shell: quoted where it holds anything that a shell could read. */
const word = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** For runs on containers and processes; to be run from the folder of the project. */
export function replayCommand(settings: Stored, seed: string, runId: string): string {
  const words = [
    'npm run certify --',
    `--duration ${Number(settings['durationMs'] ?? 0) / 1_000}s`,
    `--rf ${textOf(settings['replicationFactor'])}`,
    `--nodes ${textOf(settings['nodeCount'])}`,
    `--seed ${seed}`,
    `--schedule ${word(`${textOf(settings['resultsDir'])}/${runId}/schedule.json`)}`,
  ];
  for (const [setting, flag, silent] of flags) {
    const value = settings[setting];
    if (value !== undefined && value !== null && value !== silent) words.push(`${flag} ${word(textOf(value))}`);
  }
  const rate = settings['ratePerSecond'];
  if (rate !== undefined && rate !== defaults.rate) words.push(`--rate ${typeof rate === 'number' ? rate : 'max'}`);
  const evidence = (settings['evidence'] ?? {}) as Stored;
  for (const [setting, flag] of evidenceFlags) {
    const value = evidence[setting];
    if (typeof value !== 'number' || (setting === 'minPlannedPerRole' && value === defaultPlannedPerRole)) continue;
    words.push(`${flag} ${value}`);
  }
  for (const gate of (settings['failIf'] ?? []) as readonly string[]) words.push(`--fail-if ${word(gate)}`);
  if (settings['beyondBudget'] === true) words.push('--beyond-budget');
  for (const [name, value] of Object.entries((settings['nodeEnvironment'] ?? {}) as Record<string, string>))
    words.push(`--node-env ${word(`${name}=${value}`)}`);
  return words.join(' ');
}
