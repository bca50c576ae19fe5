import { describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { OpenTable } from './open-table.ts';

describe('open table', () => {
  it('holds what a map would hold, also what stays for long', () => {
    const prng = new Prng(7);
    const table = new OpenTable<string>();
    const map = new Map<number, string>();
    for (let number = 1; number <= 20_000; number++) {
      // Numbers beyond 32 bits too: they share the places of the small ones.
      const name = prng.chance(0.5) ? number : number + 2 ** 32 * prng.between(1, 9);
      table.put(name, `v${name}`);
      map.set(name, `v${name}`);
      // One in fifty stays for ever.
      const open = [...map.keys()].slice(-8);
      const gone = prng.chance(0.02) ? -1 : prng.pick(open);
      expect(table.take(gone)).toBe(map.get(gone));
      map.delete(gone);
      expect(table.take(gone)).toBeUndefined();
    }
    expect(map.size).toBeGreaterThan(100);
    expect(table.all()).toEqual([...map].sort(([a], [b]) => a - b).map(([, value]) => value));
  });

  it('forgets the first of those that have stayed for long', () => {
    const table = new OpenTable<number>();
    for (let number = 1; number <= 3 * 1_024; number++) table.put(number, number);
    table.trimTo(10);
    expect(table.take(1)).toBeUndefined();
    expect(table.take(2 * 1_024)).toBe(2 * 1_024);
    expect(table.take(3 * 1_024)).toBe(3 * 1_024);
    expect(table.all()).toHaveLength(1_024 + 10 - 2);
  });
});
