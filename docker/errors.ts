/**
 * The one error that says "this machine cannot run it": engine, image, host or network missing.
 *
 * It ends the run with exit code 4 and its message alone, so the message is one sentence that says what to do. If an
 * environment's failure were thrown as anything else, the harness would report it as its own fault (70), or worse, as
 * a finding about the store.
 */

/** The exit code of a run that its environment stopped. */
export const environmentExitCode = 4;

/** Thrown when the engine, an image or a tool of the host is not to be had; `message` is one sentence for the user. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
  readonly exitCode = environmentExitCode;
}

/** The message of anything thrown, on one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/\s+/g, ' ').trim();
}
