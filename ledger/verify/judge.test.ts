/** Verdicts of whole runs: precedence, evidence gates, denominator, fencing, recovery, canaries. */
import { describe, expect, it } from 'vitest';
import type { EpochChangeRow, FaultRow, FaultStage } from '../rows.ts';
import type { HistoryRow } from './history.ts';
import { defaultJudgeOptions, type JudgeOptions, judgeRun } from './judge.ts';
import { type MemoryKey, type MemoryRun, MemorySource } from './memory-source.ts';

const options: JudgeOptions = { ...defaultJudgeOptions, minAckedInFaultWindows: 1 };
const gatesOf = (run: MemoryRun, changes: Partial<JudgeOptions> = {}): string[] =>
  judgeRun(new MemorySource(run), { ...options, ...changes }).missingEvidence.map((one) => one.gate);

function fault(faultId: string, stages: Partial<Record<FaultStage, number>>, kind = 'kill'): FaultRow[] {
  return Object.entries(stages).map(([stage, atNs]) => ({
    faultId,
    kind,
    stage: stage as FaultStage,
    atNs,
    wallMs: 0,
    targets: ['n1'],
    evidence: null,
  }));
}

const epoch = (atNs: number, number: number, term: number, changes: Partial<EpochChangeRow> = {}): EpochChangeRow => ({
  partition: 4,
  epoch: number,
  term,
  node: 'n2',
  incarnation: 1,
  kind: 'edge',
  health: 'Healthy',
  atNs,
  ...changes,
});

/** A key of partition 4, written at `atNs`, read back at the end. */
function key(name: string, operationId: number, atNs: number, observed: number | null = operationId): MemoryKey {
  const rows: HistoryRow[] = [
    {
      f: 'write',
      outcome: 'ok',
      operationId,
      invokeNs: atNs,
      returnNs: atNs + 10,
      version: [3, operationId],
      partition: 4,
      epoch: 3,
      node: 1,
    },
    {
      f: 'read',
      outcome: 'ok',
      source: 'final',
      invokeNs: 10_000,
      returnNs: 10_001,
      observed,
      ...(observed === null ? {} : { version: [3, operationId] as const }),
      partition: 4,
      epoch: 5,
      node: 2,
    },
  ];
  return { name, rows };
}

const complete = fault('F1', { planned: 0, injected: 1_000, confirmed: 1_010, healed: 2_000, 'heal-verified': 2_010 });
const failover = [epoch(1_200, 4, 4, { kind: 'failover', health: 'Degraded' }), epoch(2_500, 5, 4)];
const good: MemoryRun = {
  keys: [key('a', 1, 500), key('b', 2, 1_500), key('c', 3, 3_000)],
  faults: complete,
  epochChanges: failover,
};

describe('a run', () => {
  it('is certified when nothing is wrong and nothing is missing', () => {
    const judgement = judgeRun(new MemorySource(good), options);
    expect(judgement).toMatchObject({ verdict: 'certified', exitCode: 0, missingEvidence: [], findings: [] });
    // a was acknowledged before the failover and read after it; b and c after it.
    expect(judgement.strength).toMatchObject({
      judged: 3,
      exposed: 1,
      failovers: 1,
      incidents: 1,
      perFailoverBound95: 1,
    });
    expect(judgement.counts.ackedInFaultWindows).toBe(1);
    expect(judgement.recovery).toEqual([
      { faultId: 'F1', kind: 'kill', partition: 4, firstAckNs: 510, healthyNs: 1_500 },
    ]);
    expect(judgement.canary).toMatchObject({ outcome: 'caught' });
  });

  it('is violated by one loss, whatever else is missing', () => {
    const run = {
      ...good,
      keys: [...good.keys, key('d', 4, 900, null)],
      gaps: [{ fromNs: 1, toNs: 2, reason: 'test' }],
    };
    const judgement = judgeRun(new MemorySource(run), options);
    expect(judgement).toMatchObject({ verdict: 'violated', exitCode: 1 });
    expect(judgement.findings).toMatchObject([{ kind: 'lost', key: 'd', operation: { epoch: 3, node: 'n1' } }]);
    expect(judgement.strength).toMatchObject({ judged: 4, exposed: 2 });
  });

  it('leaves superseded writes out of the denominator', () => {
    const rows: HistoryRow[] = [
      { f: 'write', outcome: 'ok', operationId: 1, invokeNs: 100, returnNs: 110, partition: 4 },
      { f: 'write', outcome: 'ok', operationId: 2, invokeNs: 200, returnNs: 210, partition: 4 },
      { f: 'read', outcome: 'ok', source: 'final', invokeNs: 9_000, returnNs: 9_001, observed: 2, partition: 4 },
    ];
    const { strength } = judgeRun(new MemorySource({ ...good, keys: [{ name: 'r', rows }] }), options);
    expect(strength).toMatchObject({ judged: 1, exposed: 1, superseded: 1 });
  });

  it('has no strength without failovers, handoffs do not count', () => {
    const { strength } = judgeRun(
      new MemorySource({ ...good, epochChanges: [epoch(1_200, 4, 4, { kind: 'handoff' })] }),
      options,
    );
    expect(strength).toMatchObject({
      exposed: 0,
      failovers: 0,
      handoffs: 1,
      perFailoverBound95: null,
      perWriteBound95: null,
    });
  });
});

describe('missing evidence', () => {
  it('names what was not looked at', () => {
    expect(gatesOf({ ...good, keys: [] })).toEqual(['no-acknowledged-writes', 'few-writes-in-fault-windows']);
    expect(gatesOf({ ...good, keys: [key('a', 1, 500)] })).toEqual(['few-writes-in-fault-windows']);
    expect(gatesOf({ ...good, gaps: [{ fromNs: 5, toNs: 9, reason: 'the harness was not running' }] })).toEqual([
      'gap',
    ]);
    expect(gatesOf({ ...good, meta: { stopped: 'the disk was nearly full' } })).toEqual(['stopped-early']);
    expect(gatesOf(good, { replicasPerKey: 3 })).toEqual(['replicas-not-asked']);
    const unread = { name: 'u', rows: key('u', 9, 600).rows.slice(0, 1) };
    expect(gatesOf({ ...good, keys: [...good.keys, unread] })).toEqual(['not-read-back']);
    const silent: HistoryRow = { f: 'read', outcome: 'info', source: 'replica', invokeNs: 10_100, returnNs: 0 };
    expect(gatesOf({ ...good, keys: [...good.keys, { name: 's', rows: [...key('s', 9, 600).rows, silent] }] })).toEqual(
      ['replica-silent'],
    );
  });

  it('wants faults confirmed, within budget, and verified as healed', () => {
    expect(gatesOf({ ...good, faults: [...complete, ...fault('F2', { planned: 0, injected: 50 }, 'pause')] })).toEqual([
      'fault-kind-unconfirmed',
      'heal-unverified',
    ]);
    expect(gatesOf({ ...good, faults: [...complete, ...fault('F2', { planned: 0, skipped: 50 }, 'latency')] })).toEqual(
      ['fault-kind-unconfirmed'],
    );
    expect(gatesOf({ ...good, faults: [...complete, ...fault('F1', { overshoot: 1_005 })] })).toEqual([
      'fault-budget-exceeded',
    ]);
  });

  it('counts a key without versions as undecided when nobody may search', () => {
    const rows: HistoryRow[] = [
      { f: 'write', outcome: 'ok', operationId: 11, invokeNs: 100, returnNs: 1_110, partition: 4 },
      { f: 'write', outcome: 'ok', operationId: 12, invokeNs: 200, returnNs: 210, partition: 4 },
      { f: 'read', outcome: 'ok', source: 'final', invokeNs: 9_000, returnNs: 9_001, observed: 12, partition: 4 },
    ];
    const run = { ...good, keys: [...good.keys, { name: 'plain', rows }] };
    expect(gatesOf(run)).toEqual(['undecided']);
    const searched = judgeRun(new MemorySource(run), {
      ...options,
      searchBudget: () => ({ nowMs: () => 0, deadlineMs: 1, memoBytes: 1 << 20 }),
    });
    expect(searched).toMatchObject({ verdict: 'certified' });
    expect(searched.counts.searchedKeys).toBe(1);
  });

  it('lets the search find what single reads do not show', () => {
    const rows: HistoryRow[] = [
      { f: 'create', outcome: 'ok', operationId: 1, invokeNs: 1_100, returnNs: 1_110, partition: 4 },
      { f: 'delete', outcome: 'ok', operationId: 2, invokeNs: 1_200, returnNs: 1_300, partition: 4 },
      { f: 'create', outcome: 'ok', operationId: 3, invokeNs: 1_205, returnNs: 1_210, partition: 4 },
      { f: 'read', outcome: 'ok', operationId: 4, invokeNs: 1_211, returnNs: 1_212, observed: null, partition: 4 },
    ];
    const judgement = judgeRun(new MemorySource({ ...good, keys: [{ name: 'plain', rows }] }), {
      ...options,
      searchBudget: () => ({ nowMs: () => 0, deadlineMs: 1, memoBytes: 1 << 20 }),
    });
    expect(judgement.findings).toMatchObject([{ kind: 'not-linearizable', rule: 'search', key: 'plain' }]);
  });
});

describe('a cluster that did not come back', () => {
  it('is not-recovered, with or without missing evidence', () => {
    const down = { ...good, epochChanges: [...failover, epoch(4_000, 6, 4, { health: 'Unavailable' })] };
    expect(judgeRun(new MemorySource(down), options)).toMatchObject({ verdict: 'not-recovered', exitCode: 2 });
    expect(judgeRun(new MemorySource(good), { ...options, recoveryBoundNs: 100 })).toMatchObject({
      verdict: 'not-recovered',
    });
    const unread: HistoryRow = {
      f: 'read',
      outcome: 'info',
      source: 'final',
      invokeNs: 10_000,
      returnNs: 0,
      partition: 4,
    };
    const silent = { ...good, keys: good.keys.map((one) => ({ ...one, rows: [one.rows[0] as HistoryRow, unread] })) };
    expect(judgeRun(new MemorySource(silent), options)).toMatchObject({ verdict: 'not-recovered' });
  });
});

describe('the cluster', () => {
  const rulesOf = (run: MemoryRun, changes: Partial<JudgeOptions> = {}): string[] =>
    judgeRun(new MemorySource(run), { ...options, ...changes }).findings.map((finding) => finding.rule);

  it('has one primary per term, and epochs that never go back', () => {
    expect(rulesOf({ ...good, epochChanges: [...failover, epoch(2_600, 6, 4, { node: 'n3' })] })).toEqual([
      'two-primaries',
    ]);
    expect(rulesOf({ ...good, epochChanges: [...failover, epoch(2_600, 6, 4, { incarnation: 2 })] })).toEqual([
      'two-primaries',
    ]);
    expect(rulesOf({ ...good, epochChanges: [...failover, epoch(2_600, 6, 3)] })).toEqual(['epoch-went-back']);
    expect(rulesOf({ ...good, epochChanges: [...failover, epoch(2_600, 5, 5, { node: 'n3' })] })).toEqual([
      'epoch-went-back',
    ]);
    // One edge heard of twice, or out of order, is none.
    expect(rulesOf({ ...good, epochChanges: [failover[1] as EpochChangeRow, ...failover] })).toEqual([]);
  });

  it('acknowledges under one epoch through one node', () => {
    const [write, ...rest] = key('d', 4, 900).rows as [HistoryRow, HistoryRow];
    expect(rulesOf({ ...good, keys: [...good.keys, { name: 'd', rows: [{ ...write, node: 3 }, ...rest] }] })).toEqual([
      'two-primaries',
    ]);
  });

  it('has equal digests at equal positions', () => {
    const digest = (node: string, appliedSeq: number, text: string) => ({
      partition: 4,
      node,
      incarnation: 1,
      role: 'replica',
      atNs: 1,
      appliedTerm: 4,
      appliedSeq,
      digest: text,
      keyCount: 1,
    });
    expect(rulesOf({ ...good, digests: [digest('n1', 9, 'x'), digest('n2', 9, 'x'), digest('n3', 8, 'y')] })).toEqual(
      [],
    );
    expect(rulesOf({ ...good, digests: [digest('n1', 9, 'x'), digest('n2', 9, 'y')] })).toEqual(['digest']);
  });

  it('keeps the promises of its client', () => {
    const promises = { maxAttempts: 3, deadlineNs: 60e9 };
    expect(rulesOf({ ...good, extremes: { attempts: 3, durationNs: 61e9 } }, { promises })).toEqual([]);
    expect(rulesOf({ ...good, extremes: { attempts: 4, durationNs: 63e9 } }, { promises })).toEqual([
      'attempts',
      'deadline',
    ]);
    // A machine without time to spare is late with every timer, and that was measured.
    const late = { ...promises, latenessNs: 1.5e9 };
    expect(rulesOf({ ...good, extremes: { attempts: 3, durationNs: 63e9 } }, { promises: late })).toEqual([]);
    expect(rulesOf({ ...good, extremes: { attempts: 3, durationNs: 64e9 } }, { promises: late })).toEqual(['deadline']);
  });

  it('is back with the first Healthy after the last heal, and must be so at the end', () => {
    const recoveryBoundNs = 1e9;
    const healed = fault('f', { injected: 100, confirmed: 200, healed: 300, 'heal-verified': 400 });
    const notRecovered = (...changes: EpochChangeRow[]): readonly string[] =>
      judgeRun(new MemorySource({ ...good, faults: healed, epochChanges: changes }), { ...options, recoveryBoundNs })
        .notRecovered;
    const down = epoch(200, 4, 4, { health: 'Degraded' });
    const dip = epoch(5e9, 6, 4, { health: 'Degraded' });
    expect(notRecovered(down, epoch(400, 5, 4))).toEqual([]);
    expect(notRecovered(down, epoch(400, 5, 4), dip, epoch(6e9, 7, 4))).toEqual([]);
    expect(notRecovered(epoch(50, 3, 3), dip, epoch(6e9, 7, 4))).toEqual([]);
    expect(notRecovered(down, epoch(2e9, 5, 4))).toEqual([expect.stringContaining('took 2000 ms')]);
    expect(notRecovered(down, epoch(400, 5, 4), dip)).toEqual(['Partition 4 is Degraded at the end.']);
  });
});

describe('canaries', () => {
  const planted = (observed: number | null): MemoryKey => ({ ...key('canary', 50, 600, observed), canary: true });
  const meta = { canary: [{ key: 'canary', kind: 'lost' }] };

  it('are reported apart and counted nowhere', () => {
    const judgement = judgeRun(new MemorySource({ ...good, keys: [...good.keys, planted(null)], meta }), options);
    expect(judgement).toMatchObject({ verdict: 'certified', canary: { outcome: 'caught' } });
    expect(judgement.counts).toMatchObject({ keys: 3, canaryKeys: 1, acknowledgedWrites: 3, lost: 0 });
  });

  it('are missed when they go unreported, or when something else is', () => {
    expect(
      judgeRun(new MemorySource({ ...good, keys: [...good.keys, planted(50)], meta }), options).canary.outcome,
    ).toBe('missed');
    expect(judgeRun(new MemorySource({ ...good, keys: [...good.keys, planted(null)] }), options).canary.outcome).toBe(
      'missed',
    );
  });
});
