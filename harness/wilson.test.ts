import { describe, expect, it } from 'vitest';
import { summaryOf } from './commands/reproduce-command.ts';
import { wilsonInterval } from './wilson.ts';

describe('the Wilson interval', () => {
  it.each([
    // Values from tables of the interval without continuity correction.
    [0, 10, 0, 0.2775],
    [1, 10, 0.0179, 0.4042],
    [5, 10, 0.2366, 0.7634],
    [10, 10, 0.7225, 1],
    [0, 0, 0, 1],
  ])('of %d in %d is %d to %d', (successes, tries, low, high) => {
    const [below, above] = wilsonInterval(successes, tries);
    expect(below).toBeCloseTo(low, 3);
    expect(above).toBeCloseTo(high, 3);
  });
});

describe('what a reproduction comes to', () => {
  const replay = (verdict: 'certified' | 'violated' | 'environment', ...found: string[]) => ({
    runId: 'r',
    verdict,
    found,
  });

  it('counts the runs that found the same, and leaves out those that told nothing', () => {
    const lines = summaryOf(
      [replay('violated', 'lost', 'stale'), replay('certified'), replay('environment'), replay('violated', 'phantom')],
      ['lost'],
    );
    expect(lines.at(-1)).toBe(
      'What it found came in 1 of 3 runs (95 % interval 6.1 % to 79 %); 1 runs told nothing and do not count.',
    );
  });

  it('asks for any violation when the run itself found nothing', () => {
    expect(summaryOf([replay('certified'), replay('certified')], []).at(-1)).toBe(
      'A violation came in 0 of 2 runs (95 % interval 0 % to 66 %).',
    );
  });
});
