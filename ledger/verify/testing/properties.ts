/** The properties of the checkers, as functions of how long to try; shared by the short and the full tests. */
import { assert } from '../../../lib/assert.ts';
import { Prng } from '../../../lib/prng.ts';
import { forge, forgedKinds } from '../canary.ts';
import { historyOf, type HistoryRow } from '../history.ts';
import { KeyJudge } from '../key-judge.ts';
import { isLinearizable } from './oracle.ts';
import { randomCounter } from './random-counter.ts';
import { mutate, randomHistory, type RandomHistoryOptions } from './random-history.ts';

const judge = new KeyJudge({ ttlLateBoundNs: 1e9 });
const kinds: HistoryRow['f'][] = ['read', 'read', 'read', 'write', 'write', 'cas', 'create', 'delete'];

/** What the checkers say, as `kind/rule`. */
export function rulesOf(rows: readonly HistoryRow[]): string[] {
  judge.judge(historyOf(rows));
  return judge.findings.map((finding) => `${finding.kind}/${finding.rule}`);
}

const textOf = (rows: readonly HistoryRow[]): string => rows.map((row) => JSON.stringify(row)).join('\n');

function optionsFor(prng: Prng): RandomHistoryOptions {
  return {
    operations: prng.between(2, 8),
    kinds: prng.chance(0.3) ? ['read', 'read', 'write'] : kinds,
    infoShare: prng.pick([0, 0, 0.2, 0.5]),
    versions: prng.chance(0.7),
    absenceVersions: prng.chance(0.5),
    readBack: prng.chance(0.5),
  };
}

/** Throws when a history of the linearizable model is flagged. */
export function checkModel(histories: number, seed: number): void {
  for (let run = 0; run < histories; run++) {
    const prng = new Prng(seed).fork(`sound-${run}`);
    const rows = randomHistory(prng, { ...optionsFor(prng), operations: prng.between(2, 60) });
    const rules = rulesOf(rows);
    assert(rules.length === 0, `run ${run} was flagged wrongly (${rules.join()}):\n${textOf(rows)}`);
  }
}

export interface OracleCounts {
  readonly bad: number;
  readonly flagged: number;
  /** Bad ones in which nothing lacks a version; all of these are flagged, or the check throws. */
  readonly totalBad: number;
}

/** Throws when a small history is flagged that the oracle can explain, or is not flagged though versions are total and it cannot. */
export function checkAgainstOracle(histories: number, seed: number): OracleCounts {
  let bad = 0;
  let flagged = 0;
  let totalBad = 0;
  for (let run = 0; run < histories; run++) {
    const prng = new Prng(seed).fork(`mutated-${run}`);
    const options = optionsFor(prng);
    let rows = randomHistory(prng, options);
    for (let changes = prng.between(1, 2); changes > 0; changes--) rows = mutate(prng, rows);
    const rules = rulesOf(rows);
    if (isLinearizable(rows, options.versions)) {
      assert(rules.length === 0, `run ${run} was flagged wrongly (${rules.join()}):\n${textOf(rows)}`);
      continue;
    }
    bad++;
    if (rules.length > 0) flagged++;
    if (!options.versions || !options.absenceVersions || !rows.every(isPlaced)) continue;
    totalBad++;
    assert(rules.length > 0, `run ${run} was not flagged:\n${textOf(rows)}`);
  }
  return { bad, flagged, totalBad };
}

/** Nothing about the row is unknown: it happened or not, and at which version. */
function isPlaced(row: HistoryRow): boolean {
  if (row.outcome === 'info') return row.f === 'read';
  if (row.outcome === 'fail') return row.version !== undefined;
  return row.version !== undefined || row.observed === null;
}

/** Plants one fault of each kind in sound histories; throws when one is not reported as what it is. Returns how many were planted. */
export function checkPlanted(histories: number, seed: number): Map<string, number> {
  const planted = new Map<string, number>();
  const count = (kind: string): void => void planted.set(kind, (planted.get(kind) ?? 0) + 1);
  for (let run = 0; run < histories; run++) {
    const prng = new Prng(seed).fork(`planted-${run}`);
    const rows = randomHistory(prng, {
      ...optionsFor(prng),
      operations: prng.between(2, 30),
      infoShare: prng.pick([0, 0, 0.1]),
      readBack: true,
    });
    for (const kind of forgedKinds) {
      const forged = forge(historyOf(rows), kind);
      if (forged === null) continue;
      count(kind);
      judge.judge(forged);
      assert(
        judge.findings.some((finding) => finding.kind === kind),
        `run ${run}: planted ${kind} was not reported:\n${textOf(rows)}`,
      );
    }
    const reordered = reorder(rows);
    if (reordered === null) continue;
    count('reordered');
    assert(rulesOf(reordered).length > 0, `run ${run}: a reordered pair was not reported:\n${textOf(reordered)}`);
  }
  return planted;
}

/** Swaps the versions of two acknowledged writes of which one ended before the other began; null when there are none. */
function reorder(rows: readonly HistoryRow[]): HistoryRow[] | null {
  for (const a of rows) {
    if (a.f !== 'write' || a.outcome !== 'ok' || !a.version) continue;
    for (const b of rows) {
      if (b.f !== 'write' || b.outcome !== 'ok' || !b.version || a.returnNs >= b.invokeNs) continue;
      return rows.map((row) =>
        row === a
          ? { ...row, version: b.version as readonly [number, number] }
          : row === b
            ? { ...row, version: a.version as readonly [number, number] }
            : row,
      );
    }
  }
  return null;
}

/** Counters: sound ones are never flagged; without unknown additions, a lost or doubled one always is. Returns how many faults were planted. */
export function checkCounters(histories: number, seed: number): number {
  let planted = 0;
  for (let run = 0; run < histories; run++) {
    const prng = new Prng(seed).fork(`counter-${run}`);
    const fault = prng.pick(['none', 'lost', 'doubled'] as const);
    const rows = randomCounter(prng, {
      versions: prng.chance(0.5),
      negative: prng.chance(0.3),
      infoShare: fault === 'none' ? prng.pick([0, 0.3]) : 0,
      fault,
    });
    const rules = rulesOf(rows);
    if (fault === 'none')
      assert(rules.length === 0, `run ${run} was flagged wrongly (${rules.join()}):\n${textOf(rows)}`);
    else if (rows.some((row) => row.f === 'add')) {
      planted++;
      assert(
        rules.some((rule) => rule.endsWith('counter-sum')),
        `run ${run}: a ${fault} addition was not reported:\n${textOf(rows)}`,
      );
    }
  }
  return planted;
}
