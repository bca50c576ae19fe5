import { describe, expect, it } from 'vitest';
import { compareHtml, compareMarkdown, compareRuns } from './compare-runs.ts';
import type { RunReport } from './model.ts';
import { syntheticReport } from './testing/synthetic.ts';

const named = (report: RunReport, name: string): RunReport => ({ ...report, system: { ...report.system, name } });
const good = named(syntheticReport('certified'), 'etcd');
const bad = named(syntheticReport('violated'), 'redis <async>');
const cellsOf = (reports: readonly RunReport[], row: string): readonly string[] | undefined =>
  compareRuns(reports)
    .tables.flatMap((table) => table.rows)
    .find((each) => each.name === row)?.cells;

describe('systems side by side', () => {
  it('shows verdict and losses of each run in its column', () => {
    const lost = bad.findings.totals.find(({ kind }) => kind === 'lost')?.count ?? 0;
    expect(lost).toBeGreaterThan(0);
    expect(cellsOf([good, bad], 'verdict')).toEqual(['certified, exit 0', 'violated, exit 1']);
    expect(cellsOf([good, bad], 'lost acknowledged writes')?.[0]).toMatch(/^0 of /);
    expect(cellsOf([good, bad], 'lost acknowledged writes')?.[1]?.replace(/,/g, '')).toMatch(
      new RegExp(`^${lost} of `),
    );
  });

  it('has one row per fault kind, with "not injected" where a run lacks it', () => {
    const less: RunReport = { ...bad, recovery: bad.recovery.filter((row) => row.faultKind !== 'kill') };
    expect(cellsOf([good, less], 'kill')?.[0]).toMatch(/median, .* worst \(\d+ faults?, \d+ primar(y|ies) hit/);
    expect(cellsOf([good, less], 'kill')?.[1]).toBe('not injected');
  });

  it('says when runs cannot be set beside each other', () => {
    expect(compareRuns([good, named(good, 'zaris')]).warnings).toEqual([]);
    const other: RunReport = { ...good, faults: good.faults.slice(1), run: { ...good.run, cluster: 'process' } };
    expect(compareRuns([good, other]).warnings).toEqual([
      'These runs did not play the same schedule of faults.',
      'These runs were made on different kinds of cluster.',
    ]);
    const unwell: RunReport = { ...good, verdict: { ...good.verdict, kind: 'inconclusive' } };
    expect(compareRuns([good, unwell]).warnings[0]).toMatch(/has no complete verdict \(inconclusive\)/);
  });

  it('is written as Markdown and as a page, names escaped', () => {
    const comparison = compareRuns([good, bad]);
    const markdown = compareMarkdown(comparison);
    for (const line of markdown.split('\n').filter((each) => each.startsWith('|')))
      expect(line.match(/(?<!\\)\|/g)).toHaveLength(4);
    expect(markdown).toContain(good.run.replay);
    const page = compareHtml(comparison);
    expect(page).toContain('redis &lt;async&gt;');
    expect(page).not.toContain('<async>');
  });
});
