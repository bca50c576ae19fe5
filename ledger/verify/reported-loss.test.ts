/** Losses past the fault budget: which of them a contract may permit, and what is still missing evidence then. */
import { describe, expect, it } from 'vitest';
import type { EpochChangeRow, FaultRow, FaultStage } from '../rows.ts';
import { defaultJudgeOptions, type Judgement, type JudgeOptions, judgeRun } from './judge.ts';
import { type MemoryKey, type MemoryRun, MemorySource } from './memory-source.ts';

const second = 1e9;

function fault(stages: Partial<Record<FaultStage, number>>, overshoot: readonly number[] | null): FaultRow[] {
  const rows = Object.entries(stages).map(([stage, atNs]): FaultRow => ({
    faultId: 'F1',
    kind: 'kill',
    stage: stage as FaultStage,
    atNs,
    wallMs: 0,
    targets: ['n1', 'n2'],
    partitions: [],
    evidence: null,
  }));
  if (overshoot === null) return rows;
  return [
    ...rows,
    {
      faultId: 'F1',
      kind: 'kill',
      stage: 'overshoot',
      atNs: 21 * second,
      wallMs: 0,
      targets: ['n1', 'n2'],
      partitions: overshoot,
      evidence: null,
    },
  ];
}

const stages = {
  planned: 0,
  injected: 20 * second,
  confirmed: 20.5 * second,
  healed: 25 * second,
  'heal-verified': 25.5 * second,
};
const lostAt = (atNs: number, partition = 4): EpochChangeRow => ({
  partition,
  epoch: 9,
  term: 3,
  node: null,
  incarnation: 1,
  kind: 'edge',
  health: 'Lost',
  atNs,
});

/** Written at `atNs` in partition 4, seen gone at `missedNs`. */
const gone = (name: string, operationId: number, atNs: number, missedNs: number): MemoryKey => ({
  name,
  rows: [
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
      operationId: operationId + 100,
      invokeNs: missedNs,
      returnNs: missedNs + 10,
      observed: null,
      partition: 4,
      epoch: 9,
      node: 2,
    },
    {
      f: 'read',
      outcome: 'ok',
      source: 'final',
      invokeNs: 90 * second,
      returnNs: 90 * second + 1,
      observed: null,
      partition: 4,
    },
  ],
});

const run = (changes: Partial<MemoryRun> = {}): MemoryRun => ({
  keys: [gone('a', 1, 10 * second, 30 * second)],
  faults: fault(stages, [4]),
  epochChanges: [lostAt(26 * second)],
  ...changes,
});

const judged = (given: MemoryRun, changes: Partial<JudgeOptions> = {}): Judgement =>
  judgeRun(new MemorySource(given), {
    ...defaultJudgeOptions,
    minAckedInFaultWindows: 0,
    mayExceedBudget: true,
    mayLosePartitions: true,
    ...changes,
  });
const reported = (given: MemoryRun): number => judged(given).counts.reportedLosses.get('lost') ?? 0;

describe('a loss past the budget', () => {
  it('is a loss, and known to be one that the store reported', () => {
    const judgement = judged(run());
    expect(judgement).toMatchObject({ verdict: 'violated', exitCode: 1 });
    expect(judgement.totals.get('lost')).toBe(1);
    expect(reported(run())).toBe(1);
  });

  it('is not explained by half of the reasons', () => {
    // Every holder was taken, and the store says nothing.
    expect(reported(run({ epochChanges: [] }))).toBe(0);
    // The store says Lost, and nobody took all of its copies.
    expect(reported(run({ faults: fault(stages, null) }))).toBe(0);
    expect(reported(run({ faults: fault(stages, [5]) }))).toBe(0);
    expect(reported(run({ epochChanges: [lostAt(26 * second, 5)] }))).toBe(0);
    // It was taken in a plan that never came.
    expect(reported(run({ faults: fault({ planned: 0 }, [4]) }))).toBe(0);
    // Gone before anything was taken; and written after it.
    expect(reported(run({ keys: [gone('a', 1, 10 * second, 12 * second)] }))).toBe(0);
    expect(reported(run({ keys: [gone('a', 1, 40 * second, 50 * second)] }))).toBe(0);
  });

  it('counts only what it explains', () => {
    const keys = [gone('a', 1, 10 * second, 30 * second), gone('b', 2, 40 * second, 50 * second)];
    const judgement = judged(run({ keys }));
    expect(judgement.totals.get('lost')).toBe(2);
    expect(judgement.counts.reportedLosses.get('lost')).toBe(1);
  });
});

describe('what is missing where a partition is Lost', () => {
  const gates = (changes: Partial<JudgeOptions>): readonly string[] =>
    judged(run(), changes).missingEvidence.map((one) => one.gate);

  it('going past the budget is a doubt unless it was asked for', () => {
    expect(gates({})).toEqual([]);
    expect(gates({ mayExceedBudget: false })).toEqual(['fault-budget-exceeded']);
  });

  it('there is no replica to ask, and no health to come back to, where the contract permits it', () => {
    expect(gates({ replicasPerKey: 3 })).toEqual([]);
    expect(judged(run()).notRecovered).toEqual([]);
    expect(judged(run(), { mayLosePartitions: false }).notRecovered).toEqual(['Partition 4 is Lost at the end.']);
    expect(judged(run({ faults: fault(stages, null) })).notRecovered).toEqual(['Partition 4 is Lost at the end.']);
    const back = [lostAt(26 * second), { ...lostAt(70 * second), epoch: 10, health: 'Healthy' }];
    expect(judged(run({ epochChanges: back }), { replicasPerKey: 3 }).missingEvidence.map((one) => one.gate)).toEqual([
      'replicas-not-asked',
    ]);
  });
});
