/**
 * The settings of a run, fully resolved: what the command line becomes and the ledger keeps. Nothing below the command
 * line reads a flag or an environment variable.
 */
import type { FaultName } from '../chaos/faults.ts';
import type { KeyDistribution } from '../workloads/context.ts';
import type { ChaosChoice } from './chaos-names.ts';
import type { EvidenceSettings } from './evidence-minimums.ts';
import type { ProfileName } from './profiles.ts';
import type { WeightedWorkload } from '../workloads/mix.ts';

/** Where the nodes run. `docker` is the real thing and the only default. */
export const clusterKinds = ['docker', 'process'] as const;
export type ClusterKind = (typeof clusterKinds)[number];

export const contractKinds = ['durable', 'declared'] as const;
export type ContractKind = (typeof contractKinds)[number];

export const onLossChoices = ['continue', 'stop', 'freeze'] as const;
export type OnLoss = (typeof onLossChoices)[number];

export interface RunSettings {
  readonly durationMs: number;
  readonly replicationFactor: number;
  /** Null: the system's own rule for this replication factor. */
  readonly minInSync: number | null;
  readonly nodeCount: number;
  readonly partitionCount: number;
  readonly seed: number;
  /** Operations per second over all sessions; Infinity is unthrottled. */
  readonly ratePerSecond: number;
  readonly sessions: number;
  readonly mix: readonly WeightedWorkload[];
  readonly distribution: KeyDistribution;
  readonly readRatio: number;
  readonly valueBytes: number;
  readonly activeKeys: number;
  readonly operationsPerKey: number;
  readonly maxLiveKeys: number;
  readonly maxOperations: number;
  readonly chaosLevel: ChaosChoice;
  /** Faults to draw from; null: those of the level. */
  readonly faultNames: readonly FaultName[] | null;
  readonly scheduleFile: string | null;
  /** Faults may take more than the contract promises to survive. */
  readonly beyondBudget: boolean;
  readonly cluster: ClusterKind;
  readonly system: string;
  readonly contract: ContractKind;
  readonly onLoss: OnLoss;
  /** Gates of the job's own, `--fail-if`; each has been parsed once. */
  readonly failIf: readonly string[];
  readonly evidence: EvidenceSettings;
  /** The name under which these settings were asked for; null: none. */
  readonly profile: ProfileName | null;
  readonly resultsDir: string;
  /** Leaves the cluster running for inspection. */
  readonly keep: boolean;
  readonly ledgerSync: 'normal' | 'full';
  /** Another node program to run inside the same image; how deliberately broken builds are wired in. */
  readonly nodeEntry: string | null;
  /** An image to run instead of one made from these sources; containers only. */
  readonly image: string | null;
  /** A folder with a Dockerfile to build that image from. */
  readonly build: string | null;
  /** Environment of every node, on top of the system's own. */
  readonly nodeEnvironment: Readonly<Record<string, string>>;
}

/** Defaults that a newcomer gets; the help text prints them. */
export const defaults = {
  duration: '10m',
  rf: 3,
  nodes: 5,
  partitions: 64,
  rate: 2_500,
  sessions: 64,
  distribution: 'uniform',
  readRatio: 0.2,
  valueBytes: 64,
  activeKeys: 256,
  operationsPerKey: 200,
  maxLiveKeys: 1_000_000,
  chaos: 'standard',
  results: 'results',
} as const;

/** Largest cluster that a run may ask for. */
export const maxNodes = 25;
/** Sessions beyond this only queue up in one process. */
export const maxSessions = 4_096;
