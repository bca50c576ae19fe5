import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SeriesBuilder } from './series-builder.ts';

const operation = (invokedAtMs: number, tookMs: number, refusal: string | null = null) => ({
  invokedAtMs,
  endedAtMs: invokedAtMs + tookMs,
  acknowledgedWrite: refusal === null,
  refusal,
});

describe('SeriesBuilder', () => {
  it('puts rates, quantiles and refusals into buckets', () => {
    const builder = new SeriesBuilder();
    for (let index = 0; index < 100; index++) builder.add(operation(index * 0.5, 1 + index / 100));
    builder.add(operation(150, 20, 'Moved'));
    const series = builder.build(300);
    expect(series.bucketMs).toBe(100);
    expect(series.ackedPerSecond).toEqual([1000, 0, 0]);
    expect(series.p50Ms[0]).toBeCloseTo(1.5, 1);
    expect(series.maxMs).toEqual([1.99, 20, null]);
    expect(series.refusals).toEqual([{ status: 'Moved', counts: [0, 1, 0] }]);
  });

  it('keeps an operation that never ended in flight', () => {
    const builder = new SeriesBuilder();
    builder.add({ invokedAtMs: 10, endedAtMs: null, acknowledgedWrite: false, refusal: null });
    builder.add(operation(20, 100));
    expect(builder.build(300).inFlight).toEqual([2, 1, 1]);
  });

  it('loses neither a count nor a maximum when buckets are merged', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(100_000), fc.nat(5_000)), { minLength: 1, maxLength: 200 }), (pairs) => {
        const builder = new SeriesBuilder(16);
        for (const [at, took] of pairs) builder.add(operation(at, took));
        const series = builder.build(105_000);
        expect(series.ackedPerSecond.length).toBeLessThanOrEqual(16);
        const acked = series.ackedPerSecond.reduce<number>(
          (sum, rate) => sum + (rate ?? 0) * (series.bucketMs / 1000),
          0,
        );
        expect(Math.abs(acked - pairs.length)).toBeLessThan(1 + 0.005 * 16 * (series.bucketMs / 1000));
        const largest = Math.max(...pairs.map(([, took]) => took));
        expect(Math.max(...series.maxMs.map((value) => value ?? 0))).toBe(largest);
        expect(series.inFlight.at(-1)).toBe(0);
      }),
    );
  });
});
