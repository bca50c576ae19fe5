import { describe, expect, it } from 'vitest';
import { Prng } from '../../lib/prng.ts';
import { type FindingDraft, groupFindings } from './group-findings.ts';
import type { EpochChange, Fault } from './model-timeline.ts';
import { makeFindings } from './testing/synthetic-findings.ts';
import { syntheticReport } from './testing/synthetic.ts';

const base = syntheticReport('violated');
const kill = (id: string, target: string, injectedMs: number): Fault => ({
  ...(base.faults[0] as Fault),
  id,
  kind: 'kill',
  targets: [target],
  partition: null,
  outcome: 'confirmed',
  stages: {
    plannedMs: injectedMs,
    injectedMs,
    confirmedMs: injectedMs + 50,
    healedMs: injectedMs + 5_000,
    healVerifiedMs: injectedMs + 5_100,
  },
});
const lost = (fault: Fault, count: number): FindingDraft[] =>
  makeFindings(new Prng(1), [{ kind: 'lost', count, fault, spreadMs: 340, prefix: fault.id }]);

describe('groupFindings', () => {
  it('names the fault that hit the acknowledging node, with the longest distance of the group', () => {
    const near = kill('F2', 'n2', 60_000);
    const elsewhere = kill('F1', 'n5', 59_990);
    const { groups, items } = groupFindings(lost(near, 37), { faults: [elsewhere, near], epochs: [] });
    expect(groups).toHaveLength(1);
    expect(groups[0]?.sentence).toMatch(
      /^37 of 37 lost writes were acknowledged ≤ \d+ ms before the kill of n2 \(fault F2\)$/,
    );
    const of400 = groupFindings(lost(near, 37), { faults: [near], epochs: [], found: new Map([['lost', 400]]) });
    expect(of400.groups[0]?.sentence).toMatch(/^37 of 37 looked at, of 400 lost writes were acknowledged ≤ /);
    const longest = Math.max(...items.map((item) => 60_000 - (item.operation.acknowledgedAtMs ?? 0)));
    expect(groups[0]?.sentence).toContain(`≤ ${longest} ms`);
    expect(groups[0]?.faultId).toBe('F2');
  });

  it('does not blame a fault that began after the write was already missed, or that had healed before', () => {
    const [finding] = lost(kill('F2', 'n2', 60_000), 1) as [FindingDraft];
    const missedAt = finding.firstMissed?.atMs ?? 0;
    const { groups } = groupFindings([finding], {
      faults: [kill('F8', 'n2', 40_000), kill('F9', 'n2', missedAt + 1)],
      epochs: [],
    });
    expect(groups[0]?.faultId).toBeNull();
    expect(groups[0]?.sentence).toContain('with no fault open, and neither fault nor failover');
  });

  it('blames no fault that was over when a read still saw the write', () => {
    const [draft] = lost(kill('F2', 'n2', 60_000), 1) as [FindingDraft];
    const seen = { atMs: 70_000, operationId: 9, session: 1, value: 'v', version: '1.1', node: 'n2', epoch: 4 };
    const finding: FindingDraft = { ...draft, lastSeen: seen, firstMissed: { ...seen, atMs: 80_000, value: null } };
    const { groups } = groupFindings([finding], {
      faults: [kill('F2', 'n2', 60_000), kill('F3', 'n2', 75_000)],
      epochs: [],
    });
    expect(groups[0]?.faultId).toBe('F3');
    expect(groups[0]?.sentence).toContain('before the kill of n2 (fault F3)');
  });

  it('names no cause for a sum, which tells that an addition is missing but not which', () => {
    const fault = kill('F2', 'n2', 60_000);
    const sums = lost(fault, 3).map((draft): FindingDraft => ({
      ...draft,
      operation: { ...draft.operation, f: 'add' },
    }));
    const { groups } = groupFindings([...sums, ...lost(fault, 1)], { faults: [fault], epochs: [] });
    expect(groups.map((group) => [group.count, group.faultId])).toEqual([
      [1, 'F2'],
      [3, null],
    ]);
    expect(groups[1]?.sentence).toContain('3 of 4 lost writes were found by a sum that came out too low');
  });

  it('says what it names: of a phantom and of a stale read mostly the write, not the read that shows it', () => {
    const fault = kill('F2', 'n2', 60_000);
    const [draft] = lost(fault, 1) as [FindingDraft];
    const told = (kind: FindingDraft['kind'], f: string): string | undefined =>
      groupFindings([{ ...draft, kind, operation: { ...draft.operation, f } }], { faults: [fault], epochs: [] })
        .groups[0]?.sentence;
    expect(told('phantom', 'write')).toMatch(/^The phantom value was written \d+ ms before the kill of n2/);
    expect(told('phantom', 'read')).toMatch(/^The phantom value was read \d+ ms before/);
    expect(told('stale', 'write')).toMatch(/^The stale read missed a write acknowledged \d+ ms before/);
    expect(told('stale', 'read')).toMatch(/^The stale read was answered \d+ ms before/);
    expect(told('ttl', 'write')).toMatch(/^The wrong expiry hit a value acknowledged \d+ ms before/);
  });

  it('blames for a phantom nothing that began long after its write was said to have failed', () => {
    const fault = kill('F2', 'n2', 60_000);
    const [draft] = lost(fault, 1) as [FindingDraft];
    const phantom = (invokedAtMs: number): FindingDraft => ({
      ...draft,
      kind: 'phantom',
      lastSeen: null,
      firstMissed: null,
      operation: { ...draft.operation, invokedAtMs, acknowledgedAtMs: null },
    });
    const causeOf = (finding: FindingDraft): string | null | undefined =>
      groupFindings([finding], { faults: [fault], epochs: [] }).groups[0]?.faultId;
    expect(causeOf(phantom(50_000))).toBeNull();
    expect(causeOf(phantom(58_000))).toBe('F2');
    expect(causeOf(phantom(62_000))).toBe('F2');
  });

  it('tells wrong answers that follow from a lost write on the same key from those with a cause of their own', () => {
    const fault = kill('F2', 'n2', 60_000);
    const [first] = lost(fault, 1) as [FindingDraft];
    const at = (key: string, shiftMs: number): FindingDraft => ({
      ...first,
      kind: 'not-linearizable',
      key,
      operation: { ...first.operation, acknowledgedAtMs: (first.operation.acknowledgedAtMs ?? 0) + shiftMs },
    });
    const drafts = [first, at(first.key, 5), at('other', 5), at(first.key, -5)];
    const { groups } = groupFindings(drafts, { faults: [fault], epochs: [] });
    expect(groups.map((group) => [group.kind, group.count, group.faultId])).toEqual([
      ['lost', 1, 'F2'],
      ['not-linearizable', 2, 'F2'],
      ['not-linearizable', 1, null],
    ]);
    expect(groups[0]?.sentence).toMatch(/^The lost write was acknowledged \d+ ms before the kill of n2 \(fault F2\)$/);
    expect(groups[2]?.sentence).toContain('was given after the key had lost a write');
  });

  it('gives no cause and no time to a finding about whole copies', () => {
    const fault = kill('F2', 'n2', 5_000);
    const [draft] = lost(fault, 1) as [FindingDraft];
    const operation = { ...draft.operation, f: 'none', invokedAtMs: 0, acknowledgedAtMs: null };
    const bare: FindingDraft = { ...draft, kind: 'diverged', key: '', operation, lastSeen: null, firstMissed: null };
    const { groups } = groupFindings([bare, bare], { faults: [fault], epochs: [] });
    expect(groups[0]?.sentence).toBe(
      '2 of 2 diverged copies were found by comparing what the nodes say, with no single operation to name',
    );
    expect([groups[0]?.firstAtMs, groups[0]?.lastAtMs, groups[0]?.faultId]).toEqual([null, null, null]);
  });

  it('falls back to the next failover of the partition', () => {
    const [finding] = lost(kill('F2', 'n2', 60_000), 1) as [FindingDraft];
    const change: EpochChange = {
      atMs: 60_400,
      partition: finding.partition ?? 0,
      epoch: 9,
      term: 9,
      owner: 'n4',
      health: 'Degraded',
      kind: 'failover',
    };
    const { groups } = groupFindings([finding], { faults: [], epochs: [{ ...change, partition: 63 }, change] });
    expect(groups[0]?.sentence).toMatch(/before the failover of partition \d+ to n4 \(epoch 9\)/);
  });

  it('does not blame the move that led to the epoch of the answer; moves of one moment are one group', () => {
    const drafts = lost(kill('F2', 'n2', 60_000), 2).map((draft, index): FindingDraft => ({
      ...draft,
      node: 'n1',
      epoch: 4,
      partition: index,
      operation: { ...draft.operation, invokedAtMs: 59_000, acknowledgedAtMs: 59_900 },
      firstMissed: null,
      lastSeen: null,
    }));
    const to = (partition: number, atMs: number, epoch: number, owner: string): EpochChange => ({
      ...{ atMs, partition, epoch, term: epoch, owner },
      ...{ health: 'Recovering', kind: 'failover' },
    });
    const epochs = [
      to(0, 59_500, 4, 'n1'),
      to(1, 59_500, 4, 'n1'),
      to(0, 61_000, 7, 'n3'),
      to(1, 62_000, 8, 'n3'),
      to(1, 80_000, 9, 'n3'),
    ];
    const { groups } = groupFindings(drafts, { faults: [], epochs });
    expect(groups.map((group) => group.sentence)).toEqual([
      '2 of 2 lost writes were acknowledged ≤ 2.1 s before failovers of 2 partitions to n3',
    ]);
  });

  it('names the failover that had replaced the node before it acknowledged', () => {
    const [draft] = lost(kill('F2', 'n2', 60_000), 1) as [FindingDraft];
    const finding: FindingDraft = { ...draft, node: 'n1' };
    const partition = finding.partition ?? 0;
    const moment = finding.operation.acknowledgedAtMs ?? 0;
    const first: EpochChange = { atMs: 1, partition, epoch: 3, term: 1, owner: 'n1', health: 'Healthy', kind: 'edge' };
    const away: EpochChange = { ...first, atMs: moment - 400, epoch: 5, term: 2, owner: 'n3', kind: 'failover' };
    const { groups } = groupFindings([finding], { faults: [], epochs: [first, away] });
    expect(groups[0]?.sentence).toMatch(
      new RegExp(
        `acknowledged by a former primary, 400 ms after n3 had replaced it in partition ${partition} \\(epoch 5\\)$`,
      ),
    );
    // Somebody who never was primary was not replaced: any member may answer for it.
    const other = groupFindings([{ ...finding, node: 'n2' }], { faults: [], epochs: [first, away] });
    expect(other.groups[0]?.sentence).toContain('with no fault open, and neither fault nor failover');
  });

  it('counts before the cap, and keeps some of every group', () => {
    const [a, b] = [kill('F1', 'n1', 60_000), kill('F2', 'n2', 200_000)];
    const drafts = [...lost(a, 400), ...lost(b, 2)];
    const findings = groupFindings(drafts, { faults: [a, b], epochs: [], cap: 10 });
    expect(findings.total).toBe(402);
    expect(findings.groups.map((group) => group.count)).toEqual([400, 2]);
    expect(findings.items).toHaveLength(10);
    expect(findings.items.filter((item) => item.group === findings.groups[1]?.id)).toHaveLength(2);
  });

  it('tells where the values are now over the whole group', () => {
    const fault = kill('F1', 'n9', 60_000);
    const drafts = lost(fault, 3).map((draft, index): FindingDraft => ({
      ...draft,
      replicas: [
        { node: 'n1', role: 'primary', answer: index === 0 ? 'has-it' : 'absent', value: null, version: null },
        { node: 'n2', role: 'replica', answer: index === 2 ? 'no-answer' : 'absent', value: null, version: null },
      ],
    }));
    expect(groupFindings(drafts, { faults: [fault], epochs: [] }).groups[0]?.whereNow).toBe(
      '2 on no replica and 1 only on n1 (for 1 of them a replica gave no full answer)',
    );
  });
});
