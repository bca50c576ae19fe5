import { describe, expect, it } from 'vitest';
import { heldUpMs, type HostTrouble, HostWatch, hostLookMs, troubleText } from './host-watch.ts';

function rig() {
  const at = { nowMs: 1_000, wallMs: 50_000, free: 10e9 };
  const seen: HostTrouble[] = [];
  const watch = new HostWatch({
    clock: { nowMs: () => at.nowMs, wallMs: () => at.wallMs },
    freeBytes: () => at.free,
    leastFreeBytes: 512e6,
    onTrouble: (trouble) => seen.push(trouble),
  });
  const pass = (ms: number, wall = ms): void => {
    at.nowMs += ms;
    at.wallMs += wall;
    watch.look();
  };
  return { at, seen, pass };
}

describe('trouble of the host', () => {
  it('is none while time passes, also a little unevenly', () => {
    const { seen, pass } = rig();
    for (const ms of [250, 251, 900, hostLookMs + heldUpMs, 20]) pass(ms, ms + 3);
    expect(seen).toEqual([]);
  });

  it('is a gap when the harness was held up', () => {
    const { seen, pass } = rig();
    pass(30_000);
    expect(seen).toEqual([{ kind: 'held-up', fromMs: 1_000, toMs: 31_000 }]);
    expect(troubleText(seen[0] as HostTrouble)).toContain('for 30.0 s');
  });

  it('is a step of the clock, either way, told apart from being held up', () => {
    const { seen, pass } = rig();
    pass(250, 60_250);
    pass(250, -3_750);
    expect(seen.map((each) => each.kind)).toEqual(['clock-step', 'clock-step']);
    expect(troubleText(seen[0] as HostTrouble)).toContain('forward by 60.0 s');
    expect(troubleText(seen[1] as HostTrouble)).toContain('back by 4.0 s');
  });

  it('is a full disk, said once', () => {
    const { at, seen, pass } = rig();
    at.free = 100e6;
    pass(250);
    pass(250);
    expect(seen).toEqual([{ kind: 'disk-low', freeBytes: 100e6 }]);
  });
});
