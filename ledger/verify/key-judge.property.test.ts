import { describe, expect, it } from 'vitest';
import { Prng } from '../../lib/prng.ts';
import { historyOf, type HistoryRow } from './history.ts';
import { KeyJudge } from './key-judge.ts';
import { isLinearizable } from './oracle.ts';
import { mutate, randomHistory, type RandomHistoryOptions } from './testing/random-history.ts';

/** Histories per property; the full run (`test:full`) sets the variable to 100,000. */
const histories = Number(process.env['LEDGER_PROPERTY_RUNS'] ?? 3_000);
const seed = Number(process.env['LEDGER_PROPERTY_SEED'] ?? 20_240_607);

const timeoutMs = 600_000;

const judge = new KeyJudge({ ttlLateBoundNs: 1e9 });

function rulesOf(rows: readonly HistoryRow[]): string[] {
  judge.judge(historyOf(rows));
  return judge.findings.map((finding) => `${finding.kind}/${finding.rule}`);
}

const kinds: HistoryRow['f'][] = ['read', 'read', 'read', 'write', 'write', 'cas', 'create', 'delete'];

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

describe('checkers against the model and the oracle', () => {
  it('never flags a history of the linearizable model', () => {
    for (let run = 0; run < histories; run++) {
      const prng = new Prng(seed).fork(`sound-${run}`);
      const rows = randomHistory(prng, { ...optionsFor(prng), operations: prng.between(2, 40) });
      expect({ run, rules: rulesOf(rows), rows }).toEqual({ run, rules: [], rows });
    }
  }, timeoutMs);

  it('never flags what the oracle can explain, and flags all that it cannot where versions are total', () => {
    let bad = 0;
    let flaggedBad = 0;
    let totalBad = 0;
    for (let run = 0; run < histories; run++) {
      const prng = new Prng(seed).fork(`mutated-${run}`);
      const options = optionsFor(prng);
      let rows = randomHistory(prng, options);
      for (let changes = prng.between(1, 2); changes > 0; changes--) rows = mutate(prng, rows);
      const rules = rulesOf(rows);
      const explained = isLinearizable(rows, options.versions);
      if (rules.length > 0 && explained) expect.fail(`run ${run} was flagged wrongly (${rules.join()}):\n${textOf(rows)}`);
      if (explained) continue;
      bad++;
      if (rules.length > 0) flaggedBad++;
      // Total: every effect and every observation has a version, so nothing may hide.
      const total = options.versions && options.absenceVersions && rows.every(isPlaced);
      if (!total) continue;
      totalBad++;
      if (rules.length === 0) expect.fail(`run ${run} was not flagged:\n${textOf(rows)}`);
    }
    expect(bad).toBeGreaterThan(histories / 20);
    expect(totalBad).toBeGreaterThan(histories / 100);
    // Where versions are partial, most is still caught; a search decides the rest.
    expect(flaggedBad / bad).toBeGreaterThan(0.8);
  }, timeoutMs);
});

const textOf = (rows: readonly HistoryRow[]): string => rows.map((row) => JSON.stringify(row)).join('\n');

/** Nothing about the row is unknown: it happened or not, and at which version. */
function isPlaced(row: HistoryRow): boolean {
  if (row.outcome === 'info') return row.f === 'read';
  if (row.outcome === 'fail') return row.version !== undefined;
  return row.version !== undefined || row.observed === null;
}
