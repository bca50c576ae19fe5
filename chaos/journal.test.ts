import { describe, expect, it } from 'vitest';
import { advanceLife, type FaultLife, type FaultRecord, type FaultStep, isConfirmed, isOpen } from './journal.ts';
import { storiesOf, summarize } from './summary.ts';

const steps = (...list: FaultStep[]): FaultRecord[] =>
  list.map((step, index) => ({ faultId: 'e1', atMs: index * 100, ...step }));
const planned: FaultStep = {
  step: 'planned',
  fault: { kind: 'kill' },
  target: { kind: 'random', count: 1 },
  due: 'at 1 s',
};
const injecting: FaultStep = {
  step: 'injecting',
  fault: { kind: 'kill' },
  nodeIds: ['n1'],
  partition: 3,
  cuts: [],
  surroundings: { openFaults: [], unhealthyPartitions: 0, epoch: 4, roles: ['primary of 3'] },
};
const injected: FaultStep = { step: 'injected', evidence: 'n1 killed' };
const confirmed: FaultStep = { step: 'confirmed', evidence: 'n1 exited' };
const unconfirmed: FaultStep = { step: 'unconfirmed', evidence: 'n1 is running' };
const healing: FaultStep = { step: 'healing', why: 'its time is over' };
const healed: FaultStep = { step: 'healed', evidence: 'n1 started' };
const verified: FaultStep = { step: 'heal-verified', evidence: 'n1 answers' };
const fold = (records: readonly FaultRecord[]): FaultLife => records.reduce<FaultLife | null>(advanceLife, null)!;

describe('the life of a fault', () => {
  it('is confirmed only by a confirmation', () => {
    expect(isConfirmed(fold(steps(planned, injecting, injected, confirmed, healing, healed, verified)))).toBe(true);
    expect(isConfirmed(fold(steps(planned, injecting, injected, unconfirmed, healing, healed, verified)))).toBe(false);
    expect(isConfirmed(fold(steps(planned, injecting, injected)))).toBe(false);
  });

  it('is open from its announcement to its heal: what a dead harness must undo', () => {
    expect(isOpen(fold(steps(planned)))).toBe(false);
    expect(isOpen(fold(steps(planned, injecting)))).toBe(true);
    expect(isOpen(fold(steps(planned, injecting, injected, confirmed, healing)))).toBe(true);
    expect(isOpen(fold(steps(planned, injecting, injected, confirmed, healing, healed)))).toBe(false);
  });

  it('cannot jump', () => {
    expect(() => fold(steps(planned, confirmed))).toThrow('confirmed cannot follow planned');
    expect(() => fold(steps(planned, injecting, confirmed))).toThrow('confirmed cannot follow injecting');
    expect(() => fold(steps(planned, injecting, injected, verified))).toThrow('heal-verified cannot follow injected');
    expect(() => fold(steps(planned, { step: 'skipped', reason: 'x' }, injecting))).toThrow(
      'injecting cannot follow skipped',
    );
    expect(() => fold(steps(injecting))).toThrow('injecting cannot follow nothing');
  });
});

describe('the summary', () => {
  const story = (faultId: string, at: number, ...list: FaultStep[]): FaultRecord[] =>
    list.map((step, index) => ({ faultId, atMs: at + index * 100, ...step }));

  it('counts confirmed faults, never plans', () => {
    const summary = summarize(
      storiesOf([
        ...story('a', 0, planned, injecting, injected, confirmed, healing, healed, verified),
        ...story('b', 5_000, planned, injecting, injected, unconfirmed, healing, healed, verified),
        ...story('c', 9_000, planned, { step: 'skipped', reason: 'no status' }),
        ...story('d', 9_000, { ...planned, fault: { kind: 'pause' } }),
      ]),
    );
    expect(summary).toMatchObject({
      planned: 4,
      injected: 2,
      confirmed: 1,
      unconfirmed: 1,
      skipped: 1,
      healVerified: 1,
      overlapShare: 0,
    });
    expect(summary.neverConfirmed).toEqual(['pause']);
    expect(summary.matrix).toEqual([
      { fault: 'kill', role: 'random', planned: 3, confirmed: 1, skipped: 1, healVerified: 1 },
      { fault: 'pause', role: 'random', planned: 1, confirmed: 0, skipped: 0, healVerified: 0 },
    ]);
    expect([...summary.skipReasons]).toEqual([['no status', 1]]);
  });

  it('overlap: windows that meet, or a partition not Healthy', () => {
    const hurt: FaultStep = {
      ...injecting,
      surroundings: { ...injecting.surroundings, unhealthyPartitions: 2 },
    };
    const summary = summarize(
      storiesOf([
        ...story('a', 0, planned, injecting, injected, confirmed, healing, healed, verified),
        ...story('b', 150, planned, injecting, injected, confirmed, healing, healed, verified),
        ...story('c', 5_000, planned, injecting, injected, confirmed, healing, healed, verified),
        ...story('d', 9_000, planned, hurt, injected, confirmed, healing, healed, verified),
      ]),
    );
    expect(summary.overlapShare).toBe(0.75);
  });

  it('a change counts under what it became', () => {
    const change: FaultStep = {
      step: 'changed',
      from: 'kill n1',
      to: 'pause n1',
      fault: { kind: 'pause' },
      why: 'the last copy',
    };
    const paused = { ...injecting, fault: { kind: 'pause' } } as FaultStep;
    const summary = summarize(
      storiesOf(story('a', 0, planned, change, paused, injected, confirmed, healing, healed, verified)),
    );
    expect(summary.changed).toBe(1);
    expect(summary.neverConfirmed).toEqual(['kill']);
    expect(summary.matrix.find((cell) => cell.fault === 'pause')).toMatchObject({ planned: 0, confirmed: 1 });
  });
});
