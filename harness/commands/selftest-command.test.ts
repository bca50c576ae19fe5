import { describe, expect, it } from 'vitest';
import type { PlayedStore } from '../selftest/play-store.ts';
import { lineOf, realTable } from './selftest-command.ts';

const caught: PlayedStore = {
  name: 'tail-cut-on-promotion',
  outcome: { kind: 'caught', finding: { kind: 'lost', rule: 'interval', reason: 'the key is gone', count: 2 } },
  lastVerdict: 'violated',
  runs: 2,
  runId: '20261130-063920-00000001-94t',
  acknowledged: 1_234,
  operations: 2_345,
  confirmedFaults: 7,
  failovers: 21,
  wallMs: 41_400,
};
const missed: PlayedStore = {
  ...caught,
  name: 'no-lease',
  outcome: { kind: 'missed', why: 'the run ended certified: nothing was lost' },
  lastVerdict: 'certified',
};

describe('what the self-test prints', () => {
  it('one line per store', () => {
    expect(lineOf(caught)).toBe('tail-cut-on-promotion: caught after 41 s: lost (interval): the key is gone');
    expect(lineOf(missed)).toBe('no-lease: NOT CAUGHT after 41 s: the run ended certified: nothing was lost');
  });

  it('a table with finding, counts, seconds and run', () => {
    const [, , , first = '', ...rest] = realTable([caught, missed]).split('\n');
    for (const text of [
      'tail-cut-on-promotion',
      ' yes ',
      'lost (interval): the key is gone',
      '1234/2345',
      ' 7 ',
      ' 21 ',
      ' 41 ',
      '2: 20261130-063920-00000001-94t',
    ])
      expect(first).toContain(text);
    expect(rest.find((line) => line.includes('no-lease'))).toContain(' NO ');
  });
});
