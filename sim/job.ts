/** What one simulated run is given and what it gives back; and the world that its options ask for. */
import type { BudgetPolicy } from '../chaos/budget.ts';
import type { Schedule } from '../chaos/schedule.ts';
import { Prng } from '../lib/prng.ts';
import type { Judgement } from '../ledger/verify/judge.ts';
import { nodeId } from '../zaris/model/ids.ts';
import { type BrokenStore, brokenNode } from './broken/store.ts';
import type { Coverage } from './coverage.ts';
import type { HistorySink, SimHistory } from './history.ts';
import type { SimOptions } from './options.ts';
import { World } from './world.ts';

export interface SimJob {
  readonly seed: number;
  readonly options: SimOptions;
  /** Played instead of the one that the seed draws. */
  readonly schedule?: Schedule;
  /** A deliberately wrong store; the shipped one without it. */
  readonly store?: BrokenStore;
  /** What the fault budget allows; the store's own where it brings one. */
  readonly policy?: BudgetPolicy;
  /** Invariants are checked after every step; off where only the verifier is on trial. */
  readonly checkers?: boolean;
  /** Takes the history while the run goes on; it is then judged from there. */
  readonly sink?: HistorySink & {
    /** Resolves when the sink has caught up; null: go on. */
    pace(): Promise<void> | null;
  };
  /** Looks at the world before it starts; for traces. */
  readonly onWorld?: (world: World) => void;
}

/** An invariant that a checker saw broken, or an assertion that stopped a node. */
export interface Breach {
  readonly atMs: number;
  readonly where: string;
  readonly why: string;
}

/** A run that was played, and not judged yet. */
export interface SimPlayed {
  readonly seed: number;
  readonly options: SimOptions;
  readonly schedule: Schedule;
  readonly traceHash: string;
  readonly breaches: readonly Breach[];
  /** Why the cluster did not come up or did not come back; null when it did. */
  readonly notRecovered: string | null;
  readonly overshoots: readonly string[];
  readonly environmentErrors: readonly string[];
  readonly history: SimHistory;
  readonly coverage: Coverage;
  readonly virtualMs: number;
  readonly wallMs: number;
  readonly events: number;
  readonly confirmedFaults: number;
  readonly failovers: number;
  readonly handoffs: number;
  readonly canariesSeen: readonly string[];
  /** Keys that were to be read back. */
  readonly keysAtEnd: number;
  readonly phases: readonly { readonly name: string; readonly fromMs: number; readonly toMs: number }[];
}

export interface SimResult extends SimPlayed {
  readonly judgement: Judgement;
}

/** A world as the options draw it, with nodes of the store on trial. */
export function makeWorld({ seed, options, store }: SimJob): World {
  const slow = `n${1 + new Prng(seed).fork('slow').below(options.nodes)}`;
  return new World({
    seed,
    nodeCount: options.nodes,
    network: {
      minLatencyMs: options.minLatencyMs,
      meanExtraMs: options.meanLatencyMs,
      lossChance: options.lossChance,
      duplicateChance: options.duplicateChance,
      reorderChance: options.reorderChance,
      lateRequestMs: options.lateRequestMs,
    },
    fsyncMs: options.fsyncMs,
    meanFsyncExtraMs: options.meanFsyncMs,
    serviceMs: { [nodeId(slow)]: options.slowNodeMs },
    node: {
      control: {
        suspectEscalationMs: options.suspectEscalationMs,
        nodeLeftMs: options.nodeLeftMs,
        beaconMs: options.beaconMs,
        heartbeatMs: options.heartbeatMs,
        snapshotEvery: options.snapshotEvery,
      },
      timings: {
        logKeepEntries: options.logKeepEntries,
        snapshotItems: options.snapshotItems,
        holdDownMs: options.holdDownMs,
        silentReplicaMs: options.silentReplicaMs,
        clientIdleMs: options.clientIdleMs,
        beatMs: options.beatMs,
        leaseMs: options.leaseMs,
      },
    },
    ...(store === undefined
      ? {}
      : { makeNode: (nodeOptions, disk, random) => brokenNode(store, nodeOptions, disk, random) }),
  });
}
