import { describe, expect, it } from 'vitest';
import { checkGate, evaluateGate, parseGate } from './gates.ts';
import type { RunReport } from './model.ts';
import { syntheticReport } from './testing/synthetic.ts';

const certified = syntheticReport('certified');
const withRecovery = (p99Ms: number, neverRecovered = 0): RunReport => ({
  ...certified,
  recovery: [
    {
      faultKind: 'all',
      faults: 9,
      firstAck: { count: 9, p50Ms: 300, p99Ms, maxMs: p99Ms },
      healthy: null,
      neverRecovered,
    },
  ],
});

describe('parseGate', () => {
  it.each([
    ['recovery.p99>5s', 'recovery.p99', '>', 5000, 'ms'],
    ['memory.peak >= 1.5 GB', 'memory.peak', '>=', 1.5e9, 'bytes'],
    ['faults.overlap<25%', 'faults.overlap', '<', 0.25, 'share'],
    ['acked.rate < 1000/s', 'acked.rate', '<', 1000, 'per-second'],
    ['lost!=0', 'lost', '!=', 0, null],
  ] as const)('%s', (text, metric, operator, value, unit) => {
    expect(parseGate(text).clauses).toEqual([[{ metric, operator, value, unit }]]);
  });

  it('reads and, or', () => {
    expect(parseGate('a>1 and b>2 or c>3').clauses.map((clause) => clause.length)).toEqual([2, 1]);
    expect(parseGate('a>1&&b>2||c>3').clauses.map((clause) => clause.length)).toEqual([2, 1]);
  });

  it.each([
    '',
    ' ',
    'recovery.p99',
    '>5s',
    'recovery.p99>five',
    'recovery.p99>5x',
    'a>1 and',
    'a>1;b>2',
    'a=>1',
    'a>-1',
    'a > 1 or or b > 1',
  ])('refuses %j', (text) => {
    expect(() => parseGate(text)).toThrow(/gate|unit/);
  });
});

describe('checkGate', () => {
  it('knows names and units before the run', () => {
    expect(() => checkGate(parseGate('recovery.p99>5s or recovery.kill.max>9s'))).not.toThrow();
    expect(() => checkGate(parseGate('recovry.p99>5s'))).toThrow("unknown metric 'recovry.p99'");
    expect(() => checkGate(parseGate('recovery.p99>5GB'))).toThrow('is a duration, not a size');
  });
});

describe('evaluateGate', () => {
  it('fails the run when the expression holds', () => {
    expect(evaluateGate(parseGate('recovery.p99>5s'), withRecovery(5_001)).outcome).toBe('failed');
    expect(evaluateGate(parseGate('recovery.p99>5s'), withRecovery(5_000)).outcome).toBe('passed');
    expect(evaluateGate(parseGate('recovery.p99>5s and failovers<1'), withRecovery(9_000)).outcome).toBe('passed');
    expect(evaluateGate(parseGate('failovers<1 or recovery.p99>5s'), withRecovery(9_000)).outcome).toBe('failed');
  });

  it('a missing number is unknown, never a pass', () => {
    expect(evaluateGate(parseGate('healthy.p99>5s'), withRecovery(1)).outcome).toBe('unknown');
    expect(evaluateGate(parseGate('healthy.p99>5s and failovers<1'), withRecovery(1)).outcome).toBe('passed');
    expect(evaluateGate(parseGate('recovery.oom.p99>5s'), withRecovery(1)).outcome).toBe('unknown');
  });

  it('a partition that never recovered is over every bound', () => {
    const result = evaluateGate(parseGate('recovery.p99>1h'), withRecovery(10, 1));
    expect(result).toMatchObject({ outcome: 'failed', detail: 'recovery.p99 is never' });
  });
});
