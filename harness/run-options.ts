/** The options of `certify run`: their declaration, and their resolution into settings. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { parseMix, defaultMix, describeMix } from '../workloads/mix.ts';
import { workloadKinds } from '../workloads/catalogue.ts';
import type { KeyDistribution } from '../workloads/context.ts';
import { chaosChoices, checkFaultKinds } from './chaos-names.ts';
import { UsageError } from './errors.ts';
import { describeProfiles, type ProfileOptions, profileNames } from './profiles.ts';
import { checkGate, GateError, parseGate } from './report/gates.ts';
import {
  parseDuration,
  parseEnvironment,
  parseInteger,
  parseList,
  parseNumber,
  parseRate,
  parseSeed,
} from './parse.ts';
import {
  type ClusterKind,
  clusterKinds,
  type ContractKind,
  contractKinds,
  defaults,
  maxNodes,
  maxSessions,
  type OnLoss,
  onLossChoices,
  type RunSettings,
} from './settings.ts';
import { describeSystems } from './systems/catalogue.ts';

/** Shortest run that makes sense: a fault and its heal need this long. */
const minDurationMs = 5_000;
/** Longest run that the ledger's numbers are made for. */
const maxDurationMs = 14 * 86_400_000;
const maxReplicationFactor = 5;
const maxValueBytes = 64 * 1024;
const minValueBytes = 16;
const distributions: readonly KeyDistribution[] = ['uniform', 'zipf', 'hot'];

/** What the parser hands over: text as typed, arrays where an option was repeated. */
export type RawOptions = Readonly<Record<string, string | readonly string[] | boolean | undefined>>;

const textOption = (describe: string, fallback?: string | number) =>
  ({
    string: true,
    requiresArg: true,
    describe,
    ...(fallback === undefined ? {} : { default: String(fallback) }),
  }) as const;

/** Declares the options; those of the profile take the place of the defaults. */
export function addRunOptions(parser: Argv, profile: ProfileOptions): Argv {
  const text = (describe: string, fallback?: string | number, name?: string) =>
    textOption(describe, (name === undefined ? undefined : profile[name]) ?? fallback);
  return parser
    .options({
      profile: text(`Good options under one name: ${describeProfiles()}`),
      duration: text('How long load and faults run: 90s, 2m, 4h, 1h30m', defaults.duration, 'duration'),
      rf: text('Replication factor: copies of every partition', defaults.rf),
      nodes: text('Nodes of the cluster', defaults.nodes),
      'min-in-sync': text('Copies an acknowledged write needs (default: 2 for rf ≥ 3, else 1)'),
      partitions: text('Partitions of the store', defaults.partitions),
      seed: text('Seed of workload and faults (default: fresh, printed)'),
    })
    .group(['profile', 'duration', 'rf', 'nodes', 'min-in-sync', 'partitions', 'seed'], 'The run:')
    .options({
      rate: text(
        'Operations per second over all sessions, or max; 2,500 keeps a 4-hour ledger below 4 GiB',
        defaults.rate,
        'rate',
      ),
      sessions: text('Client sessions, one operation at a time each', defaults.sessions),
      workload: text(
        `Workloads with weights; of ${workloadKinds.map((kind) => kind.name).join(', ')}`,
        describeMix(defaultMix),
      ),
      keys: text(`How shared keys are drawn: ${distributions.join(', ')}`, defaults.distribution),
      'read-ratio': text('Share of operations that read, 0 to 0.95', defaults.readRatio),
      'value-bytes': text('Size of a value', defaults.valueBytes),
      'active-keys': text('Keys in use at a time by each workload that overwrites', defaults.activeKeys),
      'key-operations': text(
        'Operations after which an overwritten key is replaced by a new one',
        defaults.operationsPerKey,
      ),
      'max-keys': text('Keys that live in the store at a time', defaults.maxLiveKeys),
      'max-operations': text('Stop after this many operations'),
    })
    .group(
      [
        'rate',
        'sessions',
        'workload',
        'keys',
        'read-ratio',
        'value-bytes',
        'active-keys',
        'key-operations',
        'max-keys',
        'max-operations',
      ],
      'Load:',
    )
    .options({
      chaos: text(`Chaos level: ${chaosChoices.join(', ')}`, defaults.chaos),
      faults: text('Only these fault kinds, as in kill,pause'),
      schedule: text('Play the faults of this file instead of drawing them'),
      'beyond-budget': {
        boolean: true,
        default: false,
        describe: 'Let faults take more than the contract promises to survive; --contract says what is made of a loss',
      },
    })
    .group(['chaos', 'faults', 'schedule', 'beyond-budget'], 'Faults:')
    .options({
      system: text(`The store: ${describeSystems()}, or a file of your own such as ./my-system.ts`, 'zaris'),
      cluster: text('Where the nodes run: docker (containers) or process (local processes)', 'docker'),
      contract: text(
        'durable counts every loss; declared lets losses pass that the store itself declares possible',
        'durable',
      ),
      image: text('Run this image, best as NAME@sha256:…, instead of one made from these sources'),
      build: text('Build the image from this folder with a Dockerfile'),
      'node-entry': text('Run this node program inside the image instead of the shipped one'),
      'node-env': { string: true, requiresArg: true, array: true, describe: 'Environment of every node, NAME=value' },
    })
    .group(['system', 'cluster', 'contract', 'image', 'build', 'node-entry', 'node-env'], 'What is tested:')
    .options({
      results: text('Folder of the results', defaults.results),
      keep: { boolean: true, default: false, describe: 'Leave the cluster running for inspection' },
      'on-loss': text(
        'When the live check sees a loss: continue, stop, or freeze (pause the cluster and keep it)',
        'continue',
      ),
      'ledger-sync': text('normal survives a crash of this program, full a power loss', 'normal', 'ledger-sync'),
    })
    .group(['results', 'keep', 'on-loss', 'ledger-sync'], 'Results:')
    .options({
      'fail-if': {
        string: true,
        requiresArg: true,
        array: true,
        describe: "A gate of your own, as in 'recovery.p99>5s'; where it holds the run is inconclusive, exit 3",
      },
      'min-acked': text('Acknowledged writes that a certificate needs (default: 5 % of what was asked for)'),
      'min-acked-per-fault': text(
        'Acknowledged writes inside the windows of each fault kind (default: 1 per second, at most 100)',
      ),
      'min-failovers': text('Failovers that judged writes went through (default: 1)', undefined, 'min-failovers'),
      'min-planned-per-role': text('A fault kind planned so often against a role must have hit it', 3),
    })
    .group(
      ['fail-if', 'min-acked', 'min-acked-per-fault', 'min-failovers', 'min-planned-per-role'],
      'What a certificate needs:',
    );
}

/** Resolves and checks the options. Throws {@link UsageError}. `freshSeed` is called when none was given. */
export function resolveSettings(options: RawOptions, freshSeed: () => number): RunSettings {
  const given = (name: string): string | null => {
    const value = options[name];
    if (value === undefined) return null;
    if (Array.isArray(value)) throw new UsageError(`--${name} stands twice; give it once.`);
    return String(value);
  };
  const need = (name: string): string => given(name) ?? '';
  const whole = (name: string, low: number, high: number): number => parseInteger(need(name), `--${name}`, low, high);

  const countOf = (name: string): number | null => {
    const value = given(name);
    return value === null ? null : parseInteger(value, `--${name}`, 0, Number.MAX_SAFE_INTEGER);
  };

  const durationMs = parseDuration(need('duration'), '--duration');
  if (durationMs < minDurationMs)
    throw new UsageError(`--duration must be at least ${minDurationMs / 1_000}s: a fault and its heal need that long.`);
  if (durationMs > maxDurationMs) throw new UsageError('--duration must be at most 14d.');
  const nodeCount = whole('nodes', 1, maxNodes);
  const replicationFactor = whole('rf', 1, Number.MAX_SAFE_INTEGER);
  if (replicationFactor > nodeCount) {
    throw new UsageError(
      `--rf ${replicationFactor} needs at least ${replicationFactor} nodes, but --nodes is ${nodeCount}; lower one or raise the other.`,
    );
  }
  if (replicationFactor > maxReplicationFactor)
    throw new UsageError(`--rf must be at most ${maxReplicationFactor}, not ${replicationFactor}.`);
  const partitionCount = whole('partitions', 1, 16_384);
  if (16_384 % partitionCount !== 0)
    throw new UsageError(`--partitions must divide 16384, as 64 does; ${partitionCount} does not.`);
  const parsedMix = parseMix(need('workload'));
  if ('error' in parsedMix) throw new UsageError(parsedMix.error);
  const seedText = given('seed');
  const minInSyncText = given('min-in-sync');
  const maxOperationsText = given('max-operations');
  const faultsText = given('faults');
  const scheduleFile = given('schedule');
  if (scheduleFile !== null && !existsSync(scheduleFile))
    throw new UsageError(`There is no schedule file "${scheduleFile}".`);

  const cluster = oneOf<ClusterKind>(need('cluster'), '--cluster', clusterKinds);
  const image = given('image');
  const build = given('build');
  checkImage({ cluster, image, build, nodeEntry: given('node-entry') });

  return {
    durationMs,
    replicationFactor,
    minInSync: minInSyncText === null ? null : parseInteger(minInSyncText, '--min-in-sync', 1, replicationFactor),
    nodeCount,
    partitionCount,
    seed: seedText === null ? freshSeed() : parseSeed(seedText),
    ratePerSecond: parseRate(need('rate'), '--rate'),
    sessions: whole('sessions', 1, maxSessions),
    mix: parsedMix.mix,
    distribution: oneOf(need('keys'), '--keys', distributions),
    readRatio: parseNumber(need('read-ratio'), '--read-ratio', 0, 0.95),
    valueBytes: whole('value-bytes', minValueBytes, maxValueBytes),
    activeKeys: whole('active-keys', 1, 1_000_000),
    operationsPerKey: whole('key-operations', 1, 1_000_000),
    maxLiveKeys: whole('max-keys', 1_000, 50_000_000),
    maxOperations:
      maxOperationsText === null
        ? Infinity
        : parseInteger(maxOperationsText, '--max-operations', 1, Number.MAX_SAFE_INTEGER),
    chaosLevel: oneOf(need('chaos'), '--chaos', chaosChoices),
    faultNames: faultsText === null ? null : checkFaultKinds(parseList(faultsText, '--faults')),
    scheduleFile,
    beyondBudget: options['beyond-budget'] === true,
    cluster,
    system: need('system'),
    contract: oneOf<ContractKind>(need('contract'), '--contract', contractKinds),
    onLoss: oneOf<OnLoss>(need('on-loss'), '--on-loss', onLossChoices),
    failIf: checkGates((options['fail-if'] ?? []) as readonly string[]),
    evidence: {
      minAcked: countOf('min-acked'),
      minAckedPerFault: countOf('min-acked-per-fault'),
      minFailovers: countOf('min-failovers'),
      minPlannedPerRole: countOf('min-planned-per-role'),
    },
    profile: profileNames.find((name) => name === given('profile')) ?? null,
    image,
    build,
    resultsDir: need('results'),
    keep: options['keep'] === true,
    ledgerSync: oneOf(need('ledger-sync'), '--ledger-sync', ['normal', 'full'] as const),
    nodeEntry: given('node-entry'),
    nodeEnvironment: parseEnvironment((options['node-env'] ?? []) as readonly string[], '--node-env'),
  };
}

function oneOf<T extends string>(value: string, flag: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw new UsageError(`${flag} must be one of ${choices.join(', ')}, not "${value}".`);
  return found;
}

/** Gates are read before anything starts: one that nobody understands must not be found out after four hours. */
function checkGates(expressions: readonly string[]): readonly string[] {
  for (const expression of expressions) {
    try {
      checkGate(parseGate(expression));
    } catch (error) {
      if (!(error instanceof GateError)) throw error;
      throw new UsageError(`--fail-if: ${error.message}.`);
    }
  }
  return expressions;
}

/** Node programs are named from here, in containers and in local processes. */
const sourceDir = join(import.meta.dirname, '..');

interface ImageWish {
  readonly cluster: ClusterKind;
  readonly image: string | null;
  readonly build: string | null;
  readonly nodeEntry: string | null;
}

function checkImage({ cluster, image, build, nodeEntry }: ImageWish): void {
  const [first, second] = [
    ['--image', image],
    ['--build', build],
    ['--node-entry', nodeEntry],
  ].flatMap(([flag, value]) => (value === null ? [] : [flag as string]));
  if (first !== undefined && second !== undefined)
    throw new UsageError(`${first} and ${second} both say what a node runs; give one of them.`);
  if ((image !== null || build !== null) && cluster !== 'docker')
    throw new UsageError(`${first} needs containers, but --cluster is ${cluster}.`);
  if (build !== null && !existsSync(join(build, 'Dockerfile')))
    throw new UsageError(`There is no Dockerfile in "${build}" to build an image from.`);
  if (nodeEntry !== null && !existsSync(join(sourceDir, nodeEntry)))
    throw new UsageError(`There is no node program "${nodeEntry}" in these sources.`);
}
