/**
 * How much a run must have seen before finding nothing means anything. Thresholds follow from its length and rate; each can be
 * set. If they were nought, an idle run would pass.
 */
import type { RunSettings } from './settings.ts';

/** Null: as {@link minimumsOf} says. */
export interface EvidenceSettings {
  readonly minAcked: number | null;
  readonly minAckedPerFault: number | null;
  readonly minFailovers: number | null;
  readonly minPlannedPerRole: number | null;
}

export interface EvidenceMinimums {
  /** Acknowledged writes in all. */
  readonly acked: number;
  /** Acknowledged writes inside the windows of each fault kind. */
  readonly ackedPerFaultKind: number;
  /** Failovers that a judged write went through. */
  readonly failovers: number;
  /** A fault kind planned at least so often against one role must have been confirmed against it. */
  readonly plannedPerRole: number;
}

/** Share of the asked rate that must have been acknowledged at least; below it the run was mostly idle. */
const ackedShare = 0.05;
/** Rate that is assumed of a run without a limit, per second. */
const assumedPerSecond = 1_000;
const ackedPerFaultKindPerSecond = 1;
const maxAckedPerFaultKind = 100;
export const defaultPlannedPerRole = 3;

type Known = Pick<
  RunSettings,
  'durationMs' | 'ratePerSecond' | 'maxOperations' | 'readRatio' | 'chaosLevel' | 'replicationFactor'
> & {
  readonly evidence: Partial<EvidenceSettings>;
};

/** The thresholds of a run with these settings. */
export function minimumsOf(settings: Known): EvidenceMinimums {
  const { evidence } = settings;
  const seconds = settings.durationMs / 1_000;
  const writes =
    Math.min(settings.maxOperations, seconds * Math.min(settings.ratePerSecond, assumedPerSecond)) *
    (1 - settings.readRatio);
  const hasFaults = settings.chaosLevel !== 'none';
  return {
    acked: evidence.minAcked ?? Math.max(1, Math.floor(writes * ackedShare)),
    ackedPerFaultKind:
      evidence.minAckedPerFault ?? Math.min(maxAckedPerFaultKind, Math.ceil(seconds * ackedPerFaultKindPerSecond)),
    // One copy has nothing to fail over to.
    failovers: evidence.minFailovers ?? (hasFaults && settings.replicationFactor > 1 ? 1 : 0),
    plannedPerRole: evidence.minPlannedPerRole ?? defaultPlannedPerRole,
  };
}
