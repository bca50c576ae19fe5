/**
 * What a run's chaos amounted to, from the journal's records alone: matrix fault × role, counts, overlap share.
 *
 * Invariant: a fault counts as confirmed only by a `confirmed` record; shares are of confirmed faults. If plans counted,
 * the certificate would boast of what never happened.
 */
import { type FaultName, faultName, type Target } from './faults.ts';
import { advanceLife, type FaultLife, type FaultRecord, isConfirmed } from './journal.ts';

/** One fault as the journal tells it. */
export interface FaultStory {
  readonly faultId: string;
  /** What was planned. */
  readonly planned: FaultName;
  /** What it became. */
  readonly fault: FaultName;
  readonly role: Target['kind'];
  readonly nodeIds: readonly string[];
  readonly partition: number | null;
  readonly life: FaultLife;
  readonly openFaultsAtInjection: number;
  readonly unhealthyPartitionsAtInjection: number;
  readonly change: string | null;
  readonly overshoots: readonly string[];
}

/** Folds records (in the order written) into stories, in the order planned. */
export function storiesOf(records: readonly FaultRecord[]): readonly FaultStory[] {
  const stories = new Map<string, FaultStory>();
  for (const record of records) {
    const before = stories.get(record.faultId);
    const life = advanceLife(before?.life ?? null, record);
    if (record.step === 'planned') {
      const name = faultName(record.fault);
      stories.set(record.faultId, {
        faultId: record.faultId,
        planned: name,
        fault: name,
        role: record.target.kind,
        nodeIds: [],
        partition: null,
        life,
        openFaultsAtInjection: 0,
        unhealthyPartitionsAtInjection: 0,
        change: null,
        overshoots: [],
      });
      continue;
    }
    if (before === undefined) continue;
    stories.set(record.faultId, { ...before, ...changedBy(record, before), life });
  }
  return [...stories.values()];
}

function changedBy(record: FaultRecord, before: FaultStory): Partial<FaultStory> {
  switch (record.step) {
    case 'changed':
      return { fault: faultName(record.fault), change: `${record.from} → ${record.to}: ${record.why}` };
    case 'injecting':
      return {
        nodeIds: record.nodeIds,
        partition: record.partition,
        openFaultsAtInjection: record.surroundings.openFaults.length,
        unhealthyPartitionsAtInjection: record.surroundings.unhealthyPartitions,
      };
    case 'overshoot':
      return { overshoots: [...before.overshoots, record.why] };
    default:
      return {};
  }
}

export interface MatrixCell {
  readonly fault: FaultName;
  readonly role: Target['kind'];
  readonly planned: number;
  readonly confirmed: number;
  readonly skipped: number;
  /** Of the confirmed ones. */
  readonly healVerified: number;
}

export interface ChaosSummary {
  /** Cells with anything in them; `planned` under what was planned, the rest under what it became. */
  readonly matrix: readonly MatrixCell[];
  readonly planned: number;
  readonly injected: number;
  readonly confirmed: number;
  readonly unconfirmed: number;
  readonly skipped: number;
  readonly changed: number;
  readonly healVerified: number;
  /** Kinds planned and never confirmed. */
  readonly neverConfirmed: readonly FaultName[];
  /** Confirmed faults that overlapped another, or hit while a partition was not Healthy, of all confirmed; 0 to 1. */
  readonly overlapShare: number;
  readonly overshoots: readonly string[];
  readonly skipReasons: ReadonlyMap<string, number>;
}

/** When the fault was open; null when it never was. Still open: for ever. */
export function windowOf(life: FaultLife): { readonly fromMs: number; readonly toMs: number } | null {
  switch (life.kind) {
    case 'planned':
    case 'skipped':
    case 'injecting':
      return null;
    case 'injected':
    case 'confirmed':
      return { fromMs: life.injectedAtMs, toMs: Number.POSITIVE_INFINITY };
    case 'healed':
    case 'heal-verified':
    case 'heal-unverified':
      return { fromMs: life.injectedAtMs, toMs: life.healedAtMs };
  }
}

/** The numbers of a run. */
export function summarize(stories: readonly FaultStory[]): ChaosSummary {
  const confirmed = stories.filter((story) => isConfirmed(story.life));
  const kinds = [...new Set(stories.map((story) => story.planned))];
  const skipReasons = new Map<string, number>();
  for (const { life } of stories) {
    if (life.kind === 'skipped') skipReasons.set(life.reason, (skipReasons.get(life.reason) ?? 0) + 1);
  }
  const injected = stories.filter((story) => windowOf(story.life) !== null);
  return {
    matrix: matrixOf(stories),
    planned: stories.length,
    injected: injected.length,
    confirmed: confirmed.length,
    unconfirmed: injected.length - confirmed.length,
    skipped: stories.filter((story) => story.life.kind === 'skipped').length,
    changed: stories.filter((story) => story.change !== null).length,
    healVerified: confirmed.filter((story) => story.life.kind === 'heal-verified').length,
    neverConfirmed: kinds.filter((name) => !confirmed.some((story) => story.fault === name)),
    overlapShare:
      confirmed.length === 0 ? 0 : confirmed.filter((story) => overlaps(story, confirmed)).length / confirmed.length,
    overshoots: stories.flatMap((story) => story.overshoots.map((why) => `${story.faultId}: ${why}`)),
    skipReasons,
  };
}

function overlaps(story: FaultStory, others: readonly FaultStory[]): boolean {
  if (story.unhealthyPartitionsAtInjection > 0) return true;
  const own = windowOf(story.life);
  return others.some((other) => {
    const window = windowOf(other.life);
    return other !== story && own !== null && window !== null && own.fromMs < window.toMs && window.fromMs < own.toMs;
  });
}

function matrixOf(stories: readonly FaultStory[]): readonly MatrixCell[] {
  const cells = new Map<string, MatrixCell>();
  const add = (fault: FaultName, role: Target['kind'], counts: Partial<MatrixCell>): void => {
    const key = `${fault} ${role}`;
    const cell = cells.get(key) ?? { fault, role, planned: 0, confirmed: 0, skipped: 0, healVerified: 0 };
    cells.set(key, {
      ...cell,
      planned: cell.planned + (counts.planned ?? 0),
      confirmed: cell.confirmed + (counts.confirmed ?? 0),
      skipped: cell.skipped + (counts.skipped ?? 0),
      healVerified: cell.healVerified + (counts.healVerified ?? 0),
    });
  };
  for (const story of stories) {
    add(story.planned, story.role, { planned: 1, skipped: story.life.kind === 'skipped' ? 1 : 0 });
    if (!isConfirmed(story.life)) continue;
    add(story.fault, story.role, { confirmed: 1, healVerified: story.life.kind === 'heal-verified' ? 1 : 0 });
  }
  return [...cells.values()].sort((a, b) => a.fault.localeCompare(b.fault) || a.role.localeCompare(b.role));
}
