import { describe, expect, it } from 'vitest';
import { judgeRule, planProbe } from './rule-probes.ts';
import type { LinkRule } from '../chaos/ports.ts';

const loss = (percent: number): LinkRule => ({ kind: 'loss', from: 'a', to: 'b', percent });
const rate = (bytesPerSecond: number): LinkRule => ({ kind: 'rate', from: 'a', to: 'b', bytesPerSecond });

describe('rule probes', () => {
  it('sends more to see a smaller loss, within a bound', () => {
    expect([1, 5, 50].map((percent) => planProbe(loss(percent))?.count)).toEqual([400, 100, 40]);
  });

  it('sees a loss only when about that much is lost', () => {
    expect(judgeRule(loss(30), { sent: 100, arrived: 100, elapsedMs: 10 })).toBe('absent');
    expect(judgeRule(loss(30), { sent: 100, arrived: 95, elapsedMs: 10 })).toBe('absent');
    expect(judgeRule(loss(30), { sent: 100, arrived: 75, elapsedMs: 10 })).toBe('seen');
  });

  it('sees a rate only when what arrived fits under it, and its absence only when enough was sent to tell', () => {
    const limited = rate(100_000);
    const sent = planProbe(limited)?.count ?? 0;
    expect(judgeRule(limited, { sent, arrived: 85, elapsedMs: 50 })).toBe('seen');
    expect(judgeRule(limited, { sent, arrived: sent - 1, elapsedMs: 50 })).toBe('unknown');
    expect(judgeRule(limited, { sent, arrived: sent, elapsedMs: 50 })).toBe('absent');
    expect(judgeRule(limited, { sent, arrived: sent, elapsedMs: 3_000 })).toBe('unknown');
  });

  it('has no plan for what it cannot show', () => {
    expect(planProbe(rate(1_000_000_000))).toBeNull();
    expect(planProbe({ kind: 'drop', from: 'a', to: 'b' })).toBeNull();
  });
});
