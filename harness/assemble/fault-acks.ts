/**
 * Acknowledged writes inside the windows of each kind of fault: from the injection to the verified heal, and a moment longer, so
 * that what a fault without an end left behind counts too. Open windows of one kind are merged; memory is that of the faults.
 */
import type { Fault } from '../report/model-timeline.ts';

/** How long after an injection a write counts as under it at least, ms. */
const leastWindowMs = 5_000;

interface Windows {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
  /** How many windows had begun when the last write returned: writes come nearly in the order of time. */
  begun: number;
}

export class FaultAcks {
  private readonly windows = new Map<string, Windows>();
  private readonly counts = new Map<string, number>();

  constructor(faults: readonly Fault[]) {
    const confirmed = faults.filter((fault) => fault.outcome === 'confirmed' && fault.stages.injectedMs !== null);
    for (const [kind, own] of Map.groupBy(confirmed, (fault) => fault.kind)) this.windows.set(kind, merged(own));
  }

  /** A write was invoked and acknowledged. */
  acknowledged(invokedMs: number, returnedMs: number): void {
    for (const [kind, windows] of this.windows) {
      const { starts, ends } = windows;
      let { begun } = windows;
      while (begun < starts.length && (starts[begun] as number) <= returnedMs) begun++;
      while (begun > 0 && (starts[begun - 1] as number) > returnedMs) begun--;
      windows.begun = begun;
      if (begun > 0 && (ends[begun - 1] as number) >= invokedMs)
        this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    }
  }

  of(kind: string): number {
    return this.counts.get(kind) ?? 0;
  }
}

function merged(faults: readonly Fault[]): Windows {
  const spans = faults
    .map(({ stages }) => {
      const from = stages.injectedMs as number;
      return [from, Math.max(stages.healVerifiedMs ?? stages.healedMs ?? Infinity, from + leastWindowMs)] as [
        number,
        number,
      ];
    })
    .toSorted((a, b) => a[0] - b[0]);
  const windows: [number, number][] = [];
  for (const [from, to] of spans) {
    const last = windows.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else windows.push([from, to]);
  }
  return {
    starts: Float64Array.from(windows, (window) => window[0]),
    ends: Float64Array.from(windows, (window) => window[1]),
    begun: 0,
  };
}
