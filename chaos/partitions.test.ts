import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { partitionShapes } from './faults.ts';
import { clientCuts, cutText, fewestNodes, heardBy, isCut, partitionCuts, unionOfCuts } from './partitions.ts';

const nodes = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index + 1}`);
const some = fc.integer({ min: 4, max: 9 }).chain((count) =>
  fc.record({
    nodeIds: fc.constant(nodes(count)),
    targets: fc.subarray(nodes(count), { minLength: 1, maxLength: Math.max(1, Math.floor((count - 1) / 2)) }),
  }),
);

describe('partitions as data', () => {
  it('no end is cut from itself, none twice, both ends known', () => {
    fc.assert(
      fc.property(some, fc.constantFrom(...partitionShapes), ({ nodeIds, targets }, shape) => {
        const cuts = partitionCuts(shape, nodeIds, targets);
        expect(new Set(cuts.map(cutText)).size).toBe(cuts.length);
        expect(cuts.length).toBeGreaterThan(0);
        for (const { from, to } of cuts) {
          expect(from).not.toBe(to);
          expect(nodeIds).toContain(from);
          expect(nodeIds).toContain(to);
        }
      }),
      { seed: 1 },
    );
  });

  it('halves: each side hears its own side, and nobody else', () => {
    fc.assert(
      fc.property(some, ({ nodeIds, targets }) => {
        const cuts = partitionCuts('halves', nodeIds, targets);
        for (const nodeId of nodeIds) {
          const side = nodeIds.filter((other) => targets.includes(other) === targets.includes(nodeId));
          expect(heardBy(cuts, nodeIds, nodeId)).toEqual(side);
        }
      }),
      { seed: 2 },
    );
  });

  it('isolate: a target hears itself only; the others hear each other', () => {
    fc.assert(
      fc.property(some, ({ nodeIds, targets }) => {
        const cuts = partitionCuts('isolate', nodeIds, targets);
        for (const nodeId of nodeIds) {
          const expected = targets.includes(nodeId) ? [nodeId] : nodeIds.filter((other) => !targets.includes(other));
          expect(heardBy(cuts, nodeIds, nodeId)).toEqual(expected);
        }
      }),
      { seed: 3 },
    );
  });

  it('one-way in and out are each other’s reverse, together a cut of halves', () => {
    fc.assert(
      fc.property(some, ({ nodeIds, targets }) => {
        const into = partitionCuts('one-way-in', nodeIds, targets);
        const out = partitionCuts('one-way-out', nodeIds, targets);
        const reversed = into.map(({ from, to }) => ({ from: to, to: from }));
        expect(unionOfCuts([reversed])).toEqual(unionOfCuts([out]));
        expect(unionOfCuts([into, out])).toEqual(unionOfCuts([partitionCuts('halves', nodeIds, targets)]));
        for (const { from, to } of into) expect(isCut(into, to, from)).toBe(false);
      }),
      { seed: 4 },
    );
  });

  it('ring: everybody hears a majority, nobody hears everybody', () => {
    for (let count = fewestNodes['majorities-ring']; count <= 9; count++) {
      const nodeIds = nodes(count);
      const cuts = partitionCuts('majorities-ring', nodeIds, nodeIds);
      const views = nodeIds.map((nodeId) => heardBy(cuts, nodeIds, nodeId));
      for (const view of views) {
        expect(view.length, `${count} nodes`).toBeGreaterThan(count / 2);
        expect(view.length).toBeLessThan(count);
      }
      expect(new Set(views.map((view) => view.join())).size).toBe(count % 2 === 1 ? count : views.length);
    }
  });

  it('bridge: one hears all, the two sides do not hear each other', () => {
    const nodeIds = nodes(5);
    const cuts = partitionCuts('bridge', nodeIds, ['n3']);
    expect(heardBy(cuts, nodeIds, 'n3')).toEqual(nodeIds);
    expect(heardBy(cuts, nodeIds, 'n1')).toEqual(['n1', 'n2', 'n3']);
    expect(heardBy(cuts, nodeIds, 'n5')).toEqual(['n3', 'n4', 'n5']);
  });

  it('union is idempotent, commutative, and takes nothing away', () => {
    fc.assert(
      fc.property(some, some, fc.constantFrom(...partitionShapes), (a, b, shape) => {
        const left = partitionCuts(shape, a.nodeIds, a.targets, true);
        const right = clientCuts(b.targets);
        expect(unionOfCuts([left, right])).toEqual(unionOfCuts([right, left]));
        expect(unionOfCuts([left, left])).toEqual(unionOfCuts([left]));
        for (const cut of [...left, ...right]) expect(isCut(unionOfCuts([left, right]), cut.from, cut.to)).toBe(true);
      }),
      { seed: 5 },
    );
  });
});
