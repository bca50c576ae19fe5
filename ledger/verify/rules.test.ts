/** The rules of DESIGN §9 as literal histories: what is a violation, and just as much what is none. Times are ns; 1 ms = 1e6. */
import { describe, expect, it } from 'vitest';
import { historyOf, type HistoryRow, observedCorrupt, observedForeign } from './history.ts';
import { KeyJudge, writeStatus } from './key-judge.ts';

const ms = 1e6;

function judge(...rows: HistoryRow[]): KeyJudge {
  const keyJudge = new KeyJudge({ ttlLateBoundNs: 1_000 * ms });
  keyJudge.judge(historyOf(rows));
  return keyJudge;
}

const kinds = (...rows: HistoryRow[]): string[] => judge(...rows).findings.map((finding) => finding.kind);
const rules = (...rows: HistoryRow[]): string[] =>
  judge(...rows).findings.map((finding) => `${finding.kind}/${finding.rule}`);

type Extra = Partial<HistoryRow>;
const ok = (f: HistoryRow['f'], invokeNs: number, returnNs: number, extra: Extra = {}): HistoryRow => ({
  f,
  outcome: 'ok',
  invokeNs,
  returnNs,
  ...extra,
});
const info = (f: HistoryRow['f'], invokeNs: number, extra: Extra = {}): HistoryRow => ({
  f,
  outcome: 'info',
  invokeNs,
  returnNs: invokeNs + 5,
  ...extra,
});
const fail = (f: HistoryRow['f'], invokeNs: number, returnNs: number, extra: Extra = {}): HistoryRow => ({
  f,
  outcome: 'fail',
  invokeNs,
  returnNs,
  why: 1,
  ...extra,
});
const read = (invokeNs: number, returnNs: number, observed: number | null, extra: Extra = {}): HistoryRow =>
  ok('read', invokeNs, returnNs, { observed, ...extra });
const final = (invokeNs: number, observed: number | null, extra: Extra = {}): HistoryRow =>
  read(invokeNs, invokeNs + 1, observed, { source: 'final', ...extra });
const replica = (invokeNs: number, observed: number | null, extra: Extra = {}): HistoryRow =>
  read(invokeNs, invokeNs, observed, { source: 'replica', node: 1, ...extra });

describe('final values', () => {
  it('keeps an acknowledged write that is read back', () => {
    const result = judge(ok('write', 0, 10), final(100, 1));
    expect(result.findings).toEqual([]);
    expect(result.status[0]).toBe(writeStatus.kept);
  });

  it('calls an acknowledged write that is gone lost, once, with all that shows it', () => {
    const result = judge(ok('write', 0, 10), read(20, 30, 1), read(40, 50, null), final(100, null), replica(110, null));
    expect(result.findings.map((finding) => finding.kind)).toEqual(['lost']);
    expect(result.findings[0]?.subject).toBe(0);
    expect(result.status[0]).toBe(writeStatus.lost);
  });

  it('calls a write lost that an older one replaced', () => {
    expect(kinds(ok('write', 0, 10), ok('write', 20, 30), final(100, 1))).toEqual(['lost']);
  });

  it('allows either of two overlapping acknowledged writes', () => {
    expect(kinds(ok('write', 0, 20), ok('write', 10, 30), final(100, 1))).toEqual([]);
    expect(kinds(ok('write', 0, 20), ok('write', 10, 30), final(100, 2))).toEqual([]);
  });

  it('allows the value of an unknown write, at any later time', () => {
    expect(kinds(info('write', 0), ok('write', 50, 60), final(100, 1))).toEqual([]);
    expect(kinds(info('write', 0), final(100, null))).toEqual([]);
  });

  it('bounds an unknown write by the end of a read that saw it: superseded then, it may not come back', () => {
    expect(kinds(info('write', 0), read(10, 20, 1), ok('write', 30, 40), final(100, 3))).toEqual([]);
    expect(kinds(info('write', 0), read(10, 20, 1), ok('write', 30, 40), final(100, 1))).toEqual(['lost']);
    // The read ends after the later write was invoked: the unknown write may have come last.
    expect(kinds(info('write', 0), read(10, 35, 1), ok('write', 30, 40), final(100, 1))).toEqual([]);
  });

  it('calls an unknown write lost once it was seen and nothing else was written', () => {
    expect(kinds(info('write', 0), read(10, 20, 1), final(100, null))).toEqual(['lost']);
  });

  it('allows absence after an unknown delete, once', () => {
    expect(kinds(ok('write', 0, 10), info('delete', 20), final(100, null))).toEqual([]);
    expect(kinds(info('delete', 0), ok('write', 20, 30), final(100, null))).toEqual([]);
    expect(
      kinds(info('delete', 0), ok('write', 20, 30), read(40, 50, null), ok('write', 60, 70), final(100, null)),
    ).toEqual(['lost']);
    expect(
      kinds(
        info('delete', 0),
        info('delete', 5),
        ok('write', 20, 30),
        read(40, 50, null),
        ok('write', 60, 70),
        final(100, null),
      ),
    ).toEqual([]);
  });

  it('calls a deleted value that is back resurrected', () => {
    expect(kinds(ok('write', 0, 10), ok('delete', 20, 30), final(100, 1))).toEqual(['resurrected']);
    expect(kinds(ok('write', 0, 25), ok('delete', 20, 30), final(100, 1))).toEqual([]);
    expect(kinds(ok('write', 0, 10), info('delete', 20), read(30, 40, null), final(100, 1))).toEqual(['resurrected']);
  });

  it('calls values that nobody wrote phantom, and damaged ones corrupt', () => {
    expect(rules(fail('write', 0, 10), final(100, 1))).toEqual(['phantom/failed-write-read']);
    expect(rules(ok('write', 0, 10), final(100, 77))).toEqual(['phantom/unwritten-value']);
    expect(rules(ok('write', 0, 10), final(100, observedForeign))).toEqual(['phantom/unwritten-value']);
    expect(rules(ok('write', 0, 10), final(100, observedCorrupt))).toEqual(['corrupt/checksum']);
    expect(rules(read(0, 5, 2), ok('write', 10, 20))).toEqual(['phantom/read-before-write']);
    expect(rules(ok('write', 0, 10, { number: 7 }), final(100, 1, { number: 8 }))).toEqual(['corrupt/list-content']);
  });

  it('treats a failed write as if it had not been', () => {
    expect(kinds(ok('write', 0, 10), fail('write', 20, 30), fail('delete', 40, 50), final(100, 1))).toEqual([]);
  });
});

describe('evidence per write', () => {
  it('does not count a write that was replaced before anything looked', () => {
    const result = judge(ok('write', 0, 10), ok('write', 20, 30), final(100, 2));
    expect([...result.status.slice(0, 2)]).toEqual([writeStatus.superseded, writeStatus.kept]);
  });

  it('counts a write that a compare-and-set named', () => {
    const result = judge(
      ok('write', 0, 10, { version: [1, 1] }),
      ok('cas', 20, 30, { version: [1, 2], expected: [1, 1] }),
      final(100, 2, { version: [1, 2] }),
    );
    expect([...result.status.slice(0, 2)]).toEqual([writeStatus.kept, writeStatus.kept]);
  });

  it('says never-read where nobody looked', () => {
    expect(judge(ok('write', 0, 10)).status[0]).toBe(writeStatus.neverRead);
    expect(judge(ok('write', 0, 10), ok('write', 20, 30)).status[0]).toBe(writeStatus.superseded);
  });
});

describe('reads during the run', () => {
  it('finds stale and non-monotone reads', () => {
    expect(kinds(ok('write', 0, 10), ok('write', 20, 30), read(40, 50, 1), final(100, 2))).toEqual(['stale']);
    expect(kinds(ok('write', 0, 10), read(40, 50, null), final(100, 1))).toEqual(['stale']);
    expect(kinds(ok('write', 0, 10), info('write', 20), read(30, 40, 2), read(50, 60, 1), final(100, 2))).toEqual([
      'non-monotone',
    ]);
    expect(rules(info('write', 0), info('write', 1), read(30, 40, 1), read(50, 60, 2), read(70, 80, 1))).toEqual([
      'non-monotone/interval',
    ]);
  });

  it('allows a read that overlaps the write', () => {
    expect(kinds(ok('write', 0, 10), ok('write', 20, 40), read(30, 50, 1), final(100, 2))).toEqual([]);
  });
});

describe('versions as witness', () => {
  const v = (minor: number): Extra => ({ version: [1, minor] });

  it('calls one value under two versions duplicated', () => {
    expect(rules(ok('write', 0, 10, v(1)), read(20, 30, 1, v(1)), read(40, 50, 1, v(2)))).toEqual([
      'duplicated/two-versions',
    ]);
  });

  it('finds two effects under one version', () => {
    expect(rules(ok('write', 0, 10, v(1)), ok('write', 20, 30, v(1)))).toContain('not-linearizable/version-reused');
  });

  it('finds an order against real time, though another order would explain the values', () => {
    expect(rules(ok('write', 0, 10, v(2)), ok('write', 20, 30, v(1)))).toEqual(['not-linearizable/version-witness']);
    expect(rules(ok('write', 0, 10, v(5)), ok('write', 20, 30, v(4)), final(100, 2, v(4)))).toContain(
      'not-linearizable/version-witness',
    );
  });

  it('finds a read that goes back, which times alone allow', () => {
    const rows = [ok('write', 0, 30, v(1)), ok('write', 5, 60, v(2)), read(10, 20, 2, v(2)), read(40, 50, 1, v(1))];
    expect(rules(...rows)).toEqual(['non-monotone/version-witness']);
  });

  it('wants a compare-and-set right after the version that it expected', () => {
    const cas = (minor: number, expected: number): HistoryRow =>
      ok('cas', 40, 50, { version: [1, minor], expected: [1, expected] });
    expect(rules(ok('write', 0, 10, v(1)), cas(2, 1))).toEqual([]);
    expect(rules(ok('write', 0, 10, v(1)), ok('write', 20, 45, v(2)), cas(3, 1))).toEqual([
      'not-linearizable/cas-predecessor',
    ]);
    expect(rules(ok('write', 0, 10, v(1)), ok('delete', 20, 30, v(2)), cas(3, 2))).toEqual([
      'not-linearizable/cas-predecessor',
    ]);
    expect(rules(ok('write', 0, 10, v(1)), cas(9, 7))).toEqual(['not-linearizable/cas-predecessor']);
    // An unknown write may have had the version that it names.
    expect(rules(ok('write', 0, 10, v(1)), info('write', 15), cas(9, 7))).toEqual([]);
  });

  it('finds a condition refused although it held', () => {
    expect(rules(ok('write', 0, 10, v(1)), fail('cas', 20, 30, { why: 0, version: [1, 1], expected: [1, 1] }))).toEqual(
      ['not-linearizable/condition-refused'],
    );
  });

  it('takes a repeated delete for what it is: an absence seen', () => {
    expect(
      rules(ok('write', 0, 10, v(1)), ok('delete', 20, 30, v(2)), ok('delete', 40, 50, v(2)), final(100, null, v(2))),
    ).toEqual([]);
  });

  it('finds a read that shows a delete before it was invoked, and lets absences of one stretch say what they like', () => {
    // The read was over before the delete began, and yet it names the delete's version.
    expect(
      rules(
        read(-3, 13, null, v(3)),
        ok('write', 7, 14, v(2)),
        read(8, 28, 2, v(2)),
        ok('delete', 18, 36, v(3)),
        read(49, 52, null, v(3)),
      ),
    ).toEqual(['not-linearizable/version-witness']);
    // A new primary may have looked through less of its log than the one before.
    expect(
      rules(
        ok('write', 0, 10, v(2)),
        ok('delete', 20, 30, v(3)),
        read(40, 50, null, v(9)),
        read(60, 70, null, v(5)),
        fail('delete', 80, 90, { why: 0, ...v(4) }),
      ),
    ).toEqual([]);
  });

  it('finds an absence between two versions that nothing explains', () => {
    expect(
      rules(
        ok('write', 0, 10, v(1)),
        ok('cas', 5, 60, { version: [1, 2], expected: [1, 1] }),
        read(20, 30, null),
        read(40, 50, 1, v(1)),
      ),
    ).toContain('stale/interval');
    expect(rules(ok('write', 0, 50, v(1)), read(10, 20, 1, v(1)), read(30, 40, null), read(60, 70, 1, v(1)))).toContain(
      'stale/interval',
    );
  });
});

describe('exactly once', () => {
  it('lets one create win', () => {
    expect(kinds(ok('create', 0, 20), fail('create', 5, 30, { why: 0 }), final(100, 1))).toEqual([]);
    expect(kinds(ok('create', 0, 20), ok('create', 5, 30), final(100, 2))).toEqual(['duplicated']);
    expect(kinds(ok('create', 0, 10), ok('create', 20, 30), final(100, 2))).toContain('duplicated');
    expect(kinds(ok('create', 0, 10), ok('delete', 15, 18), ok('create', 20, 30), final(100, 3))).toEqual([]);
    expect(
      kinds(
        ok('create', 0, 10, { version: [1, 1] }),
        info('delete', 15),
        ok('create', 20, 30, { version: [1, 5] }),
        final(100, 3),
      ),
    ).toEqual([]);
  });

  it('keeps counters between what was acknowledged and what may have happened', () => {
    const add = (invokeNs: number, argument: number, extra: Extra = {}): HistoryRow =>
      ok('add', invokeNs, invokeNs + 5, { argument, ...extra });
    const sum = (invokeNs: number, number: number, extra: Extra = {}): HistoryRow =>
      ok('read', invokeNs, invokeNs + 1, { number, source: 'final', ...extra });
    expect(kinds(add(0, 3), add(10, 4), sum(100, 7))).toEqual([]);
    expect(kinds(add(0, 3), add(10, 4), sum(100, 3))).toEqual(['lost']);
    expect(kinds(add(0, 3), add(10, 4), sum(100, 11))).toEqual(['duplicated']);
    expect(kinds(add(0, 3), info('add', 10, { argument: 4 }), sum(100, 7))).toEqual([]);
    expect(kinds(add(0, 3), info('add', 10, { argument: 4 }), sum(100, 11))).toEqual(['duplicated']);
    // By version: the unknown 4 came and went again, which hides a lost 4.
    const versioned = [
      add(0, 3, { version: [1, 1], number: 3 }),
      info('add', 10, { argument: 4 }),
      add(20, 4, { version: [1, 3], number: 11 }),
      sum(100, 7, { version: [1, 3] }),
    ];
    expect(kinds(...versioned)).toEqual(['lost']);
  });
});

describe('time to live', () => {
  const put = ok('write', 0, 10 * ms, { argument: 100 });

  it('is early when nothing was there in a read that ended before invoke + ttl', () => {
    expect(rules(put, read(50 * ms, 60 * ms, null))).toEqual(['ttl/ttl-early']);
    expect(rules(put, read(50 * ms, 101 * ms, null))).toEqual([]);
    expect(rules(put, read(200 * ms, 201 * ms, null))).toEqual([]);
  });

  it('is late when the value was there in a read begun after return + ttl + bound', () => {
    expect(rules(put, read(1_109 * ms, 1_120 * ms, 1))).toEqual([]);
    expect(rules(put, read(1_111 * ms, 1_120 * ms, 1))).toEqual(['ttl/ttl-late']);
  });

  it('does not bring an expired value back', () => {
    expect(kinds(put, read(105 * ms, 106 * ms, null), read(120 * ms, 130 * ms, 1))).toEqual(['resurrected']);
  });
});

describe('replicas', () => {
  it('are judged once they have applied what was committed', () => {
    expect(kinds(ok('write', 0, 10), ok('write', 20, 30), final(100, 2), replica(110, 2))).toEqual([]);
    expect(kinds(ok('write', 0, 10), ok('write', 20, 30), final(100, 2), replica(110, 1))).toEqual(['diverged']);
    expect(kinds(ok('write', 0, 10), ok('write', 20, 30), final(100, 2), replica(110, 1, { behind: true }))).toEqual(
      [],
    );
    expect(kinds(ok('write', 0, 10), final(100, 1), replica(110, null))).toEqual(['diverged']);
    expect(kinds(ok('write', 0, 10), ok('delete', 20, 30), final(100, null), replica(110, 1))).toEqual(['resurrected']);
  });

  it('diverge also by version alone', () => {
    const rows = [ok('write', 0, 10, { version: [1, 1] }), final(100, 1, { version: [1, 1] })];
    expect(kinds(...rows, replica(110, 1, { version: [1, 1] }))).toEqual([]);
    expect(kinds(...rows, replica(110, 1, { version: [1, 2] }))).toEqual(['diverged']);
  });

  it('stand in for a read-back that failed, when all of them lack the write', () => {
    expect(kinds(ok('write', 0, 10), replica(110, null), replica(111, null, { node: 2 }))).toContain('lost');
    expect(kinds(ok('write', 0, 10), replica(110, null), replica(111, 1, { node: 2 }))).toEqual(['diverged']);
  });
});
