/**
 * The faults of a run for its report, told from the journal rows of the ledger alone.
 *
 * Invariant: a fault is `confirmed` only by a probe's record. What could not be injected stands in `notInjected`, with the reason.
 */
import { faultName } from '../../chaos/faults.ts';
import { type FaultLife, type FaultRecord, isConfirmed } from '../../chaos/journal.ts';
import { storiesOf, summarize, type ChaosSummary, type FaultStory, windowOf } from '../../chaos/summary.ts';
import type { FaultRow } from '../../ledger/rows.ts';
import type { Coverage, Fault } from '../report/model-timeline.ts';

/** Everything about faults that a report needs. */
export interface FaultPart {
  readonly faults: readonly Fault[];
  readonly stories: readonly FaultStory[];
  readonly summary: ChaosSummary;
  readonly coverage: Coverage;
}

/** Longest text of one piece of evidence. */
const maxEvidenceChars = 400;

/** Rows in the order of writing; times of the ledger (ns since the start) become ms. */
export function faultPart(rows: Iterable<FaultRow>, unsupported: ReadonlyMap<string, string>): FaultPart {
  const records = [...rows].map((row): FaultRecord => ({ ...(row.evidence as FaultRecord), atMs: row.atNs / 1e6 }));
  const stories = storiesOf(records);
  const summary = summarize(stories);
  const byFault = Map.groupBy(records, (record) => record.faultId);
  const faults = stories.map((story) => faultOf(story, byFault.get(story.faultId) ?? [], stories));
  return { faults, stories, summary, coverage: coverageOf(faults, unsupported, summary) };
}

function faultOf(story: FaultStory, records: readonly FaultRecord[], stories: readonly FaultStory[]): Fault {
  const at = (step: FaultRecord['step']): number | null => records.find((record) => record.step === step)?.atMs ?? null;
  const planned = records.find((record) => record.step === 'planned');
  const injecting = records.find((record) => record.step === 'injecting');
  const roles = injecting?.step === 'injecting' ? injecting.surroundings.roles : [];
  const outcome = outcomeOf(story.life, records);
  return {
    id: story.faultId,
    kind: story.fault,
    targets: [...story.nodeIds],
    roles: roles.length > 0 ? [...roles] : [story.role],
    partition: story.partition,
    trigger: planned?.step === 'planned' ? planned.due : '',
    outcome,
    reason: outcome === 'confirmed' ? null : reasonOf(records),
    stages: {
      plannedMs: records[0]?.atMs ?? 0,
      injectedMs: at('injected'),
      confirmedMs: at('confirmed'),
      healedMs: at('healed'),
      healVerifiedMs: at('heal-verified'),
    },
    evidence: records.flatMap(evidenceOf),
    overlapsOther: overlaps(story, stories),
    hitUnhealthy: story.unhealthyPartitionsAtInjection > 0,
    overshoot: story.overshoots.length > 0,
  };
}

function outcomeOf(life: FaultLife, records: readonly FaultRecord[]): Fault['outcome'] {
  if (isConfirmed(life)) return 'confirmed';
  if (life.kind === 'skipped' || life.kind === 'planned') return 'skipped';
  return records.some((record) => record.step === 'failed') ? 'failed' : 'unconfirmed';
}

function reasonOf(records: readonly FaultRecord[]): string {
  for (const record of records.toReversed()) {
    if (record.step === 'skipped') return record.reason;
    if (record.step === 'failed') return record.error;
    if (record.step === 'unconfirmed') return record.evidence;
  }
  return 'the run ended before it was due';
}

/** "n5 killed at 47449": milliseconds of the chaos driver's own clock, which no other time of a report goes by. */
const driverTime = / at \d+(?=;|$)/g;

function evidenceOf(record: FaultRecord): { stage: string; text: string }[] {
  const text = textOf(record);
  return text === null ? [] : [{ stage: record.step, text: text.replace(driverTime, '').slice(0, maxEvidenceChars) }];
}

function textOf(record: FaultRecord): string | null {
  switch (record.step) {
    case 'planned':
      return null;
    case 'changed':
      return `${record.from} became ${record.to}: ${record.why}`;
    case 'skipped':
      return record.reason;
    case 'injecting':
      return `${faultName(record.fault)} on ${record.nodeIds.join(', ')}`;
    case 'healing':
    case 'overshoot':
      return record.why;
    case 'failed':
      return record.error;
    case 'injected':
    case 'confirmed':
    case 'unconfirmed':
    case 'healed':
    case 'heal-verified':
    case 'heal-unverified':
      return record.evidence;
  }
}

function overlaps(story: FaultStory, stories: readonly FaultStory[]): boolean {
  const own = windowOf(story.life);
  if (own === null) return false;
  return stories.some((other) => {
    const window = other === story ? null : windowOf(other.life);
    return window !== null && own.fromMs < window.toMs && window.fromMs < own.toMs;
  });
}

function coverageOf(
  faults: readonly Fault[],
  unsupported: ReadonlyMap<string, string>,
  summary: ChaosSummary,
): Coverage {
  const confirmed = faults.filter((fault) => fault.outcome === 'confirmed');
  const roleOf = (role: string): string => role.replace(/ of \d+.*$/, '');
  const kinds = [...new Set(confirmed.map((fault) => fault.kind))].toSorted();
  const roles = [...new Set(confirmed.flatMap((fault) => fault.roles.map(roleOf)))].toSorted();
  const count = (kind: string, role: string): number =>
    confirmed.filter((fault) => fault.kind === kind && fault.roles.some((each) => roleOf(each) === role)).length;
  const never = summary.neverConfirmed.map((kind) => ({
    kind,
    reason: faults.find((fault) => fault.kind === kind && fault.reason !== null)?.reason ?? 'no probe confirmed it',
  }));
  const impossible = [...unsupported]
    .filter(([kind]) => !never.some((each) => each.kind === kind))
    .map(([kind, reason]) => ({ kind, reason }));
  return {
    kinds,
    roles,
    confirmed: kinds.map((kind) => roles.map((role) => count(kind, role))),
    notInjected: [...never, ...impossible],
  };
}
