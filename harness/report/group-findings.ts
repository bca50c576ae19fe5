/**
 * Findings by cause: which fault or epoch change each one stands next to, one sentence per group, then the cap.
 *
 * The cause is a hint for people ("acknowledged ≤ 340 ms before the kill of n2"), never part of a verdict. Counts are taken
 * before the cap and every group keeps some findings; if a cap could hide a group, a whole kind of loss would go unread.
 */
import { present } from '../../lib/assert.ts';
import { faultName, findingNoun, findingPhrase, findingVerb, isSum, isUnplaced, whereNow } from './finding-words.ts';
import type { CauseGroup, Finding, FindingKind } from './model-finding.ts';
import type { EpochChange, Fault } from './model-timeline.ts';
import type { RunReport } from './model.ts';
import { formatCount, formatDuration, listWords, visible } from './text.ts';

/** A finding as the checker hands it over, before it has a group. */
export type FindingDraft = Omit<Finding, 'group'>;

export interface CauseContext {
  readonly faults: readonly Fault[];
  readonly epochs: readonly EpochChange[];
  /** Findings listed at most; the counts go on. */
  readonly cap?: number;
  /** Findings of each kind that there were, where more than are handed over: groups are made of those alone, and say so. */
  readonly found?: ReadonlyMap<FindingKind, number>;
}

/** Findings listed by default. */
export const findingCap = 500;
/** A fault that begins later than this after an acknowledgement is not named as its cause. */
export const causeWindowMs = 30_000;
/** A write that is said to have failed was answered about so long after it was invoked, ms. */
const answerWithinMs = 5_000;
const epochsShown = 8;
/** Moves with no longer pause between them belong to one incident, ms. */
const incidentGapMs = 5_000;

type Cause =
  | {
      readonly kind: 'fault';
      readonly fault: Fault;
      readonly relation: 'before' | 'during';
      readonly distanceMs: number;
    }
  | { readonly kind: 'epoch'; readonly change: EpochChange; readonly incident: number; readonly distanceMs: number }
  /** The node that answered had been replaced as primary by then. */
  | { readonly kind: 'replaced'; readonly change: EpochChange; readonly distanceMs: number }
  | { readonly kind: 'sum' }
  /** The key had lost a write before: answers after that are wrong for the same reason. */
  | { readonly kind: 'follows' }
  | { readonly kind: 'unplaced' }
  | { readonly kind: 'none' };

const momentOf = (finding: FindingDraft): number => finding.operation.acknowledgedAtMs ?? finding.operation.invokedAtMs;

/** The value was still there then: what caused the finding came later, or was going on. */
const aliveOf = (finding: FindingDraft): number => Math.max(momentOf(finding), finding.lastSeen?.atMs ?? 0);

/** What was over by then is not the cause. */
const sinceOf = (finding: FindingDraft): number =>
  finding.lastSeen === null ? finding.operation.invokedAtMs : aliveOf(finding);

function horizonOf(finding: FindingDraft): number {
  // Why a write that took effect was said to have failed lies before the answer.
  if (finding.kind === 'phantom') return momentOf(finding) + answerWithinMs;
  const latest = aliveOf(finding) + causeWindowMs;
  return finding.firstMissed === null
    ? latest
    : Math.min(latest, Math.max(finding.firstMissed.atMs, momentOf(finding)));
}

/** Higher is closer: the acknowledging node hit, then the partition, then a node that holds a copy. */
function nearness(finding: FindingDraft, fault: Fault): number {
  if (finding.node !== null && fault.targets.includes(finding.node)) return hitItself;
  if (fault.partition !== null && fault.partition === finding.partition) return 2;
  return finding.replicas.some((replica) => fault.targets.includes(replica.node)) ? 1 : 0;
}

/** A fault this near hit the node that answered; anything further away explains less than a change of the partition's owner. */
const hitItself = 3;

function faultCause(finding: FindingDraft, applied: readonly Fault[], atLeast: number): Cause | null {
  const moment = momentOf(finding);
  const since = sinceOf(finding);
  const horizon = horizonOf(finding);
  let best: { fault: Fault; score: number; distanceMs: number } | null = null;
  for (const fault of applied) {
    const fromMs = present(fault.stages.injectedMs, 'injection of an applied fault');
    if (fromMs > horizon) break;
    if ((fault.stages.healedMs ?? Infinity) < since) continue;
    const score = nearness(finding, fault);
    if (score < atLeast) continue;
    const distanceMs = Math.abs(fromMs - moment);
    if (best === null || score > best.score || (score === best.score && distanceMs < best.distanceMs)) {
      best = { fault, score, distanceMs };
    }
  }
  if (best === null) return null;
  const relation = present(best.fault.stages.injectedMs, 'injection') >= moment ? 'before' : 'during';
  return { kind: 'fault', fault: best.fault, relation, distanceMs: best.distanceMs };
}

function epochCause(finding: FindingDraft, moves: readonly Move[]): Cause | null {
  const moment = momentOf(finding);
  const since = sinceOf(finding);
  const horizon = horizonOf(finding);
  for (const move of moves) {
    const { change } = move;
    if (change.partition !== finding.partition || change.atMs < since) continue;
    // What led to the epoch of the answer came before it.
    if (finding.epoch !== null && change.epoch <= finding.epoch) continue;
    if (change.atMs > horizon) break;
    return { kind: 'epoch', change, incident: move.incident, distanceMs: Math.max(0, change.atMs - moment) };
  }
  return null;
}

/** The failover that had taken the partition from the answering node before it answered; null when there was none. */
function replacedCause(finding: FindingDraft, moves: readonly Move[], all: readonly EpochChange[]): Cause | null {
  const moment = momentOf(finding);
  const before = (changes: readonly EpochChange[]): EpochChange[] =>
    changes.filter((change) => change.partition === finding.partition && change.atMs <= moment);
  const last = before(moves.map(({ change }) => change)).at(-1);
  if (finding.node === null || last === undefined || last.owner === finding.node) return null;
  if (!before(all).some((change) => change.owner === finding.node && change.atMs < last.atMs)) return null;
  return { kind: 'replaced', change: last, distanceMs: moment - last.atMs };
}

/** Kinds that a lost write brings about in what is answered later. */
const consequences: ReadonlySet<FindingKind> = new Set([
  'stale',
  'non-monotone',
  'not-linearizable',
  'duplicated',
  'diverged',
]);

/** When the first write that is lost had been acknowledged, by key. */
function firstLosses(drafts: readonly FindingDraft[]): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  for (const draft of drafts) {
    if (draft.kind === 'lost' && draft.key !== '')
      first.set(draft.key, Math.min(first.get(draft.key) ?? Infinity, momentOf(draft)));
  }
  return first;
}

const follows = (finding: FindingDraft, lostAtMs: ReadonlyMap<string, number>): boolean =>
  consequences.has(finding.kind) && momentOf(finding) > (lostAtMs.get(finding.key) ?? Infinity);

interface Move {
  readonly change: EpochChange;
  /** Moves that come one upon the other have the same number. */
  readonly incident: number;
}

/** Failovers and handoffs in the order of time. */
function movesOf(epochs: readonly EpochChange[]): Move[] {
  let incident = 0;
  let lastMs = -Infinity;
  return epochs
    .filter((change) => change.kind !== 'edge')
    .toSorted((a, b) => a.atMs - b.atMs)
    .map((change) => {
      if (change.atMs - lastMs > incidentGapMs) incident++;
      lastMs = change.atMs;
      return { change, incident };
    });
}

function causeOf(
  finding: FindingDraft,
  applied: readonly Fault[],
  moves: readonly Move[],
  all: readonly EpochChange[],
): Cause {
  if (isSum(finding)) return { kind: 'sum' };
  if (isUnplaced(finding)) return { kind: 'unplaced' };
  return (
    faultCause(finding, applied, hitItself) ??
    replacedCause(finding, moves, all) ??
    epochCause(finding, moves) ??
    faultCause(finding, applied, 0) ?? { kind: 'none' }
  );
}

interface Gathered {
  readonly cause: Cause;
  distanceMs: number;
  readonly members: FindingDraft[];
}

function causeKey(kind: FindingKind, cause: Cause): string {
  switch (cause.kind) {
    case 'fault':
      return `${kind}|fault|${cause.fault.id}|${cause.relation}`;
    // A dead node moves many partitions at once: those are one cause.
    case 'epoch':
      return `${kind}|epoch|${cause.change.kind}|${cause.change.owner}|${cause.incident}`;
    case 'replaced':
      return `${kind}|replaced|${cause.change.partition}|${cause.change.epoch}`;
    case 'sum':
    case 'follows':
    case 'unplaced':
    case 'none':
      return `${kind}|${cause.kind}`;
  }
}

function causeWords({ cause, distanceMs, members }: Gathered): string {
  const isOne = members.length === 1;
  const verb = findingPhrase(present(members[0], 'a finding of the group'), isOne);
  const be = isOne ? 'was' : 'were';
  const distance = `${isOne ? '' : '≤ '}${formatDuration(distanceMs)}`;
  switch (cause.kind) {
    case 'fault':
      return cause.relation === 'before'
        ? `${verb} ${distance} before the ${faultName(cause.fault)}`
        : `${verb} during the ${faultName(cause.fault)}, ${distance} after it began`;
    case 'epoch': {
      const { change } = cause;
      const owner = change.owner === null ? '' : ` to ${visible(change.owner)}`;
      const partitions = new Set(members.map((member) => member.partition)).size;
      if (partitions > 1) return `${verb} ${distance} before ${change.kind}s of ${partitions} partitions${owner}`;
      return `${verb} ${distance} before the ${change.kind} of partition ${change.partition}${owner} (epoch ${change.epoch})`;
    }
    case 'replaced': {
      const { change } = cause;
      const owner = change.owner === null ? 'it had lost the partition' : `${change.owner} had replaced it`;
      return `${verb} by a former primary, ${distance} after ${owner} in partition ${change.partition} (epoch ${change.epoch})`;
    }
    case 'sum':
      return `${be} found by a sum that came out too low: which of the earlier additions is missing, and since when, a sum does not tell`;
    case 'unplaced':
      return `${be} found by comparing what the nodes say, with no single operation to name`;
    case 'follows':
      return `${verb} after the key had lost a write, and may follow from that`;
    case 'none':
      return `${verb} with no fault open, and neither fault nor failover in the ${formatDuration(causeWindowMs)} after or until it was noticed`;
  }
}

const ascending = (values: Iterable<number>): number[] => [...new Set(values)].toSorted((a, b) => a - b);

/** Kinds about which "where is the value now" says something. */
const placedKinds: ReadonlySet<FindingKind> = new Set([
  'lost',
  'diverged',
  'resurrected',
  'duplicated',
  'corrupt',
  'phantom',
]);

/** Where the values of a group are now; empty for kinds that are about reads. */
function whereNowOf(members: readonly FindingDraft[]): string {
  const [first] = members;
  if (first === undefined || !placedKinds.has(first.kind) || isSum(first) || isUnplaced(first)) return '';
  if (members.length === 1) return whereNow(first.replicas);
  const counts = new Map<string, number>();
  let silent = 0;
  for (const { replicas } of members) {
    const holders = replicas.filter((replica) => replica.answer === 'has-it').map((replica) => visible(replica.node));
    const unanswered = replicas.filter((replica) => replica.answer === 'no-answer').length;
    if (unanswered > 0 && unanswered < replicas.length) silent++;
    const place =
      holders.length > 0
        ? `only on ${listWords(holders)}`
        : replicas.length === 0
          ? 'at a place unknown: no replica was asked'
          : unanswered === replicas.length
            ? 'at a place unknown: no replica answered'
            : 'on no replica';
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  const sorted = [...counts].toSorted((a, b) => b[1] - a[1]);
  const places =
    sorted.length === 1
      ? `all ${formatCount(members.length)} ${sorted[0]?.[0] ?? ''}`
      : listWords(sorted.map(([place, count]) => `${formatCount(count)} ${place}`));
  return silent === 0 ? places : `${places} (for ${formatCount(silent)} of them a replica gave no full answer)`;
}

/** `total`: findings of the kind that are grouped; `found`: that there were. */
function toGroup(id: string, gathered: Gathered, total: number, found: number): CauseGroup {
  const { cause, members } = gathered;
  const kind = present(members[0], 'member of a group').kind;
  const moments = members.map(momentOf);
  const noun = findingNoun(kind, found);
  const of = found > total ? `${formatCount(total)} looked at, of ${formatCount(found)}` : formatCount(total);
  const subject = found === 1 ? `The ${noun}` : `${formatCount(members.length)} of ${of} ${noun}`;
  return {
    id,
    kind,
    sentence: `${subject} ${causeWords(gathered)}`,
    whereNow: whereNowOf(members),
    count: members.length,
    faultId: cause.kind === 'fault' ? cause.fault.id : null,
    partitions: ascending(members.flatMap((finding) => finding.partition ?? [])),
    epochs: ascending(members.flatMap((finding) => finding.epoch ?? [])).slice(0, epochsShown),
    nodes: [...new Set(members.flatMap((finding) => finding.node ?? []))].toSorted(),
    firstAtMs: cause.kind === 'unplaced' ? null : moments.reduce((low, moment) => Math.min(low, moment), Infinity),
    lastAtMs: cause.kind === 'unplaced' ? null : moments.reduce((high, moment) => Math.max(high, moment), 0),
  };
}

/** Takes findings in turns from each group until `cap` are taken, so that no group is hidden by a larger one. */
function takeInTurns(groups: readonly (readonly Finding[])[], cap: number): Finding[] {
  const taken: Finding[] = [];
  const longest = groups.reduce((length, group) => Math.max(length, group.length), 0);
  for (let round = 0; round < longest && taken.length < cap; round++) {
    for (const group of groups) {
      const finding = group[round];
      if (finding !== undefined && taken.length < cap) taken.push(finding);
    }
  }
  return taken;
}

/** The `findings` part of the report from all findings of the run: totals, groups (losses first, those with a cause before others, then the largest), capped items. */
export function groupFindings(drafts: readonly FindingDraft[], context: CauseContext): RunReport['findings'] {
  const applied = context.faults
    .filter((fault) => fault.stages.injectedMs !== null)
    .toSorted((a, b) => (a.stages.injectedMs ?? 0) - (b.stages.injectedMs ?? 0));
  const moves = movesOf(context.epochs);
  const lostAtMs = firstLosses(drafts);
  const totals = new Map<FindingKind, number>();
  const gathered = new Map<string, Gathered>();
  for (const finding of drafts) {
    totals.set(finding.kind, (totals.get(finding.kind) ?? 0) + 1);
    const cause: Cause = follows(finding, lostAtMs)
      ? { kind: 'follows' }
      : causeOf(finding, applied, moves, context.epochs);
    const key = `${causeKey(finding.kind, cause)}|${findingVerb(finding)}`;
    const distanceMs = 'distanceMs' in cause ? cause.distanceMs : 0;
    const group = gathered.get(key);
    if (group === undefined) gathered.set(key, { cause, distanceMs, members: [finding] });
    else {
      group.distanceMs = Math.max(group.distanceMs, distanceMs);
      group.members.push(finding);
    }
  }
  const rank = ({ members, cause }: Gathered): number =>
    (members[0]?.kind === 'lost' ? 0 : 2) + ('distanceMs' in cause ? 0 : 1);
  const ordered = [...gathered.values()].toSorted((a, b) => rank(a) - rank(b) || b.members.length - a.members.length);
  const groups = ordered.map((group, index) => {
    const { kind } = present(group.members[0], 'member');
    const total = totals.get(kind) ?? 0;
    return toGroup(`C${index + 1}`, group, total, Math.max(total, context.found?.get(kind) ?? 0));
  });
  const listed = ordered.map((group, index) =>
    group.members.map((finding): Finding => ({ ...finding, group: `C${index + 1}` })),
  );
  return {
    total: drafts.length,
    totals: [...totals].map(([kind, count]) => ({ kind, count })),
    groups,
    items: takeInTurns(listed, context.cap ?? findingCap).toSorted((a, b) => momentOf(a) - momentOf(b)),
  };
}
