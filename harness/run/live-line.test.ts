import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { barOf, LiveLine, liveLines, plainEveryMs, standingOf } from './live-line.ts';
import { Tally } from './tally.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function rig(isTTY: boolean) {
  const written: string[] = [];
  const tally = new Tally();
  const startMs = Date.now();
  const live = new LiveLine({
    out: { write: (text: string) => written.push(text), isTTY, columns: 80 },
    tally,
    nowMs: () => Date.now() - startMs,
  });
  return { written, tally, live };
}

describe('the live view', () => {
  it('is plain and seldom where there is no terminal', () => {
    const { written, live, tally } = rig(false);
    tally.acknowledgedWrites = 12_345;
    live.start('load', { kind: 'time', totalMs: 600_000 });
    vi.advanceTimersByTime(3 * plainEveryMs + 500);
    expect(written).toHaveLength(3);
    expect(written[2]).toMatch(/^load 00:30\/10:00 · 12,345 acked writes .* · lost so far 0\n$/);
    expect(written.join('')).not.toContain('\u001b');
  });

  it('has bars on a terminal, two lines that are taken away before anything else is printed', () => {
    const { written, live, tally } = rig(true);
    tally.faultsPlanned = 10;
    tally.faultsDone = 5;
    live.start('load', { kind: 'time', totalMs: 4_000 });
    vi.advanceTimersByTime(1_000);
    const shown = written.at(-1) ?? '';
    expect(shown.split('\n')).toHaveLength(2);
    expect(shown).toContain('load      [███░░░░░░░░░] 00:01/00:04');
    expect(shown).toContain('faults [██████░░░░░░] 5/10, 0 open');
    live.print('a line of its own');
    expect(written.slice(-2)).toEqual(['\r\u001b[2K\u001b[1A\u001b[2K', 'a line of its own\n']);
    live.stop();
    expect(written.at(-1)).toMatch(/^load 00:01\/00:04 .*\n$/);
  });

  it('counts what there is to do where time says nothing', () => {
    const { written, live } = rig(false);
    let done = 0;
    live.start('read-back', { kind: 'count', noun: 'keys', total: 2_000, done: () => done });
    done = 500;
    vi.advanceTimersByTime(plainEveryMs);
    expect(written[0]).toMatch(/^read-back 500\/2,000 keys · /);
    expect(standingOf({ kind: 'count', noun: 'keys', total: 0, done: () => 0 }, 0).share).toBe(1);
  });

  it('never wraps, and never overfills a bar', () => {
    const lines = liveLines(new Tally(), 'load', { text: '00:01/00:04', share: 7 }, 1e9, 30);
    expect(lines.every((line) => line.length < 30)).toBe(true);
    expect(barOf(7, 4)).toBe('[████]');
    expect(barOf(Number.NaN, 4)).toBe('[░░░░]');
  });
});
