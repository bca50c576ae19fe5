/** `kill -9` of the writing process at random moments: nothing that was sent is missing, nothing that was settled is lost. */
import { describe, expect, it } from 'vitest';
import { crashRepeatedly } from './testing/crash.ts';

const kills = 5;

describe('a ledger whose process is killed', () => {
  it(`holds every sent operation after each of ${kills} kills, and goes on`, async () => {
    const report = await crashRepeatedly(kills, 77);
    expect(report).toMatchObject({ missing: [], unsettled: [], nextOperationIdAbove: true });
    // One process may be killed before it recorded that it resumed; the next gap covers both.
    expect(report.gaps).toBeGreaterThan(0);
    expect(report.gaps).toBeLessThanOrEqual(kills);
    expect(report.excessUnknown).toBeLessThanOrEqual(0);
    expect(report.settled).toBeGreaterThan(kills);
  });
});
