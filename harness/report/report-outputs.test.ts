import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { githubAnnotations } from './annotations.ts';
import { emptyReport } from './empty-report.ts';
import { composeHeadline, firstScreen, strengthWords } from './first-screen.ts';
import { parseReport, type RunReport } from './model.ts';
import { renderHtml } from './render-html.ts';
import { renderJunit } from './render-junit.ts';
import { renderLastLines } from './render-lines.ts';
import { renderMarkdown } from './render-markdown.ts';
import { schemaPath, schemaText } from './schema-file.ts';
import { assertWellFormed } from './testing/xml.ts';
import { syntheticNames, syntheticReport } from './testing/synthetic.ts';

const violated = syntheticReport('violated');
const plain = { colour: false, reportPath: null };
// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/;

describe('report.json', () => {
  it('has a published schema that is current (run schema-file.ts when this fails)', () => {
    expect(readFileSync(schemaPath, 'utf8')).toBe(schemaText());
  });

  it('survives the way to disk and back, and refuses strangers', () => {
    expect(parseReport(JSON.parse(JSON.stringify(violated)))).toEqual(violated);
    expect(() => parseReport({ ...violated, formatVersion: 2 })).toThrow('format 1');
    expect(() => parseReport({ ...violated, verdict: { ...violated.verdict, kind: 'fine' } })).toThrow('verdict.kind');
    expect(() => parseReport({ ...violated, surprise: 1 })).toThrow('malformed');
    expect(() => parseReport(null)).toThrow();
  });

  it('never reads as a pass while nothing is known', () => {
    const report = parseReport(emptyReport());
    expect(report.verdict.exitCode).toBe(70);
    expect(firstScreen(report).word).toContain('NOT CERTIFIED');
  });
});

describe('every output', () => {
  it.each(syntheticNames)('says the same first screen for %s', (name) => {
    const report = syntheticReport(name);
    const screen = firstScreen(report);
    const lines = renderLastLines(report, plain).join('\n');
    const markdown = renderMarkdown(report);
    const junit = renderJunit(report);
    const page = renderHtml(report);
    const said = [screen.word, screen.headline, screen.replay, ...screen.losses.map((loss) => loss.sentence)];
    for (const text of [lines, page]) expect(said.filter((words) => !text.includes(words))).toEqual([]);
    expect(markdown).toContain(screen.replay);
    expect(junit).toContain(`tests="${report.promises.length + report.gates.length + 2}"`);
    assertWellFormed(junit);
    expect(lines.split('\n').length).toBeLessThan(30);
  });

  it('keeps hostile keys harmless', () => {
    const hostile = '<script>alert(1)</script>\u001b[2J\u0000]]>&"\'|`';
    const item = {
      ...(violated.findings.items[0] as RunReport['findings']['items'][number]),
      key: hostile,
      node: hostile,
    };
    const report: RunReport = {
      ...violated,
      run: { ...violated.run, runId: hostile, replay: hostile },
      verdict: { ...violated.verdict, headline: hostile, missing: [hostile] },
      findings: {
        ...violated.findings,
        items: [item, ...violated.findings.items],
        groups: violated.findings.groups.map((group) => ({ ...group, sentence: hostile })),
      },
      settings: [{ name: hostile, value: hostile }],
      limits: [hostile],
    };
    expect(renderHtml(report).includes('<script>alert')).toBe(false);
    expect(control.test(renderHtml(report))).toBe(false);
    const markdown = renderMarkdown(report);
    expect(markdown.replace(/```sh[\s\S]*?```/g, '')).not.toContain('<script');
    expect(control.test(markdown)).toBe(false);
    const junit = renderJunit(report);
    assertWellFormed(junit);
    expect(control.test(junit)).toBe(false);
    expect(control.test(renderLastLines(report, plain).join('\n'))).toBe(false);
    expect(control.test(githubAnnotations(report, { GITHUB_ACTIONS: 'true' }).join('\n'))).toBe(false);
  });

  it('is one file without network', () => {
    const page = renderHtml(violated).replace(/<script type="application\/json"[\s\S]*?<\/script>/, '');
    expect(/(?:src|href)="https?:/.test(page)).toBe(false);
    expect(page.includes("default-src 'none'")).toBe(true);
  });
});

describe('JUnit', () => {
  it('makes missing evidence an error and a broken promise a failure', () => {
    const junit = renderJunit(syntheticReport('inconclusive'));
    expect(junit).toMatch(/name="The run is certified"[^>]*><error/);
    expect(renderJunit(violated)).toMatch(/name="Every acknowledged write is kept"[^>]*><failure/);
    expect(renderJunit(violated)).toMatch(/name="No write takes effect twice"[^>]*><skipped/);
    expect(renderJunit(syntheticReport('certified'))).toContain('failures="0" errors="0"');
  });
});

describe('annotations', () => {
  it('are silent outside of GitHub and keep one line each', () => {
    expect(githubAnnotations(violated, {})).toEqual([]);
    const lines = githubAnnotations(
      { ...violated, verdict: { ...violated.verdict, headline: '50%\nof: it' } },
      { GITHUB_ACTIONS: 'true' },
    );
    expect(lines[0]).toMatch(/^::error title=NOT CERTIFIED · VIOLATED::50%25/);
    for (const line of lines) expect(line).not.toContain('\n');
  });
});

describe('words of the certificate', () => {
  it('put the bound per failover first and call the one per write optimistic', () => {
    const { strength } = syntheticReport('certified');
    const words = strengthWords({
      ...strength,
      failovers: 412,
      perFailoverBound95: 3 / 412,
      incidents: 50,
      perIncidentBound95: 3 / 50,
      perWriteBound95: 3 / 900_000,
    });
    expect(words[0]).toContain('below 0.73 % (95 % confidence, 412 failovers');
    expect(words[1]).toContain('counted as one, below 6 % (50 incidents)');
    expect(words[2]).toMatch(/^Optimistic, per write: below 1 in 300,000/);
  });

  it('a loss permitted by a declared contract is in the first line', () => {
    const report = syntheticReport('certified');
    const permitted: RunReport = {
      ...report,
      verdict: { ...report.verdict, contract: 'declared', permittedLosses: 12 },
    };
    expect(renderLastLines(permitted, plain)[1]).toBe(
      '! 12 writes lost, permitted by contract declared  (docker cluster, exit 0)',
    );
    expect(firstScreen(permitted).tone).not.toBe('good');
    expect(renderLastLines(report, plain)[1]).toBe('✓ CERTIFIED  (docker cluster, exit 0)');
    expect(composeHeadline(violated)).toBe(
      '37 acknowledged writes were lost; also 4 stale reads and 2 diverged copies',
    );
  });
});
