import { describe, expect, it } from 'vitest';
import { Prng } from '../../lib/prng.ts';
import type { StoredResult } from '../model/entry.ts';
import { OnceTable } from './once-table.ts';

const result = (value: number): StoredResult => ({ status: 'Ok', value: String(value) });

describe('the exactly-once records of a client', () => {
  it('behaves as a map above a watermark, in any order of sequences', () => {
    const random = new Prng(7);
    for (let round = 0; round < 200; round++) {
      const table = new OnceTable(0);
      const model = new Map<number, StoredResult>();
      let low = 1;
      for (let step = 0; step < 60; step++) {
        if (random.chance(0.2)) {
          const raised = low + random.below(4);
          table.raiseWatermark(raised);
          low = Math.max(low, raised);
          for (const sequence of model.keys()) if (sequence < low) model.delete(sequence);
        } else {
          const sequence = random.between(1, 40);
          const fresh = sequence >= low && !model.has(sequence);
          expect(table.add(sequence, result(step))).toBe(fresh);
          if (sequence >= low) model.set(sequence, result(step));
        }
        expect(table.size).toBe(model.size);
        for (let sequence = 0; sequence <= 41; sequence++) expect(table.get(sequence)).toEqual(model.get(sequence));
      }
      expect(new Map(table.entries())).toEqual(model);
    }
  });

  it('keeps every result above the watermark, also of a client with many open', () => {
    const table = new OnceTable(0);
    for (let sequence = 1; sequence <= 100; sequence++) table.add(sequence, result(sequence));
    for (let low = 1; low <= 101; low++) {
      table.raiseWatermark(low);
      for (let sequence = 1; sequence <= 100; sequence++)
        expect(table.get(sequence), `${sequence} above ${low}`).toEqual(sequence < low ? undefined : result(sequence));
    }
  });

  it('a watermark never goes back', () => {
    const table = new OnceTable(0);
    table.raiseWatermark(5);
    table.raiseWatermark(2);
    expect(table.lowWatermark).toBe(5);
    expect(table.add(4, result(1))).toBe(false);
  });
});
