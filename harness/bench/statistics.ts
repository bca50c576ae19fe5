/**
 * The few numbers that a figure is reported with: median and spread. A mean would hide the one slow round, and a single number
 * would hide that there was a spread at all.
 */

/** Median and extremes of some figures of the same thing. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

/** The value below which `share` (0 … 1) of the values lie, by nearest rank; NaN without values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = Math.min(sorted.length, Math.max(1, Math.ceil(share * sorted.length)));
  return sorted[rank - 1] ?? NaN;
}

/** Median (the mean of the middle two where there are two) and extremes; all NaN without values. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
  return { median, low: sorted[0] ?? NaN, high: sorted.at(-1) ?? NaN, count: sorted.length };
}

/** `12,345` · `12.3` · `0.123`: three to five significant digits, as much as a figure of a noisy machine deserves. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  return size >= 10 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : value.toFixed(3);
}

/** `12,345 [11,200 – 12,900]`; without the brackets where there is only one figure. */
export function spreadText(spread: Spread): string {
  if (spread.count < 2) return figure(spread.median);
  return `${figure(spread.median)} [${figure(spread.low)} – ${figure(spread.high)}]`;
}
