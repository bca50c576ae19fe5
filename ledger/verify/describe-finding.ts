/**
 * Turns a checker's finding (rows of a history) into one that stands alone: the operation, what saw it last, what missed it
 * first, where it is now, which faults were open. Called while the key's history is at hand.
 */
import { operationCodes, outcomeCodes } from '../rows.ts';
import type { KeyAnalysis } from './analysis.ts';
import { targetAbsent } from './analysis.ts';
import type { Finding, OperationFacts, ReplicaFacts, RowFinding, Sighting } from './finding.ts';
import { kindCode, type KeyHistory, outcomeCode, sourceCode } from './history.ts';
import type { RunContext } from './run-context.ts';
import type { HistorySource } from './source.ts';

const sources = ['operation', 'final', 'retire', 'replica'] as const;

export function describeFinding(
  finding: RowFinding,
  analysis: KeyAnalysis,
  source: HistorySource,
  context: RunContext,
): Finding {
  const { history } = analysis;
  const { subject } = finding;
  const operation =
    subject >= 0 && history.source[subject] === sourceCode.operation ? operationFacts(history, subject, source) : null;
  const endNs = operation === null ? 0 : (operation.returnNs ?? operation.invokeNs);
  const [lastSeen, firstMissed] = subject >= 0 ? sightingsAround(analysis, subject) : [-1, -1];
  return {
    kind: finding.kind,
    rule: finding.rule,
    reason: finding.reason,
    keyId: history.keyId,
    key: history.name,
    partition: partitionOfKey(history),
    operation,
    witness:
      finding.witness >= 0
        ? sighting(history, finding.witness, source)
        : subject >= 0
          ? sighting(history, subject, source)
          : null,
    lastSeen: lastSeen >= 0 ? sighting(history, lastSeen, source) : null,
    firstMissed: firstMissed >= 0 ? sighting(history, firstMissed, source) : null,
    replicas: replicaFacts(analysis, subject, source),
    openFaults: operation === null ? [] : context.openFaults(operation.invokeNs, endNs),
  };
}

/** The partition that any answer named; null where none did. */
export function partitionOfKey(history: KeyHistory): number | null {
  for (let i = 0; i < history.size; i++)
    if ((history.partition[i] as number) >= 0) return history.partition[i] as number;
  return null;
}

function operationFacts(history: KeyHistory, i: number, source: HistorySource): OperationFacts {
  const operationId = history.operationId[i] as number;
  const details = source.details(operationId);
  const returnNs = history.returnNs[i] as number;
  const partition = history.partition[i] as number;
  const node = history.node[i] as number;
  return {
    operationId,
    session: details?.session ?? -1,
    f: operationCodes[history.f[i] as number] as string,
    outcome: outcomeCodes[history.outcome[i] as number] as 'ok' | 'fail' | 'info',
    invokeNs: history.invokeNs[i] as number,
    returnNs: returnNs === Infinity ? null : returnNs,
    version: versionOf(history, i),
    partition: partition < 0 ? null : partition,
    epoch: orNull(history.epoch[i] as number),
    node: node < 0 ? null : source.nodeName(node),
    attempts: details?.attempts ?? 1,
  };
}

function sighting(history: KeyHistory, i: number, source: HistorySource): Sighting {
  const isOperation = history.source[i] === sourceCode.operation;
  const operationId = isOperation ? (history.operationId[i] as number) : null;
  const node = history.node[i] as number;
  return {
    operationId,
    session: operationId === null ? null : (source.details(operationId)?.session ?? null),
    atNs: history.invokeNs[i] as number,
    observed: orNull(history.observed[i] as number),
    number: orNull(history.number[i] as number),
    version: versionOf(history, i),
    node: node < 0 ? null : source.nodeName(node),
    epoch: orNull(history.epoch[i] as number),
    source: sources[history.source[i] as number] as Sighting['source'],
  };
}

/** Row of the last client's read that showed the write, and of the first one after it (or after the acknowledgement) that did not. */
function sightingsAround(analysis: KeyAnalysis, subject: number): [lastSeen: number, firstMissed: number] {
  const { history } = analysis;
  if (history.source[subject] !== sourceCode.operation || history.f[subject] === kindCode.read) return [-1, -1];
  let last = -1;
  let missed = -1;
  for (let order = 0; order < history.size; order++) {
    const i = analysis.byInvoke[order] as number;
    if (!analysis.isOkRead(i) || history.source[i] === sourceCode.replica) continue;
    if (analysis.target[i] === subject) {
      last = i;
      missed = -1;
    } else if (missed < 0 && (history.invokeNs[i] as number) > (analysis.boundNs[subject] as number)) missed = i;
  }
  return [last, missed];
}

function replicaFacts(analysis: KeyAnalysis, subject: number, source: HistorySource): ReplicaFacts[] {
  const { history } = analysis;
  const facts: ReplicaFacts[] = [];
  for (let i = history.operationCount; i < history.size; i++) {
    if (history.source[i] !== sourceCode.replica) continue;
    facts.push({
      node: source.nodeName(history.node[i] as number),
      atNs: history.invokeNs[i] as number,
      answer: answerOf(analysis, i, subject),
      observed: orNull(history.observed[i] as number),
      version: versionOf(history, i),
    });
  }
  return facts;
}

function answerOf(analysis: KeyAnalysis, i: number, subject: number): ReplicaFacts['answer'] {
  const { history } = analysis;
  if (history.outcome[i] !== outcomeCode.ok) return 'no-answer';
  const target = analysis.target[i] as number;
  if (target === targetAbsent) return 'absent';
  if (target >= 0 && target === subject) return 'has-it';
  if (target < 0 || subject < 0) return 'other';
  const theirs = versionOf(history, i);
  const ours = versionOf(history, subject);
  if (theirs !== null && ours !== null) {
    const difference = theirs[0] - ours[0] || theirs[1] - ours[1];
    return difference < 0 ? 'older' : difference > 0 ? 'newer' : 'other';
  }
  if ((analysis.boundNs[target] as number) < (history.invokeNs[subject] as number)) return 'older';
  return (history.invokeNs[target] as number) > (analysis.boundNs[subject] as number) ? 'newer' : 'other';
}

function versionOf(history: KeyHistory, i: number): readonly [number, number] | null {
  const major = history.major[i] as number;
  return major === major ? [major, history.minor[i] as number] : null;
}

const orNull = (value: number): number | null => (value === value ? value : null);
