/**
 * The runs that are to catch a broken store on real nodes: ordinary certifications, with faults and load chosen so that it shows soon.
 *
 * They follow from what the store pins in the simulator; what only exists there (latency of the network, moments) is left out, and
 * timings of the node go into its environment. What needs other faults on real nodes stands in {@link realNeeds}.
 */
import { brokenStores } from '../../sim/broken/catalogue.ts';
import type { BrokenStore } from '../../sim/broken/store.ts';
import type { Pins } from '../../sim/options.ts';

/** Where the nodes of a self-test run, apart from the simulator. */
export type RealCluster = 'docker' | 'process';

/**
 * Played when none is named: each breaks another rule, and each shows at almost every fault of its kind. An isolated primary goes on
 * acknowledging alone (the first two); a killed one leaves acknowledged entries that its successor throws away, or was never given;
 * a broken connection makes the client repeat what was done already.
 */
export const usualNames: readonly string[] = [
  'ack-before-replication',
  'in-sync-by-timer',
  'tail-cut-on-promotion',
  'replica-skips-entries',
  'no-exactly-once',
];

/** The program of a node of a broken store, and the variable that names the store. */
export const brokenEntry = 'sim/broken/main.ts';
export const brokenVariable = 'ZARIS_BROKEN';

/** First attempt: short, since most stores show themselves at their first fault. ms. */
const firstRunMs = 30_000;
/** Further attempts, each with a seed of its own, ms. */
const furtherRunMs = 60_000;
/** A rest of the time that is shorter goes to the attempt before it, ms. */
const leastRunMs = 20_000;

/** Operations per second: enough to have some under way at every fault, few enough to be judged in seconds. */
const usualRate = '1000';
/** A cut-off primary is given up after this, ms, so that there is a successor before most cuts are healed. */
const suspectEscalationMs = '2000';

/** What shows a store on real nodes, where that is not what shows it in the simulator. */
interface RealNeeds {
  readonly faults: string;
  readonly rate?: string;
}

/**
 * Faults that show the store soonest. The simulator breaks connections of clients by itself, and its network keeps many operations
 * under way; here faults do the first, and a load without pause the second.
 */
const realNeeds: Readonly<Record<string, RealNeeds>> = {
  'ack-before-replication': { faults: 'isolate,kill' },
  'in-sync-by-timer': { faults: 'isolate,one-way-in,one-way-out' },
  'no-exactly-once': { faults: 'reset,client-partition,kill', rate: 'max' },
  'tail-cut-on-promotion': { faults: 'kill', rate: '2500' },
};

/** Options of a run under the names of the simulator's. */
const optionOf: Readonly<Record<string, string>> = {
  rf: '--rf',
  nodes: '--nodes',
  partitions: '--partitions',
  sessions: '--sessions',
  mix: '--workload',
  distribution: '--keys',
  readRatio: '--read-ratio',
  activeKeys: '--active-keys',
  operationsPerKey: '--key-operations',
  valueBytes: '--value-bytes',
  chaos: '--chaos',
};

/** Timings of the node, by the simulator's names; the environment spells them in capitals. */
const nodeTimings: readonly string[] = [
  'suspectEscalationMs',
  'nodeLeftMs',
  'silentReplicaMs',
  'holdDownMs',
  'logKeepEntries',
  'snapshotItems',
  'clientIdleMs',
  'beatMs',
  'leaseMs',
  'beaconMs',
  'heartbeatMs',
];

const variableOf = (timing: string): string =>
  `ZARIS_${timing.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

/** A lease lasts for four beats unless pinned itself, as in the simulator. */
function timingsOf(pins: Pins): Record<string, string> {
  const given = Object.fromEntries(Object.entries(pins).filter(([name]) => nodeTimings.includes(name)));
  const { beatMs } = given;
  const lease = beatMs === undefined ? {} : { leaseMs: String(4 * Number(beatMs)) };
  return { suspectEscalationMs, ...lease, ...given };
}

export interface BrokenRun {
  readonly store: BrokenStore;
  readonly cluster: RealCluster;
  readonly durationMs: number;
  readonly seed: number;
  readonly resultsDir: string;
  /** False: the shipped node in its place, everything else alike. */
  readonly isBroken: boolean;
}

/** The command line of `certify run` that plays it. */
export function runWords({ store, cluster, durationMs, seed, resultsDir, isBroken }: BrokenRun): string[] {
  const { pins } = store;
  const needs = realNeeds[store.name];
  const options = Object.entries(pins).flatMap(([name, value]) => {
    const option = optionOf[name];
    return option === undefined ? [] : [option, value];
  });
  const timings = Object.entries(timingsOf(pins)).flatMap(([name, value]) => [
    '--node-env',
    `${variableOf(name)}=${value}`,
  ]);
  const broken = isBroken ? ['--node-entry', brokenEntry, '--node-env', `${brokenVariable}=${store.name}`] : [];
  return [
    ...['--cluster', cluster, '--duration', `${durationMs}ms`, '--seed', String(seed), '--results', resultsDir],
    ...['--on-loss', 'stop', '--rate', needs?.rate ?? usualRate, '--faults', needs?.faults ?? pins['faults'] ?? 'all'],
    ...options,
    ...(pins['partitions'] === undefined ? ['--partitions', '16'] : []),
    ...broken,
    ...timings,
  ];
}

/** Lengths of the runs that share the time of one store, ms: a short one first, then longer ones. */
export function runLengths(totalMs: number): number[] {
  const lengths: number[] = [];
  for (let leftMs = totalMs; leftMs > 0;) {
    const lengthMs = lengths.length === 0 ? firstRunMs : furtherRunMs;
    lengths.push(leftMs - lengthMs < leastRunMs ? leftMs : lengthMs);
    leftMs -= lengths.at(-1) as number;
  }
  return lengths;
}

/** The stores of these names in the order of the catalogue. Returns a name that there is no store of, else the stores. */
export function storesOf(names: readonly string[]): readonly BrokenStore[] | { readonly unknown: string } {
  if (names.includes('all')) return brokenStores;
  const unknown = names.find((name) => !brokenStores.some((store) => store.name === name));
  return unknown === undefined ? brokenStores.filter((store) => names.includes(store.name)) : { unknown };
}
