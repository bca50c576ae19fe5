import { describe, expect, it } from 'vitest';
import { figure, quantile, spreadOf, spreadText } from './statistics.ts';

describe('statistics of a bench', () => {
  it('takes the middle, or the mean of the middle two', () => {
    expect(spreadOf([9, 1, 5])).toEqual({ median: 5, low: 1, high: 9, count: 3 });
    expect(spreadOf([4, 1, 2, 9]).median).toBe(3);
    expect(spreadOf([]).median).toBeNaN();
  });

  it('takes quantiles by nearest rank', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(quantile(values, 0.99)).toBe(99);
    expect(quantile(values, 1)).toBe(100);
    expect(quantile(values, 0)).toBe(1);
    expect(quantile([7], 0.5)).toBe(7);
    expect(quantile([], 0.5)).toBeNaN();
  });

  it('writes figures with the digits that they deserve', () => {
    expect(figure(12_345.6)).toBe('12,346');
    expect(figure(12.34)).toBe('12.3');
    expect(figure(0.1234)).toBe('0.123');
    expect(figure(NaN)).toBe('–');
    expect(spreadText(spreadOf([2, 1, 3]))).toBe('2.00 [1.00 – 3.00]');
    expect(spreadText(spreadOf([2]))).toBe('2.00');
  });
});
