import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { diffRuns, diffTable } from './diff-runs.ts';
import { findRun, keptMarker, listRuns, runsTable } from './list-runs.ts';
import type { RunReport } from './model.ts';
import { pruneRuns } from './prune-runs.ts';
import { serveResults } from './serve-results.ts';
import { syntheticReport } from './testing/synthetic.ts';
import { medianOf, sparkline, trendRuns, trendText } from './trend-runs.ts';
import { linkLatest, renderAgain, writeReportFiles, writeReportJson } from './write-report.ts';

const certified = syntheticReport('certified');
let results = '';
beforeEach(() => {
  results = mkdtempSync(join(tmpdir(), 'report-runs-'));
});
afterEach(() => rmSync(results, { recursive: true, force: true }));

/** A nightly run of day `day`, with a chosen recovery. */
function night(day: number, p99Ms: number, change: Partial<RunReport> = {}): RunReport {
  const startedAt = new Date(Date.UTC(2026, 10, day)).toISOString();
  return {
    ...certified,
    run: { ...certified.run, runId: `night-${String(day).padStart(2, '0')}`, startedAt },
    recovery: [
      {
        faultKind: 'all',
        faults: 9,
        firstAck: { count: 9, p50Ms: 300, p99Ms, maxMs: p99Ms },
        healthy: null,
        neverRecovered: 0,
      },
    ],
    ...change,
  };
}

const save = (report: RunReport): string => {
  const folder = join(results, report.run.runId);
  writeReportJson(folder, report);
  return folder;
};

describe('list', () => {
  it('is newest first, names what cannot be read, and ignores links and strangers', () => {
    save(night(1, 1000));
    save(night(3, 1000));
    mkdirSync(join(results, 'broken'));
    writeFileSync(join(results, 'broken', 'report.json'), '{"formatVersion":1}');
    mkdirSync(join(results, 'not-a-run'));
    symlinkSync('night-03', join(results, 'latest'));
    const runs = listRuns(results);
    expect(runs.map((run) => run.name).toSorted()).toEqual(['broken', 'night-01', 'night-03']);
    expect(runs.filter((run) => run.kind === 'read').map((run) => run.name)).toEqual(['night-03', 'night-01']);
    expect(runsTable(runs)).toContain('malformed');
    expect(findRun(results, 'latest').name).toBe('night-03');
    expect(() => findRun(results, 'night-0')).toThrow('fits 2 runs');
    expect(() => findRun(results, 'nope')).toThrow("no run named 'nope'");
    expect(() => listRuns(join(results, 'nowhere'))).toThrow('cannot read the results folder');
  });
});

describe('write and render again', () => {
  it('leaves the four files and a link', () => {
    const folder = join(results, 'r1');
    writeReportFiles(folder, certified);
    rmSync(join(folder, 'report.html'));
    expect(renderAgain(folder).run.runId).toBe(certified.run.runId);
    for (const name of ['report.json', 'report.md', 'junit.xml', 'report.html'])
      expect(existsSync(join(folder, name))).toBe(true);
    linkLatest(results, 'r1');
    linkLatest(results, 'r1');
    expect(existsSync(join(results, 'latest', 'report.json'))).toBe(true);
    rmSync(join(results, 'latest'));
    mkdirSync(join(results, 'latest'));
    expect(() => linkLatest(results, 'r1')).toThrow('is no link');
  });
});

describe('diff', () => {
  it('shows what differs in the set-up and which way a metric went', () => {
    const diff = diffRuns(night(1, 1000), night(2, 2100, { system: { ...certified.system, build: 'other' } }));
    expect(diff.setup).toEqual([{ name: 'build', before: certified.system.build, after: 'other' }]);
    expect(diff.metrics.find((row) => row.name === 'recovery.p99')).toMatchObject({
      before: '1 s',
      after: '2.1 s',
      judgement: 'worse',
    });
    expect(diff.metrics.find((row) => row.name === 'acked.rate')?.judgement).toBe('same');
    expect(diffTable(diff)).toContain('+110 %');
  });
});

describe('trend', () => {
  it('says how far the latest is from the median, outside the noise only', () => {
    const earlier = Array.from({ length: 14 }, (_, index) => night(14 - index, 1000 + (index % 3) * 20));
    const trend = trendRuns([night(20, 2_142), ...earlier]);
    expect(trend?.compared).toBe(14);
    expect(trend?.sentences.find((text) => text.startsWith('recovery.p99'))).toMatch(
      /^recovery\.p99 is 2\.1 × the median of 14 runs \(worse/,
    );
    expect(trendRuns([night(20, 1_030), ...earlier])?.sentences).toEqual([]);
    expect(trendText(trend)).toContain('recovery.p99');
  });

  it('compares only runs of the same shape with a complete verdict', () => {
    const other = night(2, 9_000, { system: { ...certified.system, replicationFactor: 2 } });
    const cut = night(3, 9_000, { verdict: { ...certified.verdict, kind: 'interrupted', exitCode: 130 } });
    const trend = trendRuns([night(20, 1000), other, cut, night(1, 1000)]);
    expect(trend).toMatchObject({ compared: 1, leftOut: 2, rows: [] });
    expect(trendText(trend)).toContain('at least 4');
    expect(trendText(trendRuns([cut]))).toContain('No complete run');
  });

  it('medians and sparklines', () => {
    expect([medianOf([3, 1, 2]), medianOf([4, 1, 2, 3])]).toEqual([2, 2.5]);
    expect([sparkline([0, 7, Infinity]), sparkline([100, 101]), sparkline([0, 0])]).toEqual(['▁█·', '▄▅', '▁▁']);
  });
});

describe('prune', () => {
  it('removes the oldest beyond keep, and never a kept, unreadable, preliminary or latest run', () => {
    const folders = Array.from({ length: 8 }, (_, index) =>
      save(night(index + 1, 1000, index === 3 ? { preliminary: true } : {})),
    );
    writeFileSync(join(folders[0] as string, keptMarker), '');
    writeFileSync(join(folders[1] as string, 'report.json'), 'torn');
    symlinkSync('night-03', join(results, 'latest'));
    const plan = pruneRuns(results, 2);
    expect(plan.remove.map((run) => run.name)).toEqual(['night-06', 'night-05']);
    expect(plan.spared.map(({ run }) => run.name).toSorted()).toEqual(['night-01', 'night-02', 'night-03', 'night-04']);
    expect(folders.map((folder) => existsSync(folder))).toEqual([true, true, true, true, false, false, true, true]);
    expect(() => pruneRuns(results, -1)).toThrow('--keep');
  });
});

describe('serve', () => {
  const get = (url: string, host?: string): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      const target = new URL(url);
      const path = url.slice(target.origin.length);
      request(
        { host: target.hostname, port: target.port, path, headers: host === undefined ? {} : { host } },
        (response) => {
          let body = '';
          response
            .on('data', (chunk) => (body += chunk))
            .on('end', () => resolve({ status: response.statusCode ?? 0, body }));
        },
      )
        .on('error', reject)
        .end();
    });

  it('shows runs and reports on 127.0.0.1, and nothing else', async () => {
    const folder = join(results, 'r1');
    writeReportFiles(folder, { ...certified, run: { ...certified.run, runId: 'r1' } });
    save(night(1, 1000));
    writeFileSync(join(folder, 'secret.txt'), 'secret');
    mkdirSync(join(results, 'linked'));
    symlinkSync('/etc/hostname', join(results, 'linked', 'report.json'));
    const { url, server } = await serveResults(results, 0);
    try {
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
      expect((await get(url)).body).toContain('href="/r1/report.html"');
      expect((await get(`${url}r1/report.html`)).body).toContain('CERTIFIED');
      expect((await get(`${url}diff?a=night-01&b=r1`)).body).toContain('night-01 → r1');
      expect((await get(`${url}diff?a=<script>&b=r1`)).body).toContain("no run named '<script>'");
      for (const path of [
        'r1/secret.txt',
        '../package.json',
        'r1/..%2f..%2fpackage.json',
        '%2e%2e/x/report.json',
        'linked/report.json',
        'r1',
        'r1/',
        'nowhere/report.html',
      ]) {
        expect((await get(`${url}${path}`)).status, path).toBe(404);
      }
      expect((await get(url, 'evil.example')).status).toBe(421);
    } finally {
      server.close();
    }
  });
});
