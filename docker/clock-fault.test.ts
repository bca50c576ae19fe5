import { describe, expect, it } from 'vitest';
import { clockOffsets, offsetText } from './clock-fault.ts';
import { memoryKillSeconds, residentBytes } from './out-of-memory.ts';

describe('clock offsets', () => {
  const host = { hostWallMs: 1_000_000, hostMonotonicBeforeMs: 500, hostMonotonicAfterMs: 700 };

  it('finds a moved wall clock exactly, whenever in the bracket it was read', () => {
    expect(clockOffsets({ ...host, monotonicMs: 600, wallMs: 999_900 + 5_000 })).toEqual({
      wallOffsetMs: 5_000,
      monotonicOffsetMs: 0,
    });
    expect(clockOffsets({ ...host, monotonicMs: 700, wallMs: 1_000_000 - 30 })).toEqual({
      wallOffsetMs: -30,
      monotonicOffsetMs: 0,
    });
  });

  it('finds a monotonic clock that moved too', () => {
    expect(clockOffsets({ ...host, monotonicMs: 3_700, wallMs: 1_000_000 }).monotonicOffsetMs).toBe(3_000);
    expect(clockOffsets({ ...host, monotonicMs: 0, wallMs: 1_000_000 }).monotonicOffsetMs).toBe(-500);
  });

  it('writes offsets as the library reads them', () => {
    expect([0, 3_600_000, -1_500].map(offsetText)).toEqual(['+0.000\n', '+3600.000\n', '-1.500\n']);
  });
});

it('reads resident memory', () => {
  expect(residentBytes('Name:\tnode\nVmRSS:\t   2048 kB\nVmSwap:\t 0 kB\n')).toBe(2_097_152);
  expect(residentBytes('Name:\tnode\n')).toBeNaN();
});

it("finds the kernel's word on a process that it killed for memory", () => {
  const log = [
    '[   12.500000] Memory cgroup out of memory: Killed process 77 (MainThread) total-vm:9kB',
    '[  100.250000] Out of memory: Killed process 78 (node) total-vm:9kB',
    '[  101.000000] something about Killed process 79 (node)',
  ].join('\n');
  expect([77, 78, 79, 7].map((pid) => memoryKillSeconds(log, pid))).toEqual([12.5, 100.25, null, null]);
});
