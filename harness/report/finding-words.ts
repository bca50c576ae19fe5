/** Words for findings and faults, the same in every output. Pure: the browser part uses it too. */
import type { EpochChange, Fault } from './model-timeline.ts';
import type { Finding, FindingKind, ReplicaAnswer, Sighting } from './model-finding.ts';
import { formatDuration, formatOffset, listWords, plural, shortened, visible } from './text.ts';

interface KindWords {
  readonly one: string;
  readonly many: string;
  /** Past participle that ties the operation to a moment. */
  readonly verb: string;
  /** Where the operation that a finding names is a write and not the read that shows it: what the finding did to it. */
  readonly ofWrite?: { readonly one: string; readonly many: string; readonly verb: string };
}

const kindWords: Readonly<Record<FindingKind, KindWords>> = {
  lost: { one: 'lost write', many: 'lost writes', verb: 'acknowledged' },
  stale: {
    one: 'stale read',
    many: 'stale reads',
    verb: 'answered',
    ofWrite: { one: 'missed a write', many: 'missed writes', verb: 'acknowledged' },
  },
  resurrected: { one: 'resurrected value', many: 'resurrected values', verb: 'deleted' },
  phantom: {
    one: 'phantom value',
    many: 'phantom values',
    verb: 'read',
    ofWrite: { one: 'was', many: 'were', verb: 'written' },
  },
  duplicated: { one: 'duplicated write', many: 'duplicated writes', verb: 'acknowledged' },
  diverged: { one: 'diverged copy', many: 'diverged copies', verb: 'acknowledged' },
  corrupt: { one: 'corrupt value', many: 'corrupt values', verb: 'read' },
  'non-monotone': { one: 'read that went back', many: 'reads that went back', verb: 'answered' },
  'not-linearizable': { one: 'non-linearizable answer', many: 'non-linearizable answers', verb: 'given' },
  ttl: {
    one: 'wrong expiry',
    many: 'wrong expiries',
    verb: 'answered',
    ofWrite: { one: 'hit a value', many: 'hit values', verb: 'acknowledged' },
  },
  fencing: { one: 'fencing violation', many: 'fencing violations', verb: 'seen' },
  'client-promise': { one: 'broken client promise', many: 'broken client promises', verb: 'seen' },
  unknown: { one: 'undecided key', many: 'undecided keys', verb: 'written' },
};

export const findingNoun = (kind: FindingKind, count: number): string =>
  count === 1 ? kindWords[kind].one : kindWords[kind].many;

type Named = Pick<Finding, 'kind' | 'operation'>;

const ofWrite = ({ kind, operation }: Named): KindWords['ofWrite'] | null =>
  operation.f === 'read' ? null : kindWords[kind].ofWrite;

/** "acknowledged", of the operation that the finding names. */
export const findingVerb = (finding: Named): string => ofWrite(finding)?.verb ?? kindWords[finding.kind].verb;

/** "was acknowledged", "missed a write acknowledged": stands before a moment. */
export function findingPhrase(finding: Named, isOne: boolean): string {
  const words = ofWrite(finding) ?? { one: 'was', many: 'were' };
  return `${isOne ? words.one : words.many} ${findingVerb(finding)}`;
}

/** "3 lost writes". */
export const countFindings = (kind: FindingKind, count: number): string =>
  plural(count, kindWords[kind].one, kindWords[kind].many);

/** How a fault of a kind is called; kinds that are nouns already stand for themselves. */
const faultNouns: Readonly<Record<string, string>> = {
  isolate: 'isolation',
  oom: 'memory kill',
  reset: 'connection reset',
  'one-way-in': 'one-way cut (in)',
  'one-way-out': 'one-way cut (out)',
  clock: 'clock jump',
};

/** "kill of n2 (fault F12)", "partition of n1 and n3 (fault F3)": a bare e3 beside epochs reads as one. */
export function faultName(fault: Fault): string {
  const targets = fault.targets.length === 0 ? '' : ` of ${listWords(fault.targets.map(visible))}`;
  return `${faultNouns[fault.kind] ?? visible(fault.kind)}${targets} (fault ${visible(fault.id)})`;
}

/** "n1: absent", for one replica's answer now. */
export function answerWords(replica: ReplicaAnswer): string {
  switch (replica.answer) {
    case 'has-it':
      return 'has the value';
    case 'absent':
      return 'key absent';
    case 'older':
      return 'an older value';
    case 'newer':
      return 'a newer value';
    case 'other':
      return 'another value';
    case 'no-answer':
      return 'no answer';
  }
}

const otherAnswers = [
  ['older', 'an older value'],
  ['newer', 'a newer value'],
  ['other', 'another value'],
] as const;

/** Where one value is now: "on none of 3 replicas", "on n4 (1 of 3 replicas)", "on none of 3 replicas (2 hold an older value)". */
export function whereNow(replicas: readonly ReplicaAnswer[]): string {
  if (replicas.length === 0) return 'no replica was asked';
  const holders = replicas.filter((replica) => replica.answer === 'has-it');
  const silent = replicas.filter((replica) => replica.answer === 'no-answer');
  const silence =
    silent.length === 0 ? '' : `; ${listWords(silent.map((one) => visible(one.node)))} gave no full answer`;
  if (holders.length > 0) {
    const names = listWords(holders.map((one) => visible(one.node)));
    return `on ${names} (${holders.length} of ${replicas.length} replicas)${silence}`;
  }
  if (silent.length === replicas.length) return `unknown: none of ${replicas.length} replicas answered`;
  const held = otherAnswers.flatMap(([answer, words]) => {
    const count = replicas.filter((replica) => replica.answer === answer).length;
    return count === 0 ? [] : [`${count} ${count === 1 ? 'holds' : 'hold'} ${words}`];
  });
  const detail = `${held.length === 0 ? '' : ` (${listWords(held)})`}${silence}`;
  const answered = replicas.length - silent.length;
  if (silent.length === 0) return `on none of ${plural(answered, 'replica')}${detail}`;
  return answered === 1
    ? `not on the one replica that answered${detail}`
    : `on none of the ${answered} replicas that answered${detail}`;
}

/** "at +0:12:03.120 by session 7 through n3 (epoch 9): absent". */
export function sightingWords(sighting: Sighting): string {
  const parts = [`at ${formatOffset(sighting.atMs, true)}`];
  parts.push(sighting.session === null ? 'by the read-back' : `by session ${sighting.session}`);
  if (sighting.node !== null) parts.push(`from ${visible(sighting.node)}`);
  if (sighting.epoch !== null) parts.push(`(epoch ${sighting.epoch})`);
  return `${parts.join(' ')}: ${sighting.value === null ? 'absent' : shortened(sighting.value, 60)}`;
}

function acknowledgement(finding: Finding): string {
  const { operation, node, epoch, partition } = finding;
  const subject = operation.f === 'read' ? 'Read' : `The ${visible(operation.f)}`;
  if (operation.acknowledgedAtMs === null) {
    return `${subject} by session ${operation.session} was invoked at ${formatOffset(operation.invokedAtMs, true)} and never acknowledged`;
  }
  const verb = operation.f === 'read' ? 'answered' : 'was acknowledged';
  const by = node === null ? '' : ` by ${visible(node)}`;
  const under = epoch === null ? '' : ` under epoch ${epoch}`;
  const where = partition === null ? '' : ` of partition ${partition}`;
  return `${subject} by session ${operation.session} ${verb} at ${formatOffset(operation.acknowledgedAtMs, true)}${by}${under}${where} (${plural(operation.attempts, 'attempt')})`;
}

/** A sum tells that an addition is missing, not which: the one that it names is only the last that had to be in it. */
export const isSum = ({ kind, operation }: Pick<Finding, 'kind' | 'operation'>): boolean =>
  operation.f === 'add' && (kind === 'lost' || kind === 'stale' || kind === 'diverged');

/** A finding about whole copies or nodes, with no operation and no moment of its own. */
export const isUnplaced = ({ operation }: Pick<Finding, 'operation'>): boolean =>
  operation.f === 'none' && operation.invokedAtMs === 0;

/** What happened around a finding, besides the finding itself. */
export interface Surroundings {
  readonly faults: ReadonlyMap<string, Fault>;
  readonly cause: Fault | null;
  readonly epochs: readonly EpochChange[];
}

/** Failovers and handoffs named in a story; more are counted. */
const movesTold = 3;

/** Where the partition went between the write (or the last look that saw it) and the look that missed it. */
function moveSentences(finding: Finding, epochs: readonly EpochChange[]): { atMs: number; text: string }[] {
  const fromMs = Math.max(finding.operation.invokedAtMs, finding.lastSeen?.atMs ?? 0);
  const toMs = finding.firstMissed?.atMs ?? -Infinity;
  const moves = epochs.filter(
    ({ kind, partition, atMs }) => kind !== 'edge' && partition === finding.partition && atMs >= fromMs && atMs <= toMs,
  );
  const told = moves.slice(0, movesTold).map(({ atMs, kind, owner, epoch, partition }) => ({
    atMs,
    text: `The ${kind} of partition ${partition}${owner === null ? '' : ` to ${visible(owner)}`} (epoch ${epoch}) came at ${formatOffset(atMs, true)}.`,
  }));
  const next = moves[movesTold];
  if (next !== undefined)
    told.push({
      atMs: next.atMs,
      text: `${plural(moves.length - movesTold, 'more move')} of that partition followed.`,
    });
  return told;
}

/** The story of one finding in a few sentences, in the order in which it happened. */
export function explainFinding(finding: Finding, { faults, cause, epochs }: Surroundings): string[] {
  if (isUnplaced(finding)) return ['Found by comparing what the nodes say; no single operation can be named.'];
  const moment = finding.operation.acknowledgedAtMs ?? finding.operation.invokedAtMs;
  const told = [{ atMs: moment, text: `${acknowledgement(finding)}.` }];
  if (isSum(finding))
    told.push({
      atMs: moment,
      text: 'It is the last addition that the sum had to hold; the missing one is this or an earlier one.',
    });
  const others = finding.openFaults.filter((id) => id !== cause?.id).map((id) => faults.get(id));
  const names = others.filter((fault) => fault !== undefined).map(faultName);
  const injectedMs = cause?.stages.injectedMs ?? null;
  if (cause !== null && injectedMs !== null) {
    const distance = formatDuration(Math.abs(injectedMs - moment));
    const text =
      injectedMs >= moment
        ? `The ${faultName(cause)} began at ${formatOffset(injectedMs, true)}, ${distance} after that.`
        : `The ${faultName(cause)} had begun at ${formatOffset(injectedMs, true)}, ${distance} before that.`;
    told.push({ atMs: Math.max(injectedMs, moment), text });
  }
  if (names.length > 0) told.push({ atMs: moment, text: `Open at that moment: ${listWords(names)}.` });
  const { lastSeen, firstMissed } = finding;
  if (lastSeen !== null) told.push({ atMs: lastSeen.atMs, text: `Last read that saw it: ${sightingWords(lastSeen)}.` });
  told.push(...moveSentences(finding, epochs));
  if (firstMissed !== null)
    told.push({
      atMs: firstMissed.atMs,
      text: `First ${lastSeen === null ? 'look' : 'that did not'}: ${sightingWords(firstMissed)}.`,
    });
  const sentences = told.toSorted((a, b) => a.atMs - b.atMs).map(({ text }) => text);
  const isPlaced = (finding.replicas.length > 0 || finding.kind === 'lost') && !isSum(finding);
  return isPlaced ? [...sentences, `Now: ${whereNow(finding.replicas)}.`] : sentences;
}
