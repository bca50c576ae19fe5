import { describe, expect, it } from 'vitest';
import { type NodeId, nodeId } from '../model/ids.ts';
import { drawPlacements } from './placement.ts';

const nodes = (count: number): NodeId[] => Array.from({ length: count }, (_, index) => nodeId(`n${index + 1}`));
const draw = (count: number, rf: number, previous: ReturnType<typeof drawPlacements> = [], partitionCount = 64) =>
  drawPlacements(nodes(count), { partitionCount, replicationFactor: rf, previous });
const loads = (placements: ReturnType<typeof draw>): number[] => {
  const load = new Map<string, number>();
  for (const { replicas } of placements) for (const id of replicas) load.set(id, (load.get(id) ?? 0) + 1);
  return [...load.values()];
};

describe('drawing a map', () => {
  it.each([
    [1, 1],
    [3, 3],
    [5, 3],
    [5, 5],
    [7, 2],
  ])('%i nodes, %i copies: distinct holders, preferred among them, even load', (count, rf) => {
    const placements = draw(count, rf);
    for (const { replicas, preferredPrimary } of placements) {
      expect(new Set(replicas).size).toBe(rf);
      expect(replicas).toContain(preferredPrimary);
    }
    const load = loads(placements);
    expect(Math.max(...load) - Math.min(...load)).toBeLessThanOrEqual(1);
    const leads = nodes(count).map((id) => placements.filter((placement) => placement.preferredPrimary === id).length);
    expect(Math.max(...leads) - Math.min(...leads)).toBeLessThanOrEqual(4);
  });

  it('fewer nodes than copies: every node holds everything', () => {
    for (const { replicas } of draw(2, 3)) expect(replicas.length).toBe(2);
  });

  it('one more node takes only its share; the same nodes move nothing', () => {
    const before = draw(5, 3);
    expect(draw(5, 3, before)).toEqual(before);
    const after = draw(6, 3, before);
    const moved = after.flatMap(({ replicas }, index) =>
      replicas.filter((id) => !before[index]?.replicas.includes(id)),
    );
    expect(new Set(moved)).toEqual(new Set(['n6']));
    expect(moved.length).toBeLessThanOrEqual(Math.ceil((64 * 3) / 6));
  });

  it('a node that left is replaced, nothing else moves', () => {
    const before = draw(5, 3);
    const after = drawPlacements(nodes(4), { partitionCount: 64, replicationFactor: 3, previous: before });
    for (const [index, { replicas }] of after.entries()) {
      const kept = (before[index]?.replicas ?? []).filter((id) => id !== 'n5');
      for (const id of kept) expect(replicas).toContain(id);
    }
  });
});
