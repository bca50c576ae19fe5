/** What the run of one fault needs from the driver: the world, the shared account and field, bounds, the journal. */
import type { Clock } from '../lib/clock.ts';
import type { Account } from './account.ts';
import type { BudgetPolicy } from './budget.ts';
import type { FaultField } from './field.ts';
import type { FaultStep } from './journal.ts';
import type { Cluster, Sleeper, StatusSource, SystemStatus } from './ports.ts';

/** Bounds of a fault's life; milliseconds. */
export interface RunBounds {
  /** How long a fault waits for a status, a target, a budget that lets it happen. */
  readonly postponeMs: number;
  readonly statusTimeoutMs: number;
  readonly confirmMs: number;
  /** The same for a node that was added: it must start first. */
  readonly confirmStartMs: number;
  readonly verifyMs: number;
  /** Longest wait for other faults that hide a heal. */
  readonly hiddenMs: number;
  /** A rolling restart's wait for a node to be back in all its sets. */
  readonly backInSetsMs: number;
  readonly pollMs: number;
}

export const runBounds: RunBounds = {
  postponeMs: 15_000,
  statusTimeoutMs: 3_000,
  confirmMs: 5_000,
  confirmStartMs: 30_000,
  verifyMs: 20_000,
  hiddenMs: 120_000,
  backInSetsMs: 120_000,
  pollMs: 150,
};

export interface ScaleChange {
  readonly kind: 'added' | 'removed';
  readonly nodeId: string;
}

export interface RunContext {
  readonly cluster: Cluster;
  readonly status: StatusSource;
  readonly clock: Clock;
  readonly sleeper: Sleeper;
  readonly field: FaultField;
  readonly account: Account;
  readonly policy: BudgetPolicy;
  readonly bounds: RunBounds;
  readonly unsupported: ReadonlyMap<string, string>;
  /** Aborted when everything is to be healed now; its reason says why. */
  readonly healNow: AbortSignal;
  /** A node was added, or removed for good. */
  scaled(change: ScaleChange): void;
  /** Writes a step to the journal; resolves once it is kept. */
  write(faultId: string, step: FaultStep, atMs?: number): Promise<void>;
  /** Takes note of an error of the environment (not of the store). */
  environment(error: string): void;
}

/** A quorum-read status that is fresh, or null; never rejects, never takes longer than its bound. */
export async function freshStatus(context: RunContext): Promise<SystemStatus | null> {
  const { bounds, sleeper, status } = context;
  const given = new AbortController();
  try {
    return await Promise.race([
      status.status().catch(() => null),
      sleeper.sleep(bounds.statusTimeoutMs, given.signal).then(() => null),
    ]);
  } finally {
    given.abort('over');
  }
}

/** Why everything is healed now. */
export const healReason = (context: RunContext): string => String(context.healNow.reason);
