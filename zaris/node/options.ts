/** Settings of one node, given once at its start. Times in milliseconds. */
import type { ControllerTimings } from '../control/controller.ts';
import type { DetectorTimings } from '../control/detector.ts';
import type { NodeId } from '../model/ids.ts';
import { type ProtocolRules, soundRules } from '../partition/rules.ts';
import { type Timings, defaultTimings } from '../partition/timings.ts';
import { assert } from '../../lib/assert.ts';

export interface ControlTimings extends DetectorTimings, ControllerTimings {
  /** A member's beacon to the leader. */
  readonly beaconMs: number;
  readonly heartbeatMs: number;
  /** Applied control entries after which the log is replaced by a snapshot. */
  readonly snapshotEvery: number;
  /** A graceful stop ends after this even if something could not be handed over. */
  readonly shutdownMs: number;
  /** The process stood still when two steps lie further apart than this; silence before it proves nothing. */
  readonly stallMs: number;
  /** Voters of the control plane at most. */
  readonly maxVoters: number;
}

export const defaultControlTimings: ControlTimings = {
  beaconMs: 100,
  lookMs: 150,
  suspectEscalationMs: 10_000,
  healthHoldDownMs: 500,
  belowMinMs: 2_000,
  nodeLeftMs: 10 * 60_000,
  evictAfterMs: null,
  controlSessionMs: 30_000,
  reproposeMs: 250,
  // A killed leader is noticed by its closed connections; this is for silence, and a busy host is silent now and then.
  electionTimeoutMs: 1_500,
  heartbeatMs: 100,
  snapshotEvery: 2_000,
  shutdownMs: 10_000,
  stallMs: 600,
  maxVoters: 5,
};

export interface NodeOptions {
  readonly nodeId: NodeId;
  /** host:port that this node announces to clients and to peers. */
  readonly clientAddress: string;
  readonly clusterAddress: string;
  /** Peers known from the start; later ones come from the control log. */
  readonly peers: readonly NodeId[];
  /** Name of a new control disk; used only where the disk is empty. */
  readonly newDiskId: string;
  /** Drawn anew at every start of the process. */
  readonly nonce: string;
  readonly timings?: Partial<Timings>;
  readonly control?: Partial<ControlTimings>;
}

/** What tests of the verifier replace; the shipped node never passes any of it. */
export interface NodeParts {
  readonly rules: ProtocolRules;
  /** Called when an invariant does not hold. */
  readonly onBrokenInvariant: (why: string) => void;
}

export const soundParts: NodeParts = {
  rules: soundRules,
  onBrokenInvariant(why) {
    assert(false, why);
  },
};

export const withTimings = (options: NodeOptions): Timings => ({ ...defaultTimings, ...options.timings });

export const withControlTimings = (options: NodeOptions): ControlTimings => ({
  ...defaultControlTimings,
  ...options.control,
});
