/**
 * Models `set` and `set-full`: elements are added, never removed.
 *
 * Owns the rules. `set`: judged by the last read that completed. `set-full`: by every read, and an element that an earlier
 * read showed must stay; an element listed twice in one read is a violation, as in Jepsen's checker. In both: an
 * element acknowledged before a read began must be in it, and one that nobody had begun to add by its end (or whose add
 * failed: it did not happen) must not. No read at all: `unknown`, for nothing was looked at.
 */

import type { ForeignEvidence, Judgement } from './evidence.ts';
import { maxNamed } from './evidence.ts';
import type { ForeignOperation } from './history.ts';
import { placeOf, shorten } from './places.ts';
import { UserError } from './user-error.ts';
import { elementsOf, valueText } from './value.ts';

/** What is known of an element, as positions in the file; Infinity for never. */
interface Element {
  invokedAt: number;
  /** Acknowledged, or (set-full) first shown by a read that completed. */
  knownAt: number;
  add: ForeignOperation | null;
}

/** Judges by the final read. */
export function judgeSet(operations: readonly ForeignOperation[]): Judgement {
  const reads = readsOf(operations, 'set');
  if (reads.length === 0) return neverRead;
  const elements = collectAdds(operations);
  const evidence = judgeRead(reads[reads.length - 1]!, elements, 1);
  if (evidence !== null) return { verdict: 'invalid', keys: 1, evidence };
  return { verdict: 'valid', keys: 1, notes: { reads: 1, earlierReadsNotJudged: reads.length - 1 } };
}

/** Judges by every read. */
export function judgeSetFull(operations: readonly ForeignOperation[]): Judgement {
  const reads = readsOf(operations, 'set-full');
  if (reads.length === 0) return neverRead;
  const elements = collectAdds(operations);
  for (const [index, read] of reads.entries()) {
    const evidence = findRepeated(read, index + 1) ?? judgeRead(read, elements, index + 1);
    if (evidence !== null) return { verdict: 'invalid', keys: 1, evidence };
    for (const value of elementsOf(read.output)!) {
      const element = elements.get(valueText(value))!;
      element.knownAt = Math.min(element.knownAt, read.completedAt);
    }
  }
  return { verdict: 'valid', keys: 1, notes: { reads: reads.length } };
}

const neverRead: Judgement = {
  verdict: 'unknown',
  keys: 1,
  reason: 'the set was never read: no :read completed with a value',
};

/** Reads that returned something, in order of completion. */
function readsOf(operations: readonly ForeignOperation[], model: string): ForeignOperation[] {
  const reads: ForeignOperation[] = [];
  for (const operation of operations) {
    if (operation.f === 'add') continue;
    if (operation.f !== 'read') {
      throw new UserError(`:${operation.f} is not an operation of model ${model}`, operation.invokeLine);
    }
    const { outcome, output } = operation;
    if (outcome !== 'ok' || output === undefined || output === null) continue;
    if (elementsOf(output) === undefined) {
      throw new UserError(
        `a :read of a set returned ${shorten(valueText(output))}, not a collection`,
        operation.completeLine,
      );
    }
    reads.push(operation);
  }
  return reads.sort((x, y) => x.completedAt - y.completedAt);
}

function collectAdds(operations: readonly ForeignOperation[]): Map<string, Element> {
  const elements = new Map<string, Element>();
  for (const operation of operations) {
    if (operation.f !== 'add') continue;
    const text = valueText(operation.input);
    let element = elements.get(text);
    if (element === undefined) elements.set(text, (element = { invokedAt: Infinity, knownAt: Infinity, add: null }));
    element.invokedAt = Math.min(element.invokedAt, operation.invokedAt);
    element.add ??= operation;
    if (operation.outcome !== 'ok' || operation.completedAt >= element.knownAt) continue;
    element.knownAt = operation.completedAt;
    element.add = operation;
  }
  return elements;
}

function judgeRead(read: ForeignOperation, elements: Map<string, Element>, readNumber: number): ForeignEvidence | null {
  const seen = new Set<string>();
  const phantoms: string[] = [];
  for (const value of elementsOf(read.output)!) {
    const text = valueText(value);
    if (seen.has(text)) continue;
    seen.add(text);
    const element = elements.get(text);
    if (element === undefined || element.invokedAt > read.completedAt) phantoms.push(text);
  }
  const lost: string[] = [];
  const adds: ForeignOperation[] = [];
  for (const [text, element] of elements) {
    if (element.knownAt >= read.invokedAt || seen.has(text)) continue;
    lost.push(text);
    if (element.add !== null) adds.push(element.add);
  }
  if (phantoms.length === 0 && lost.length === 0) return null;
  const parts: string[] = [];
  if (lost.length > 0) parts.push(`${lost.length} known elements are missing (${sample(lost)})`);
  if (phantoms.length > 0) parts.push(`${phantoms.length} elements were never added by then (${sample(phantoms)})`);
  return evidenceOf(read, readNumber, parts.join('; '), adds);
}

function findRepeated(read: ForeignOperation, readNumber: number): ForeignEvidence | null {
  const seen = new Set<string>();
  for (const value of elementsOf(read.output)!) {
    const text = valueText(value);
    if (seen.has(text)) return evidenceOf(read, readNumber, `element ${shorten(text)} is listed twice in one read`, []);
    seen.add(text);
  }
  return null;
}

function evidenceOf(
  read: ForeignOperation,
  readNumber: number,
  reason: string,
  adds: readonly ForeignOperation[],
): ForeignEvidence {
  return {
    key: null,
    operation: placeOf(read),
    prefixOperations: readNumber,
    isSmallest: true,
    reason,
    statesPossible: [],
    isStatesComplete: false,
    witnesses: adds.slice(0, maxNamed).map(placeOf),
    invalidKeys: 1,
    firstInvalidKeys: [],
  };
}

function sample(texts: readonly string[]): string {
  const shown = texts.slice(0, maxNamed).map(shorten).join(' ');
  return texts.length > maxNamed ? `${shown} …` : shown;
}
