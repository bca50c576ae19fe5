/**
 * Counters: every sum that is shown must be made of the acknowledged additions and some of the unknown ones, each once.
 *
 * Two rules. By time: an addition acknowledged before a read began is in its sum, one invoked after it ended is not, the rest
 * may be. By version, where the store gives one: the additions at or below the version shown are in the sum, all of them;
 * only unknown ones may add to it, and with additions of one sign what they add never shrinks. Both follow from "each
 * addition takes effect at most once, at one point", so a sound store is never flagged. A doubled addition of an
 * unknown operation can hide behind another unknown one of the same size; the bounds say so by being bounds.
 *
 * Observations that may follow a delete or another kind of write on the key are left out.
 */
import type { KeyAnalysis } from './analysis.ts';
import { sortIndexes, targetAbsent } from './analysis.ts';
import type { RowFinding } from './finding.ts';
import { kindCode, outcomeCode, sourceCode } from './history.ts';
import type { VersionWitness } from './witness.ts';

type Report = (finding: RowFinding) => void;

/** Running sums over additions in some order. */
interface Sums {
  readonly keys: Float64Array;
  readonly all: Float64Array;
  readonly positive: Float64Array;
  readonly negative: Float64Array;
}

/** Judges the analysed key, on which additions were made. `witness` is null where the store gives no versions. */
export function checkCounter(analysis: KeyAnalysis, witness: VersionWitness | null, report: Report): void {
  const { history } = analysis;
  const acknowledged: number[] = [];
  const possible: number[] = [];
  let cutoffNs = Infinity;
  for (let i = 0; i < history.operationCount; i++) {
    if (history.outcome[i] === outcomeCode.fail || history.f[i] === kindCode.read) continue;
    if (history.f[i] === kindCode.add) {
      possible.push(i);
      if (history.outcome[i] === outcomeCode.ok) acknowledged.push(i);
    } else cutoffNs = Math.min(cutoffNs, history.invokeNs[i] as number);
  }
  const returned = sumsOf(analysis, acknowledged, history.returnNs);
  const invoked = sumsOf(analysis, possible, history.invokeNs);
  const observations: number[] = [];
  for (let i = 0; i < history.size; i++) {
    if (shownSum(analysis, i) !== null && (history.returnNs[i] as number) < cutoffNs) observations.push(i);
  }
  // A loss shows in every later sum: reported once, when the gap first grows so wide.
  observations.sort((a, b) => (history.invokeNs[a] as number) - (history.invokeNs[b] as number));
  let known = 0;
  for (const i of observations) known = Math.max(known, checkTime(analysis, i, { returned, invoked, known }, report));
  if (witness !== null) checkVersions(analysis, witness, acknowledged, possible, observations, report);
}

/** The sum that a row shows: a read's, or an addition's own; null when it shows none. Nothing there is 0. */
export function shownSum(analysis: KeyAnalysis, i: number): number | null {
  const { history } = analysis;
  if (history.outcome[i] !== outcomeCode.ok) return null;
  const number = history.number[i] as number;
  if (history.f[i] === kindCode.read)
    return number === number ? number : analysis.target[i] === targetAbsent ? 0 : null;
  return history.f[i] === kindCode.add && number === number ? number : null;
}

function sumsOf(analysis: KeyAnalysis, rows: readonly number[], by: Float64Array): Sums {
  const order = Uint32Array.from(rows);
  sortIndexes(order, order.length, by);
  const sums: Sums = {
    keys: new Float64Array(order.length),
    all: new Float64Array(order.length + 1),
    positive: new Float64Array(order.length + 1),
    negative: new Float64Array(order.length + 1),
  };
  for (const [at, row] of order.entries()) {
    const delta = analysis.history.argument[row] as number;
    sums.keys[at] = by[row] as number;
    sums.all[at + 1] = (sums.all[at] as number) + delta;
    sums.positive[at + 1] = (sums.positive[at] as number) + Math.max(0, delta);
    sums.negative[at + 1] = (sums.negative[at] as number) + Math.min(0, delta);
  }
  return sums;
}

/** Number of keys below `limit` (or equal, with `inclusive`). */
function countBelow(keys: Float64Array, limit: number, inclusive: boolean): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const key = keys[middle] as number;
    if (key < limit || (inclusive && key === limit)) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface TimeSums {
  readonly returned: Sums;
  readonly invoked: Sums;
  /** What is known to be missing already. */
  readonly known: number;
}

/** Returns what is missing in the sum shown; 0 when nothing is. */
function checkTime(analysis: KeyAnalysis, i: number, { returned, invoked, known }: TimeSums, report: Report): number {
  const { history } = analysis;
  const sum = shownSum(analysis, i) as number;
  const inBefore = countBelow(returned.keys, history.invokeNs[i] as number, false);
  const begun = countBelow(invoked.keys, history.returnNs[i] as number, true);
  const certain = returned.all[inBefore] as number;
  const low = certain + (invoked.negative[begun] as number) - (returned.negative[inBefore] as number);
  const high = certain + (invoked.positive[begun] as number) - (returned.positive[inBefore] as number);
  if (sum < low - known)
    reportLow(
      analysis,
      i,
      lastReturned(analysis, history.invokeNs[i] as number, sum),
      `the sum is ${sum}, and acknowledged additions alone make at least ${low}`,
      report,
    );
  else if (sum > high)
    report({
      kind: history.source[i] === sourceCode.replica ? 'diverged' : 'duplicated',
      rule: 'counter-sum',
      subject: i,
      witness: -1,
      reason: `the sum is ${sum}, and all additions that may have happened make at most ${high}`,
    });
  return Math.max(0, low - sum);
}

function checkVersions(
  analysis: KeyAnalysis,
  witness: VersionWitness,
  acknowledged: readonly number[],
  possible: readonly number[],
  observations: readonly number[],
  report: Report,
): void {
  const { history } = analysis;
  const { version } = witness.codes;
  const placed = acknowledged.filter((i) => version[i] === version[i]);
  const unplaced = possible.filter((i) => history.outcome[i] === outcomeCode.info || version[i] !== version[i]);
  const byVersion = sumsOf(analysis, placed, version);
  const extras = sumsOf(analysis, unplaced, history.invokeNs);
  const shown = observations
    .filter((i) => version[i] === version[i])
    .sort((a, b) => (version[a] as number) - (version[b] as number));
  let least = -Infinity;
  let most = Infinity;
  for (const i of shown) {
    const sum = shownSum(analysis, i) as number;
    const made = byVersion.all[countBelow(byVersion.keys, version[i] as number, true)] as number;
    const begun = countBelow(extras.keys, history.returnNs[i] as number, true);
    const low = Math.max(extras.negative[begun] as number, noneBelowZero(extras) ? least : -Infinity);
    const high = Math.min(extras.positive[begun] as number, noneAboveZero(extras) ? most : Infinity);
    const extra = sum - made;
    if (extra < low) {
      reportLow(
        analysis,
        i,
        lastAtOrBelow(witness, placed, version[i] as number),
        `the sum is ${sum} at a version up to which acknowledged additions make ${made} and unknown ones at least ${low}`,
        report,
      );
    } else if (extra > high) {
      report({
        kind: history.source[i] === sourceCode.replica ? 'diverged' : 'duplicated',
        rule: 'counter-sum',
        subject: i,
        witness: -1,
        reason: `the sum is ${sum} at a version up to which acknowledged additions make ${made} and unknown ones at most ${high}`,
      });
    } else {
      least = Math.max(least, extra);
      most = Math.min(most, extra);
    }
  }
}

const noneBelowZero = (sums: Sums): boolean => (sums.negative[sums.negative.length - 1] as number) === 0;
const noneAboveZero = (sums: Sums): boolean => (sums.positive[sums.positive.length - 1] as number) === 0;

function reportLow(analysis: KeyAnalysis, i: number, subject: number, reason: string, report: Report): void {
  const source = analysis.history.source[i];
  const kind =
    source === sourceCode.replica
      ? 'diverged'
      : source === sourceCode.operation && analysis.history.f[i] === kindCode.read
        ? 'stale'
        : 'lost';
  report({ kind, rule: 'counter-sum', subject: subject >= 0 ? subject : i, witness: i, reason });
}

/** The last acknowledged addition before a moment; one that had shown a higher sum comes first, since what is shown now cannot hold it. */
function lastReturned(analysis: KeyAnalysis, beforeNs: number, sum: number): number {
  const { history } = analysis;
  let last = -1;
  let higher = -1;
  for (let i = 0; i < history.operationCount; i++) {
    if (
      history.f[i] !== kindCode.add ||
      history.outcome[i] !== outcomeCode.ok ||
      (history.returnNs[i] as number) >= beforeNs
    )
      continue;
    if (last < 0 || (history.returnNs[i] as number) > (history.returnNs[last] as number)) last = i;
    if (
      (history.number[i] as number) > sum &&
      (higher < 0 || (history.returnNs[i] as number) > (history.returnNs[higher] as number))
    )
      higher = i;
  }
  return higher >= 0 ? higher : last;
}

function lastAtOrBelow(witness: VersionWitness, rows: readonly number[], code: number): number {
  const { version } = witness.codes;
  let last = -1;
  for (const i of rows) {
    if ((version[i] as number) <= code && (last < 0 || (version[i] as number) > (version[last] as number))) last = i;
  }
  return last;
}
