/**
 * Everything real that a run touches, as arguments: tests hand in a store in memory and a cluster of objects.
 */
import type { Cluster, EventSource, StatusSource } from '../../chaos/ports.ts';
import type { ScaleChange } from '../../chaos/run-context.ts';
import type { Schedule } from '../../chaos/schedule.ts';
import type { FaultJournal } from '../../chaos/journal.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Certificate } from '../certificate.ts';
import type { OpenClusterOptions, RunCluster } from '../clusters/run-cluster.ts';
import type { RunFolder } from '../results.ts';
import type { RunSettings } from '../settings.ts';
import type { Found } from '../found.ts';
import type { System } from '../systems/system.ts';
import type { VerdictReason, Verdict } from '../verdict.ts';
import type { Interruption } from './interruption.ts';
import type { RunLedger } from './ports.ts';
import type { Tally } from './tally.ts';

/** Chaos at work. */
export interface ChaosControl {
  /** Resolves when the schedule has been played and everything is healed. Rejects on a fault of the harness. */
  readonly done: Promise<void>;
  /** Injects nothing more and heals everything; `done` follows. */
  healNow(why: string): void;
  /** Lets go of the cluster as it is: from now on nothing is injected, and nothing is healed. `done` may never follow. */
  letGo(): void;
}

export interface ChaosOptions {
  readonly settings: RunSettings;
  /** Play this one; null: draw or read the one that the settings name, and save it. */
  readonly schedule: Schedule | null;
  readonly cluster: Cluster;
  readonly status: StatusSource;
  readonly journal: FaultJournal;
  readonly events: EventSource;
  readonly clock: Clock;
  readonly folder: RunFolder;
  /** Takes note of what stands against a certificate. */
  readonly against: (reason: VerdictReason) => void;
  /** A node was added, or removed for good. */
  readonly onScaled: (change: ScaleChange) => void;
  readonly onSchedule: (schedule: Schedule, unsupported: ReadonlyMap<string, string>) => void;
}

/** What is known of a run's end besides its ledger; kept in the ledger so that a verdict can be recomputed offline. */
export interface RunEnd {
  readonly interruptedBy: string | null;
  /** Everything that stands against a certificate, found while running. */
  readonly reasons: readonly VerdictReason[];
  readonly readBack: { readonly expected: number; readonly done: number };
  readonly replicas: { readonly asked: number; readonly answered: number };
  readonly canaryDeleted: readonly string[];
  /** Canary keys that the live check reported. */
  readonly canarySeenLive: readonly string[];
  readonly peakMemoryBytes: number;
  /** How late a timer of the harness was at worst, ms. */
  readonly latenessMs: number;
}

/** What a judgement comes to. */
export interface Judged {
  readonly verdict: Verdict;
  readonly exitCode: number;
  readonly headline: string;
  /** What the verdict claims and rests on; absent where nothing was judged. */
  readonly certificate?: Certificate;
  /** Findings of the verifier by kind and rule; absent where nothing was judged. */
  readonly found?: readonly Found[];
  /** Lines for the terminal, under the headline. */
  readonly lines: readonly string[];
}

export interface World {
  readonly system: System;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly interruption: Interruption;
  readonly out: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number };
  /** Id of this process, for the run's id. */
  readonly processId: number;
  openLedger(folder: RunFolder, settings: RunSettings): Promise<RunLedger>;
  openCluster(options: OpenClusterOptions): Promise<RunCluster>;
  startChaos(options: ChaosOptions): Promise<ChaosControl>;
  /** Writes a preliminary report from what is on disk; quick. */
  preliminary(folder: RunFolder, settings: RunSettings, tally: Tally, why: string): Promise<void>;
  /** Judges the ledger of a run and writes its reports. */
  judge(folder: RunFolder, signal: AbortSignal): Promise<Judged>;
}
