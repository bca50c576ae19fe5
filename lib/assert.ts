/**
 * Assertions that stay on in production.
 *
 * A failed assertion is a programmer's error: the caller's state can no longer be trusted, so the process (or the
 * simulated node) must stop rather than go on and acknowledge something it cannot keep.
 */

/** Thrown by {@link assert}; never caught to carry on, only to report and stop. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** Throws {@link AssertionError} with `why` unless `condition` holds. */
export function assert(condition: unknown, why: string): asserts condition {
  if (!condition) throw new AssertionError(why);
}

/** Marks a branch that the types say cannot be reached; throws if it is. */
export function unreachable(value: never, where = 'switch'): never {
  throw new AssertionError(`unreachable ${where}: ${JSON.stringify(value)}`);
}

/** Returns `value`, or throws {@link AssertionError} when it is null or undefined. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new AssertionError(`missing: ${what}`);
  return value;
}
