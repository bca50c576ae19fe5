/** The crash test at full length. */
import { describe, expect, it } from 'vitest';
import { crashRepeatedly } from './testing/crash.ts';

const kills = 100;

describe('a ledger whose process is killed', () => {
  it(`holds every sent operation after each of ${kills} kills, and goes on`, async () => {
    const report = await crashRepeatedly(kills, 20_240);
    expect(report).toMatchObject({ missing: [], unsettled: [], nextOperationIdAbove: true });
    // One process may be killed before it recorded that it resumed; the next gap covers both.
    expect(report.gaps).toBeGreaterThan(0);
    expect(report.gaps).toBeLessThanOrEqual(kills);
    expect(report.excessUnknown).toBeLessThanOrEqual(0);
  });
});
