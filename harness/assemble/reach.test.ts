import { describe, expect, it } from 'vitest';
import type { EpochChangeRow } from '../../ledger/rows.ts';
import type { Fault } from '../report/model-timeline.ts';
import { syntheticReport } from '../report/testing/synthetic.ts';
import { Reach } from './reach.ts';

const fault: Fault = {
  ...(syntheticReport('violated').faults[0] as Fault),
  id: 'kill',
  kind: 'kill',
  targets: ['n1'],
  outcome: 'confirmed',
  stages: { plannedMs: 0, injectedMs: 5_000, confirmedMs: 5_050, healedMs: 9_000, healVerifiedMs: 9_100 },
};
const change = (atMs: number, node: string | null): EpochChangeRow => ({
  atNs: atMs * 1e6,
  partition: 0,
  epoch: atMs,
  term: 1,
  node,
  incarnation: 1,
  health: 'Healthy',
  kind: 'edge',
});

function firstAcks(changes: readonly EpochChangeRow[]): number[] {
  const reach = new Reach([fault], changes);
  reach.acknowledged(0, 4_900, 4_950);
  reach.acknowledged(0, 5_100, 6_400);
  return reach.firstAcks('kill');
}

describe('which primaries a fault hit', () => {
  it('is the primary at its injection, up to the first write invoked after it', () => {
    expect(firstAcks([change(100, 'n1')])).toEqual([1_400]);
    expect(firstAcks([change(100, 'n2')])).toEqual([]);
  });

  it('is also one that went missing while the fault was being injected', () => {
    expect(firstAcks([change(100, 'n1'), change(4_900, null)])).toEqual([1_400]);
    expect(firstAcks([change(100, 'n1'), change(3_000, null)])).toEqual([]);
    expect(firstAcks([change(100, 'n1'), change(4_900, null), change(4_950, 'n3')])).toEqual([]);
  });
});
