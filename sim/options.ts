/**
 * The options of one simulated run, and how a seed draws them: a swarm, in which every seed has its own cluster, network,
 * faults and load. Flat, so that all of it can be printed, pinned (`rf=3`) and saved with a counterexample.
 *
 * Invariant: seed and pins decide every option; a pinned one shifts none of the others. If drawing one moved another, a
 * pinned replay would be a different run.
 */
import { type ChaosLevel, chaosLevels } from '../chaos/schedule.ts';
import { type FaultName, faultNames, faultNamesOfWord } from '../chaos/faults.ts';
import { Prng } from '../lib/prng.ts';
import { defaultMix, describeMix, parseMix } from '../workloads/mix.ts';
import { workloadKinds } from '../workloads/catalogue.ts';

export interface SimOptions {
  readonly durationMs: number;
  readonly nodes: number;
  readonly rf: number;
  readonly minInSync: number;
  readonly partitions: number;
  readonly sessions: number;
  /** Client cores that the sessions share. */
  readonly clients: number;
  readonly ratePerSecond: number;
  /** "registers:4,set:4". */
  readonly mix: string;
  readonly distribution: 'uniform' | 'zipf' | 'hot';
  readonly readRatio: number;
  readonly activeKeys: number;
  readonly operationsPerKey: number;
  readonly maxLiveKeys: number;
  readonly maxOperations: number;
  readonly valueBytes: number;
  readonly requestTimeoutMs: number;
  /** Client connections broken at random, per minute. */
  readonly breaksPerMinute: number;
  readonly chaos: ChaosLevel | 'none';
  /** Fault names, comma-separated. */
  readonly faults: string;
  /** A killed node is started again after this, ms; 0: after as long as the schedule draws. Faster than any detector. */
  readonly restartMs: number;
  /** Faults may strike at protocol moments. */
  readonly moments: boolean;
  readonly minLatencyMs: number;
  readonly meanLatencyMs: number;
  readonly lossChance: number;
  readonly duplicateChance: number;
  readonly reorderChance: number;
  /** Client requests that outlive their connection arrive up to this much later, ms, and some connections hang; 0: none does. */
  readonly lateRequestMs: number;
  readonly fsyncMs: number;
  readonly meanFsyncMs: number;
  /** One node needs this long for every event, ms; 0: none does. */
  readonly slowNodeMs: number;
  readonly suspectEscalationMs: number;
  readonly nodeLeftMs: number;
  readonly silentReplicaMs: number;
  readonly holdDownMs: number;
  readonly logKeepEntries: number;
  readonly snapshotItems: number;
  readonly clientIdleMs: number;
  /** Control entries after which the control log becomes a snapshot. */
  readonly snapshotEvery: number;
  readonly beatMs: number;
  readonly leaseMs: number;
  readonly beaconMs: number;
  readonly heartbeatMs: number;
}

export type OptionName = keyof SimOptions;
export type Pins = Readonly<Record<string, string>>;

/** A setting that does not make sense: one sentence for the user. */
export class SimOptionError extends Error {
  override readonly name = 'SimOptionError';
}

/** How each option is drawn from its own stream; later ones may look at earlier ones. */
type Draw<N extends OptionName> = (prng: Prng, drawn: Partial<SimOptions>) => SimOptions[N];

const oneOf =
  <T>(...items: readonly T[]) =>
  (prng: Prng): T =>
    prng.pick(items);

/** A subset of the fault kinds, two at least; the core kinds are seldom left out. */
function drawFaults(prng: Prng): string {
  const chosen = faultNames.filter((name) =>
    prng.chance(name === 'kill' || name === 'pause' || name === 'isolate' ? 0.8 : 0.35),
  );
  return chosen.length >= 2 ? chosen.join(',') : 'kill,pause,isolate';
}

function drawMix(prng: Prng): string {
  if (prng.chance(0.5)) return describeMix(defaultMix);
  const parts = workloadKinds.filter(() => prng.chance(0.5)).map((kind) => `${kind.name}:${prng.between(1, 5)}`);
  return parts.length === 0 ? describeMix(defaultMix) : parts.join(',');
}

const draws: { readonly [N in OptionName]: Draw<N> } = {
  durationMs: () => 600_000,
  rf: oneOf(3, 3, 3, 3, 2, 4, 5, 1),
  nodes: (prng, { rf = 3 }) => Math.max(rf, Math.max(3, prng.pick([3, 4, 5, 5, 5, 6, 7]))),
  minInSync: (_prng, { rf = 3 }) => (rf >= 3 ? 2 : 1),
  partitions: oneOf(1, 2, 4, 4, 8, 16),
  sessions: oneOf(4, 8, 16, 16, 32),
  clients: (prng, { sessions = 8 }) => prng.pick([1, 2, 4, sessions].filter((count) => count <= sessions)),
  ratePerSecond: oneOf(40, 100, 100, 100, 200),
  mix: drawMix,
  distribution: oneOf('uniform', 'uniform', 'zipf', 'hot'),
  readRatio: oneOf(0.1, 0.2, 0.2, 0.5),
  activeKeys: oneOf(4, 16, 64, 256),
  operationsPerKey: oneOf(50, 200, 1_000),
  maxLiveKeys: () => 20_000,
  maxOperations: () => Number.MAX_SAFE_INTEGER,
  valueBytes: oneOf(0, 32, 64, 200),
  requestTimeoutMs: oneOf(2_000, 10_000, 60_000, 60_000),
  breaksPerMinute: oneOf(0, 0, 2, 30),
  chaos: oneOf<SimOptions['chaos']>('standard', 'standard', 'brutal', 'brutal', 'gentle'),
  faults: drawFaults,
  restartMs: oneOf(0, 0, 0, 40),
  moments: oneOf(true, true, false),
  minLatencyMs: oneOf(0.1, 0.2, 1),
  meanLatencyMs: oneOf(0.2, 0.3, 1, 5, 20),
  lossChance: oneOf(0, 0, 0, 0.001, 0.01, 0.05),
  duplicateChance: oneOf(0, 0, 0.01, 0.05),
  reorderChance: oneOf(0, 0, 0.01, 0.1),
  lateRequestMs: oneOf(0, 0, 500, 5_000, 20_000),
  fsyncMs: oneOf(0.5, 1, 4),
  meanFsyncMs: oneOf(0.5, 1, 5, 20),
  slowNodeMs: oneOf(0, 0, 0, 0.5, 2),
  // The shortest is below most leases: who is cut off is replaced while it still may answer reads.
  suspectEscalationMs: oneOf(10_000, 10_000, 3_000, 1_500, 600),
  nodeLeftMs: oneOf(600_000, 600_000, 20_000),
  silentReplicaMs: oneOf(1_000, 1_000, 3_000),
  holdDownMs: oneOf(2_000, 500),
  logKeepEntries: oneOf(4_096, 256, 16),
  snapshotItems: oneOf(1_024, 256, 64),
  // Twice the longest time that a request may take: a record that is still needed is never given up.
  clientIdleMs: oneOf(900_000, 900_000, 120_000),
  snapshotEvery: oneOf(2_000, 2_000, 200, 20),
  beatMs: oneOf(80, 80, 250),
  leaseMs: (_prng, { beatMs = 80 }) => 4 * beatMs,
  beaconMs: oneOf(100, 250),
  heartbeatMs: oneOf(100, 150),
};

export const optionNames = Object.keys(draws) as OptionName[];

/** Options of a seed, with `pins` in place of what would be drawn. Throws {@link SimOptionError}. */
export function drawOptions(seed: number, pins: Pins = {}): SimOptions {
  for (const name of Object.keys(pins)) {
    if (!Object.hasOwn(draws, name))
      throw new SimOptionError(`There is no simulator option "${name}"; the options are ${optionNames.join(', ')}.`);
  }
  const root = new Prng(seed).fork('swarm');
  const drawn: Record<string, unknown> = {};
  for (const name of optionNames) {
    const value = (draws[name] as Draw<OptionName>)(root.fork(name), drawn);
    const pin = pins[name];
    drawn[name] = pin === undefined ? value : parsePin(name, pin, typeof value);
  }
  return checked(drawn as unknown as SimOptions);
}

function parsePin(name: string, text: string, kind: string): string | number | boolean {
  if (kind === 'string') return text;
  if (kind === 'boolean') {
    if (text !== 'true' && text !== 'false')
      throw new SimOptionError(`The option ${name} is true or false, not "${text}".`);
    return text === 'true';
  }
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new SimOptionError(`The option ${name} must be a number, not "${text}".`);
  return value;
}

function checked(options: SimOptions): SimOptions {
  const wrong = (condition: boolean, sentence: string): void => {
    if (condition) throw new SimOptionError(sentence);
  };
  wrong(
    !(Number.isInteger(options.nodes) && options.nodes >= 1 && options.nodes <= 15),
    'The number of nodes must be 1 to 15.',
  );
  wrong(
    !(Number.isInteger(options.rf) && options.rf >= 1 && options.rf <= 5 && options.rf <= options.nodes),
    'The replication factor must be 1 to 5, and no more than the nodes.',
  );
  wrong(!(options.minInSync >= 1 && options.minInSync <= options.rf), 'minInSync must be 1 to the replication factor.');
  wrong(16_384 % options.partitions !== 0, 'The number of partitions must divide 16,384.');
  wrong(!(options.durationMs > 0), 'The duration must be positive.');
  wrong(
    !(options.sessions >= 1 && options.clients >= 1 && options.clients <= options.sessions),
    'There must be a session and a client, and no more clients than sessions.',
  );
  wrong(
    options.chaos !== 'none' && !chaosLevels.includes(options.chaos),
    `The chaos level must be none or one of ${chaosLevels.join(', ')}.`,
  );
  const mix = parseMix(options.mix);
  if ('error' in mix) throw new SimOptionError(mix.error);
  faultList(options.faults);
  return options;
}

/** The fault names of an option text. Throws {@link SimOptionError}. */
export function faultList(text: string): FaultName[] {
  return [
    ...new Set(
      text.split(',').flatMap((word) => {
        const names = faultNamesOfWord(word.trim());
        if (names === null) throw new SimOptionError(`There is no fault "${word.trim()}".`);
        return names;
      }),
    ),
  ];
}

/** "rf=3 nodes=5 …", in the order of the names. */
export const describeOptions = (options: SimOptions): string =>
  optionNames.map((name) => `${name}=${String(options[name])}`).join(' ');

/** All options as pins: replays exactly these, whatever a later version draws. */
export const pinsOf = (options: SimOptions): Record<string, string> =>
  Object.fromEntries(optionNames.map((name) => [name, String(options[name])]));
