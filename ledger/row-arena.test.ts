/** The arena against a plain list per key. */
import { describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { RowArena } from './row-arena.ts';

type Row = readonly [table: number, rowId: number, text: string];

function filled(arena: RowArena, prng: Prng, slots: number, rows: number): Row[][] {
  const wanted: Row[][] = Array.from({ length: slots }, () => []);
  const record = new Uint8Array(2_000);
  for (let rowId = 1; rowId <= rows; rowId++) {
    // One key has a tenth of all rows.
    const slot = prng.chance(0.1) ? slots >> 1 : prng.below(slots);
    const length = prng.between(3, 90);
    for (let at = 5; at < 5 + length; at++) record[at] = prng.below(256);
    arena.add(slot, rowId % 3, rowId, record, 5, length);
    wanted[slot]?.push([rowId % 3, rowId, Buffer.from(record.subarray(5, 8)).toString('hex')]);
  }
  return wanted;
}

function visited(arena: RowArena, slots: number): Row[][] {
  return Array.from({ length: slots }, (_, slot) => {
    const rows: Row[] = [];
    arena.visit(slot, (table, rowId, bytes, at) =>
      rows.push([table, rowId, Buffer.from(bytes.subarray(at, at + 3)).toString('hex')]),
    );
    return rows;
  });
}

describe('rows thrown in as they come', () => {
  it.each([
    { slots: 1, rows: 5_000, expectedBytes: 0 },
    { slots: 7, rows: 0, expectedBytes: 1e9 },
    { slots: 1_000, rows: 60_000, expectedBytes: 4e6 },
    { slots: 1_000, rows: 60_000, expectedBytes: 1e10 },
    { slots: 3_001, rows: 40_000, expectedBytes: 3e7 },
  ])('come out key by key, in their order: $rows rows, $slots keys, $expectedBytes bytes', (given) => {
    const { slots, rows, expectedBytes } = given;
    const arena = new RowArena(slots, expectedBytes);
    for (const seed of [1, 2]) {
      const wanted = filled(arena, new Prng(seed), slots, rows);
      expect(visited(arena, slots)).toEqual(wanted);
      arena.clear();
    }
  });

  it('are asked for in ascending order only', () => {
    const arena = new RowArena(1_000, 1e10);
    arena.visit(900, () => undefined);
    expect(() => arena.visit(1, () => undefined)).toThrow(/ascending/);
  });
});
