/** The history in memory and the ledger's file say the same of one run: same rows, same judgement. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openLedgerReader } from '../ledger/reader.ts';
import type { KeyHistory } from '../ledger/verify/history.ts';
import { defaultJudgeOptions, judgeRun } from '../ledger/verify/judge.ts';
import { unlimitedBudget } from '../ledger/verify/search/budget.ts';
import type { HistorySource } from '../ledger/verify/source.ts';
import { drawOptions } from './options.ts';
import { LedgerFeed } from './ledger-feed.ts';
import { playSim, runSim, runTagOf } from './run-seed.ts';

/** All keys' rows in words; nodes by name, since their numbers differ. */
function wordsOf(source: HistorySource): Map<string, string[]> {
  const words = new Map<string, string[]>();
  const row = (history: KeyHistory, i: number): string =>
    [
      history.operationId[i],
      history.f[i],
      history.outcome[i],
      history.why[i],
      history.source[i],
      history.invokeNs[i],
      history.returnNs[i],
      history.major[i],
      history.minor[i],
      history.expectedMajor[i],
      history.expectedMinor[i],
      history.observed[i],
      history.number[i],
      history.argument[i],
      history.partition[i],
      history.epoch[i],
      (history.node[i] ?? -1) < 0 ? '-' : source.nodeName(history.node[i] as number),
    ].join(' ');
  for (const history of source.histories()) {
    words.set(
      `${history.name} ${history.canary} ${history.retired} ${history.operationCount}`,
      Array.from({ length: history.size }, (_, i) => row(history, i)),
    );
  }
  return words;
}

/** Keys that are soon finished, and a cap that has them retired. */
const fewKeys = { maxLiveKeys: '20', mix: 'registers:1,counters:1', operationsPerKey: '5', activeKeys: '4' };

describe('a simulated run', () => {
  it.each([
    { seed: 3, leastRetired: -1, pins: { maxLiveKeys: '300' } },
    { seed: 21, leastRetired: 300, pins: fewKeys },
  ])('of seed $seed is told by the ledger as by memory', async ({ seed, leastRetired, pins }) => {
    const options = drawOptions(seed, { durationMs: '60000', ...pins });
    const result = await runSim({ seed, options });
    const folder = mkdtempSync(join(tmpdir(), 'zaris-sim-'));
    try {
      const path = join(folder, 'ledger.sqlite');
      const feed = await LedgerFeed.open(path, runTagOf(seed));
      const played = await playSim({ seed, options, sink: feed });
      expect(played.traceHash).toBe(result.traceHash);
      const facts = { runId: 'r', settings: {}, contract: null, host: null, build: '', reasons: [] };
      await feed.finish(played, facts);
      // Memory stays flat over hours: what was retired is forgotten by name.
      const keys = [...wordsOf(result.history).keys()];
      const retired = keys.filter((key) => key.split(' ')[2] === 'true').length;
      expect(retired).toBeGreaterThan(leastRetired);
      // What was retired is forgotten by its name, so that memory stays flat; a key whose delete stayed in doubt is kept.
      expect(feed.keysInMemory).toBeLessThanOrEqual(keys.length - retired * 0.9);
      const reader = openLedgerReader(path);
      try {
        const expected = wordsOf(result.history);
        const found = wordsOf(reader);
        expect(found.size).toBeGreaterThan(100);
        expect([...found.keys()].sort()).toEqual([...expected.keys()].sort());
        for (const [key, rows] of expected) expect(found.get(key), key).toEqual(rows);
        const judge = (source: HistorySource) =>
          judgeRun(source, { ...defaultJudgeOptions, searchBudget: () => unlimitedBudget() });
        const [inMemory, inFile] = [judge(result.history), judge(reader)];
        expect(inFile.verdict).toBe(inMemory.verdict);
        expect(inFile.strength).toEqual(inMemory.strength);
        expect(inFile.canary).toEqual(inMemory.canary);
        // What the judgement compares, to tell that rows are missing.
        expect(reader.meta('written')).toEqual(reader.rowCounts());
      } finally {
        reader.close();
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('is not taken as told when a row of it could not be written', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zaris-sim-'));
    try {
      const options = drawOptions(3, { durationMs: '5000' });
      const feed = await LedgerFeed.open(join(folder, 'ledger.sqlite'), runTagOf(3));
      const played = await playSim({ seed: 3, options, sink: feed });
      // A key is retired once: the second row is refused by the table.
      for (const atNs of [1, 2]) feed.retire({ key: 'retired twice', atNs, exposed: false });
      const facts = { runId: 'r', settings: {}, contract: null, host: null, build: '', reasons: [] };
      await expect(feed.finish(played, facts)).rejects.toThrow('retirements.key_id');
      // A run that still goes on ends there, too.
      expect(() => feed.pace()).toThrow('retirements.key_id');
      await feed.abandon();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
