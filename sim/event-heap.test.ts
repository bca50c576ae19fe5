import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventHeap } from './event-heap.ts';

describe('the agenda', () => {
  it('gives back by time, and by insertion among equals, whatever the mix of pushes and pops', () => {
    const step = fc.oneof(fc.record({ push: fc.integer({ min: 0, max: 5 }) }), fc.constant('pop' as const));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const heap = new EventHeap<number>();
        let expected: { atMs: number; order: number }[] = [];
        let order = 0;
        for (const each of steps) {
          if (each === 'pop') {
            expected.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
            expect(heap.nextMs).toBe(expected[0]?.atMs ?? Infinity);
            expect(heap.pop()).toBe(expected[0]?.order);
            expected = expected.slice(1);
          } else {
            heap.push(each.push, order);
            expected.push({ atMs: each.push, order: order++ });
          }
          expect(heap.size).toBe(expected.length);
        }
      }),
      { seed: 7, numRuns: 300 },
    );
  });
});
