import { describe, expect, it } from 'vitest';
import type { Entry } from '../model/entry.ts';
import { seq, term } from '../model/ids.ts';
import { PartitionLog } from './log.ts';

const entry = (at: number, inTerm: number): Entry => ({
  seq: seq(at),
  term: term(inTerm),
  effect: { kind: 'completion' },
});
const logOf = (...terms: number[]): PartitionLog => {
  const log = new PartitionLog();
  terms.forEach((inTerm, index) => log.append(entry(index + 1, inTerm)));
  return log;
};

describe('a partition log', () => {
  it('is dense and its terms never go back', () => {
    const log = logOf(1, 1, 2);
    expect(() => log.append(entry(5, 2))).toThrow(/log gap/);
    expect(() => log.append(entry(4, 1))).toThrow(/term goes back/);
    expect(log.last).toEqual({ term: 2, seq: 3 });
  });

  it('knows the term at its base, above it, and nothing below or beyond', () => {
    const log = logOf(1, 1, 2, 2, 3);
    log.trimTo(seq(3));
    expect([2, 3, 4, 5, 6].map((at) => log.termAt(seq(at)))).toEqual([null, 2, 2, 3, null]);
    expect(log.length).toBe(2);
    expect(log.slice(seq(3), 10, 1e6).map(({ seq: at }) => at)).toEqual([4, 5]);
  });

  it('cuts from an entry on and counts what it holds', () => {
    const log = logOf(1, 1, 1, 1);
    const { bytes } = log;
    log.truncateFrom(seq(3));
    expect(log.last.seq).toBe(2);
    expect(log.bytes).toBe(bytes / 2);
    log.append(entry(3, 2));
    expect(log.termAt(seq(3))).toBe(2);
  });

  it('trims thousands and still finds every entry', () => {
    const log = logOf(...Array.from({ length: 5_000 }, () => 1));
    for (let at = 100; at <= 4_900; at += 100) log.trimTo(seq(at));
    expect(log.get(seq(4_901))?.seq).toBe(4_901);
    expect(log.get(seq(4_900))).toBeUndefined();
    expect(log.length).toBe(100);
  });

  it('a slice obeys both bounds, but never comes back empty', () => {
    const log = logOf(1, 1, 1, 1);
    expect(log.slice(seq(0), 2, 1e6).length).toBe(2);
    expect(log.slice(seq(0), 10, 1).length).toBe(1);
    expect(log.slice(seq(4), 10, 1)).toEqual([]);
  });

  it('hints below a whole conflicting term, or at its own end', () => {
    const log = logOf(1, 1, 2, 2, 2);
    expect(log.conflictHint(seq(9))).toBe(5);
    expect(log.conflictHint(seq(4))).toBe(2);
    log.trimTo(seq(3));
    expect(log.conflictHint(seq(5))).toBe(3);
  });
});
