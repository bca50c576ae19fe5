/**
 * The errors that the command line turns into a sentence and an exit code. Everything else that is thrown is a fault of
 * the harness and ends in 70; taking one for the user's error would hide a bug behind a usage message.
 */

/** The user asked for something that cannot be: one sentence that says what is wrong and what to do. Exit 64. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The store did not come back (or never came up) within a phase's time limit. Exit 2. */
export class NotRecoveredError extends Error {
  override readonly name = 'NotRecoveredError';
}

/** The message of whatever was thrown, as one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, ' ').trim();
}
