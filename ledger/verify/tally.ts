/**
 * What is counted over all keys of a run (or of one part of them): verdicts on writes, exposure to failovers, first
 * acknowledgements after faults, read-backs. Plain data, so that parts judged in different threads can be added up.
 */
import { operationCodes } from '../rows.ts';
import { partitionOfKey } from './describe-finding.ts';
import type { Finding, FindingKind, RowFinding } from './finding.ts';
import { kindCode, type KeyHistory, outcomeCode, replicaWhy, sourceCode } from './history.ts';
import { type KeyJudge, writeStatus } from './key-judge.ts';
import { countAtMost, type RunContext, wholeStore } from './run-context.ts';

/** Findings kept in full; all are counted. */
export const maxFindings = 5_000;
/** Keys named in lists of missing evidence. */
export const maxNamedKeys = 100;

export interface Tally {
  keys: number;
  canaryKeys: number;
  retiredKeys: number;
  /** Keys on which something may have been written. */
  writtenKeys: number;
  /** Of these, and not retired: read back by a client at the end. */
  expectedReadBack: number;
  doneReadBack: number;
  notReadBack: string[];
  notReadBackCount: number;
  replicasAsked: number;
  replicasAnswered: number;
  replicasBehind: number;
  /** Least number of replica rows on any read-back key; Infinity when none was read back. */
  leastReplicas: number;
  /** [f][outcome] */
  operations: number[][];
  acknowledgedWrites: number;
  acknowledgedDeletes: number;
  kept: number;
  superseded: number;
  neverRead: number;
  lost: number;
  /** Judged (kept or lost) and through at least one failover of their partition. */
  exposed: number;
  /** Per partition and failover (ascending by time): judged writes that went through it. */
  exposedBy: Map<number, Float64Array>;
  ackedInFaultWindows: number;
  /** Per partition: earliest acknowledgement among writes invoked after injected fault i and before fault i + 1. */
  firstAckNs: Map<number, Float64Array>;
  /** (partition × 2^32 + epoch) → node that acknowledged mutations under it. */
  servedBy: Map<number, number>;
  /** The same keys → a second node that did so too, and one of its operations (-1 where two parts were added up). */
  servedTwice: Map<number, readonly [first: number, second: number, operationId: number]>;
  unwitnessedKeys: number;
  searchedKeys: number;
  undecidedKeys: string[];
  undecidedCount: number;
  finalReadsFailedOnly: Map<number, boolean>;
  findings: Finding[];
  findingCounts: Map<FindingKind, number>;
  /** Of these: in partitions every holder of which was taken, and which the store then reported Lost. */
  reportedLosses: Map<FindingKind, number>;
  /** Found on keys that had too many already; in no count above. */
  findingsDropped: number;
  canaryFindings: Finding[];
  extremes: { attempts: number; durationNs: number };
  /** Largest number of rows in one key. */
  longestHistory: number;
}

export function newTally(): Tally {
  return {
    keys: 0,
    canaryKeys: 0,
    retiredKeys: 0,
    writtenKeys: 0,
    expectedReadBack: 0,
    doneReadBack: 0,
    notReadBack: [],
    notReadBackCount: 0,
    replicasAsked: 0,
    replicasAnswered: 0,
    replicasBehind: 0,
    leastReplicas: Infinity,
    operations: operationCodes.map(() => [0, 0, 0]),
    acknowledgedWrites: 0,
    acknowledgedDeletes: 0,
    kept: 0,
    superseded: 0,
    neverRead: 0,
    lost: 0,
    exposed: 0,
    exposedBy: new Map(),
    ackedInFaultWindows: 0,
    firstAckNs: new Map(),
    servedBy: new Map(),
    servedTwice: new Map(),
    unwitnessedKeys: 0,
    searchedKeys: 0,
    undecidedKeys: [],
    undecidedCount: 0,
    finalReadsFailedOnly: new Map(),
    findings: [],
    findingCounts: new Map(),
    reportedLosses: new Map(),
    findingsDropped: 0,
    canaryFindings: [],
    extremes: { attempts: 0, durationNs: 0 },
    longestHistory: 0,
  };
}

export function countFinding(tally: Tally, kind: FindingKind): void {
  tally.findingCounts.set(kind, (tally.findingCounts.get(kind) ?? 0) + 1);
}

/** When a read that began after the write had returned first saw nothing. */
function firstAbsentNs(history: KeyHistory, write: number): number {
  let first = Infinity;
  for (let i = 0; i < history.size; i++) {
    if (
      history.f[i] !== kindCode.read ||
      history.outcome[i] !== outcomeCode.ok ||
      history.source[i] === sourceCode.replica
    )
      continue;
    const isAbsent = Number.isNaN(history.observed[i]) && Number.isNaN(history.number[i]);
    if (isAbsent && (history.invokeNs[i] as number) > (history.returnNs[write] as number))
      first = Math.min(first, history.returnNs[i] as number);
  }
  return first;
}

/** Counts a finding whose partition was taken whole and reported Lost between what was written and what was seen. */
export function countReported(tally: Tally, finding: RowFinding, history: KeyHistory, context: RunContext): void {
  const { subject, witness, kind } = finding;
  const shownNs = history.returnNs[witness >= 0 ? witness : subject] ?? Infinity;
  const seen = subject >= 0 && kind === 'lost' ? Math.min(shownNs, firstAbsentNs(history, subject)) : shownNs;
  const written = subject >= 0 ? (history.invokeNs[subject] as number) : -Infinity;
  if (!context.isReportedLoss(partitionOfKey(history) ?? wholeStore, written, seen)) return;
  tally.reportedLosses.set(kind, (tally.reportedLosses.get(kind) ?? 0) + 1);
}

/** Counts a key that was just judged. */
export function countKey(tally: Tally, judge: KeyJudge, history: KeyHistory, context: RunContext): void {
  tally.keys++;
  if (history.retired) tally.retiredKeys++;
  tally.longestHistory = Math.max(tally.longestHistory, history.size);
  let written = false;
  let served = -1;
  for (let i = 0; i < history.operationCount; i++) {
    const f = history.f[i] as number;
    const outcome = history.outcome[i] as number;
    const row = tally.operations[f] as number[];
    row[outcome] = (row[outcome] as number) + 1;
    if (f === kindCode.read || outcome === outcomeCode.fail) continue;
    written = true;
    if (outcome !== outcomeCode.ok) continue;
    countAcknowledged(tally, judge, history, context, i);
    if (served < 0 || !servedAlike(history, served, i)) countServed(tally, history, i);
    served = i;
  }
  countReadBack(tally, judge, history, context, written);
}

/** One node acknowledges under one epoch of a partition; a second one is remembered. */
function countServed(tally: Tally, history: KeyHistory, i: number): void {
  const partition = history.partition[i] as number;
  const epoch = history.epoch[i] as number;
  const node = history.node[i] as number;
  if (epoch !== epoch || node < 0 || partition < 0) return;
  const place = partition * 4294967296 + epoch;
  const known = tally.servedBy.get(place);
  if (known === undefined) tally.servedBy.set(place, node);
  else if (known !== node && !tally.servedTwice.has(place))
    tally.servedTwice.set(place, [known, node, history.operationId[i] as number]);
}

const servedAlike = (history: KeyHistory, a: number, b: number): boolean =>
  history.epoch[a] === history.epoch[b] &&
  history.node[a] === history.node[b] &&
  history.partition[a] === history.partition[b];

function countAcknowledged(tally: Tally, judge: KeyJudge, history: KeyHistory, context: RunContext, i: number): void {
  const invokeNs = history.invokeNs[i] as number;
  const returnNs = history.returnNs[i] as number;
  const partition = history.partition[i] as number;
  if (context.inFaultWindow(invokeNs, returnNs)) tally.ackedInFaultWindows++;
  countFirstAck(tally, context, partition, invokeNs, returnNs);
  if (history.f[i] === kindCode.delete) {
    tally.acknowledgedDeletes++;
    return;
  }
  tally.acknowledgedWrites++;
  switch (judge.status[i]) {
    case writeStatus.superseded:
      tally.superseded++;
      return;
    case writeStatus.neverRead:
      tally.neverRead++;
      return;
    case writeStatus.kept:
      tally.kept++;
      countExposure(tally, context, partition, returnNs, judge.analysis.lastSeenNs[i] as number);
      return;
    case writeStatus.lost:
      tally.lost++;
      countExposure(tally, context, partition, returnNs, Infinity);
      return;
    default:
    // No write: it has no fate.
  }
}

function countExposure(tally: Tally, context: RunContext, partition: number, fromNs: number, toNs: number): void {
  let exposed = false;
  for (const place of partition === wholeStore ? [wholeStore] : [partition, wholeStore]) {
    const failovers = context.failovers.get(place);
    if (failovers === undefined) continue;
    const first = countAtMost(failovers, fromNs);
    const last = countAtMost(failovers, toNs);
    if (last <= first) continue;
    exposed = true;
    let steps = tally.exposedBy.get(place);
    if (steps === undefined) tally.exposedBy.set(place, (steps = new Float64Array(failovers.length + 1)));
    // Differences; summed up when the run is complete.
    steps[first] = (steps[first] as number) + 1;
    steps[last] = (steps[last] as number) - 1;
  }
  if (exposed) tally.exposed++;
}

function countFirstAck(tally: Tally, context: RunContext, partition: number, invokeNs: number, returnNs: number): void {
  const { injected } = context;
  let low = 0;
  let high = injected.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((injected[middle]?.injectedNs ?? 0) <= invokeNs) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return;
  let first = tally.firstAckNs.get(partition);
  if (first === undefined) tally.firstAckNs.set(partition, (first = new Float64Array(injected.length).fill(Infinity)));
  if (returnNs < (first[low - 1] as number)) first[low - 1] = returnNs;
}

function countReadBack(
  tally: Tally,
  judge: KeyJudge,
  history: KeyHistory,
  context: RunContext,
  written: boolean,
): void {
  if (!written) return;
  tally.writtenKeys++;
  if (!history.retired || !judge.readBack) {
    tally.expectedReadBack++;
    if (judge.readBack) tally.doneReadBack++;
    else {
      tally.notReadBackCount++;
      if (tally.notReadBack.length < maxNamedKeys) tally.notReadBack.push(history.name);
    }
  }
  let replicas = 0;
  const partition = partitionOfKey(history) ?? wholeStore;
  // Where every copy is gone by the store's own word there is nobody to ask.
  const expectsReplicas = !context.isLostAtEnd(partition);
  for (let i = history.operationCount; i < history.size; i++) {
    if (history.source[i] === sourceCode.final) {
      const failed = history.outcome[i] !== outcomeCode.ok;
      if (!failed || !tally.finalReadsFailedOnly.has(partition)) tally.finalReadsFailedOnly.set(partition, failed);
    }
    if (history.source[i] !== sourceCode.replica) continue;
    replicas++;
    if (history.why[i] === replicaWhy.answered) tally.replicasAnswered++;
    else if (history.why[i] === replicaWhy.behind) tally.replicasBehind++;
  }
  tally.replicasAsked += replicas;
  if (judge.readBack && expectsReplicas) tally.leastReplicas = Math.min(tally.leastReplicas, replicas);
}
