import { describe, expect, it } from 'vitest';
import { Prng } from '../../lib/prng.ts';
import { IdTable } from './id-table.ts';

describe('IdTable', () => {
  it('behaves like a Map with ids of its own, stragglers and growth included', () => {
    const table = new IdTable<string>();
    const model = new Map<number, string>();
    const random = new Prng(3);
    let lastId = 0;
    for (let round = 0; round < 20_000; round++) {
      const wanted = round < 8_000 ? 300 : 20;
      if (model.size < wanted && random.chance(0.6)) {
        const id = table.add(`v${round}`);
        expect(id).toBeGreaterThan(lastId);
        lastId = id;
        model.set(id, `v${round}`);
      } else if (random.chance(0.05)) {
        const id = table.reserve();
        expect(id).toBeGreaterThan(lastId);
        lastId = id;
        expect(table.take(id)).toBeUndefined();
      } else {
        const ids = [...model.keys()];
        const id = ids.length === 0 ? 1 : (ids[1 + random.below(ids.length)] ?? lastId + 5);
        expect(table.take(id)).toBe(model.get(id));
        model.delete(id);
      }
      expect(table.size).toBe(model.size);
    }
    expect(table.all()).toEqual([...model.values()]);
    table.clear();
    expect(table.all()).toEqual([]);
    expect(table.take(lastId)).toBeUndefined();
  });
});
