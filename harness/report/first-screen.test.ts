import { describe, expect, it } from 'vitest';
import { composeHeadline, firstScreen, gathered, strengthWords } from './first-screen.ts';
import { renderLastLines } from './render-lines.ts';
import { renderMarkdown } from './render-markdown.ts';
import { syntheticReport } from './testing/synthetic.ts';

describe('what a reader sees first', () => {
  it('says once what holds for many partitions, and leaves every other reason as it is', () => {
    const reasons = [
      'Partition 11 is Degraded at the end.',
      'A gap.',
      'Partition 2 is Degraded at the end.',
      'Partition 3 is Unavailable at the end.',
      'No key of partition 9 could be read back.',
      'No key of partition 1 could be read back.',
    ];
    expect(gathered(reasons)).toEqual([
      '2 partitions: each is Degraded at the end (2 and 11).',
      'A gap.',
      'Partition 3 is Unavailable at the end.',
      'No key of 2 partitions could be read back (1 and 9).',
    ]);
    const many = Array.from({ length: 64 }, (_, index) => `Partition ${index} is Recovering at the end.`);
    expect(gathered(many)).toEqual([
      '64 partitions: each is Recovering at the end (0, 1, 2, 3, 4, 5, 6, 7 and 56 more).',
    ]);
  });

  it('does not dress up a handful of incidents as a bound', () => {
    const { strength } = syntheticReport('certified');
    const words = strengthWords({
      ...strength,
      failovers: 2,
      perFailoverBound95: 1,
      incidents: 3,
      perIncidentBound95: 1,
    });
    expect(words[0]).toBe('2 failovers: too few to bound anything; finding nothing says little.');
    expect(words[1]).toContain('these are 3 incidents, too few for a bound');
    expect(words.join(' ')).not.toContain('100 %');
  });

  it('does not ask a certified run without failovers for a certificate', () => {
    const { strength } = syntheticReport('certified');
    const words = strengthWords({ ...strength, failovers: 0, perFailoverBound95: null });
    expect(words[0]).toBe('No bound is claimed: a bound needs failovers, and the judged writes went through none.');
  });

  it('counts two kinds of finding by name in the headline, the others together', () => {
    const report = syntheticReport('violated');
    const totals = [
      { kind: 'lost', count: 5 },
      { kind: 'ttl', count: 1 },
      { kind: 'stale', count: 80 },
      { kind: 'duplicated', count: 3 },
      { kind: 'phantom', count: 2 },
    ] as const;
    expect(composeHeadline({ ...report, findings: { ...report.findings, totals: [...totals] } })).toBe(
      '5 acknowledged writes were lost; also 80 stale reads, 3 duplicated writes and 3 findings of other kinds',
    );
  });

  it('says in every output that nothing was found where the verdict leaves it open', () => {
    const report = syntheticReport('inconclusive');
    const words = 'In what was judged, nothing was found lost, stale or otherwise wrong.';
    expect(firstScreen(report).nothingFound).toBe(words);
    expect(renderLastLines(report, { colour: false, reportPath: null }).join('\n')).toContain(words);
    expect(renderMarkdown(report)).toContain(words);
    expect(firstScreen({ ...report, preliminary: true }).nothingFound).toBe('Nothing has been judged yet.');
    expect(firstScreen(syntheticReport('violated')).nothingFound).toBeNull();
    expect(firstScreen(syntheticReport('certified')).nothingFound).toBeNull();
  });

  it('tells how to see how often a loss comes again, by the folder that the replay names', () => {
    const report = syntheticReport('violated');
    expect(firstScreen(report).replayNote).toContain(`reproduce results/${report.run.runId} --times 5`);
    const simulated = { ...report, run: { ...report.run, cluster: 'sim' as const } };
    expect(firstScreen(simulated).replayNote).toBe('The same seed gives the same run, step for step.');
  });
});
