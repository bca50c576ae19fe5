/** Reads the values that people type: durations, sizes, seeds, lists. Throws UsageError with one sentence. */
import { UsageError } from './errors.ts';

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const shape = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const part = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;

/** "4h", "90s", "1h30m", "500ms" → milliseconds. */
export function parseDuration(text: string, flag: string): number {
  const trimmed = text.trim();
  if (!shape.test(trimmed)) {
    throw new UsageError(`${flag} must be a duration such as 90s, 2m, 4h or 1h30m, not "${text}".`);
  }
  let totalMs = 0;
  for (const [, amount, unit] of trimmed.matchAll(part)) totalMs += Number(amount) * (unitMs[unit as string] as number);
  return totalMs;
}

/** An integer in [low, high]. */
export function parseInteger(value: unknown, flag: string, low: number, high: number): number {
  const number = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value);
  if (!Number.isInteger(number) || number < low || number > high) {
    const range = high === Number.MAX_SAFE_INTEGER ? `of at least ${low}` : `from ${low} to ${high}`;
    throw new UsageError(`${flag} must be a whole number ${range}, not "${String(value)}".`);
  }
  return number;
}

/** A number in [low, high]. */
export function parseNumber(value: unknown, flag: string, low: number, high: number): number {
  const number = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value);
  if (!(number >= low && number <= high)) {
    throw new UsageError(`${flag} must be a number from ${low} to ${high}, not "${String(value)}".`);
  }
  return number;
}

/** No machine does more; a run that asks for it asks for more writes than it can ever count. */
const maxRate = 1_000_000;

/** Operations per second; "max" is unthrottled. */
export function parseRate(value: unknown, flag: string): number {
  if (value === 'max') return Infinity;
  const rate = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value);
  if (!(rate > 0 && Number.isFinite(rate))) {
    throw new UsageError(`${flag} must be a positive number of operations per second, or max, not "${String(value)}".`);
  }
  if (rate > maxRate) throw new UsageError(`${flag} must be at most ${maxRate} operations per second, or max.`);
  return rate;
}

/** A 32-bit seed, decimal or 0x hexadecimal. */
export function parseSeed(text: string): number {
  const seed = /^(0x[0-9a-f]{1,8}|\d{1,10})$/i.test(text.trim()) ? Number(text) : Number.NaN;
  if (!(seed >= 0 && seed <= 0xffffffff)) {
    throw new UsageError(`--seed must be a whole number from 0 to 4294967295 (0x… works too), not "${text}".`);
  }
  return seed;
}

/** "a,b,c" → its parts, none empty. */
export function parseList(text: string, flag: string): string[] {
  const parts = text.split(',').map((each) => each.trim());
  if (parts.some((each) => each === ''))
    throw new UsageError(`${flag} must be a list such as kill,pause, not "${text}".`);
  return parts;
}

/** "NAME=value" pairs. */
export function parseEnvironment(pairs: readonly string[], flag: string): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const pair of pairs) {
    const split = pair.indexOf('=');
    if (split <= 0) throw new UsageError(`${flag} must look like NAME=value, not "${pair}".`);
    environment[pair.slice(0, split)] = pair.slice(split + 1);
  }
  return environment;
}
