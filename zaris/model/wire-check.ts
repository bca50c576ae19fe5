/**
 * Cheap hand checks that decoders use on values that came off a wire. Each throws {@link CodecError}; what passes has the type it
 * is said to have. If one let something else through, a stranger's frame could stop a node by an assertion.
 */
import { fitsUtf8, maxNameBytes } from './limits.ts';

/** The bytes are no message of ours; the connection that brought them must be closed, nothing else. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
}

const shown = (value: unknown): string =>
  typeof value === 'object' ? (value === null ? 'null' : 'an object') : typeof value;

/** A whole number in [low, high]. */
export function readInt(value: unknown, what: string, low = 0, high = Number.MAX_SAFE_INTEGER): number {
  if (typeof value === 'number' && value >= low && value <= high && Number.isInteger(value)) return value;
  throw new CodecError(
    `${what}: ${typeof value === 'number' ? value : shown(value)} is no whole number from ${low} to ${high}`,
  );
}

/** Any number but NaN and the infinities. */
export function readFinite(value: unknown, what: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new CodecError(`${what}: no finite number`);
}

/** Well-formed text of at most `limitBytes` bytes of UTF-8. */
export function readText(value: unknown, what: string, limitBytes = maxNameBytes): string {
  if (typeof value !== 'string') throw new CodecError(`${what}: ${shown(value)} where text belongs`);
  if (!fitsUtf8(value, limitBytes)) throw new CodecError(`${what}: over ${limitBytes} bytes`);
  if (!value.isWellFormed()) throw new CodecError(`${what}: ill-formed text`);
  return value;
}

export function readBoolean(value: unknown, what: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new CodecError(`${what}: ${shown(value)} where a boolean belongs`);
}

/** An array of exactly `length` elements, or of at most `limit`. */
export function readArray(value: unknown, what: string, length: number | null, limit = 100_000): readonly unknown[] {
  if (!Array.isArray(value)) throw new CodecError(`${what}: ${shown(value)} where a list belongs`);
  if (length === null ? value.length > limit : value.length !== length) {
    throw new CodecError(`${what}: ${value.length} elements where ${length ?? `at most ${limit}`} belong`);
  }
  return value;
}

export function readRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new CodecError(`${what}: ${shown(value)} where an object belongs`);
}

/** The element of `words` at index `value`. */
export function readWord<T>(value: unknown, what: string, words: readonly T[]): T {
  return words[readInt(value, what, 0, words.length - 1)] as T;
}
