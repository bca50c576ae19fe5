/** The one error that a user of `check` can cause: what is wrong, where, in one sentence. */

/** Exit code for it (sysexits' EX_USAGE, as all our commands use it). */
export const userErrorExitCode = 64;

/** A file or an option that cannot be used. `line` counts from 1 and is null where there is none. */
export class UserError extends Error {
  override readonly name = 'UserError';
  readonly exitCode = userErrorExitCode;
  readonly line: number | null;

  constructor(reason: string, line: number | null = null) {
    super(line === null ? reason : `line ${line}: ${reason}`);
    this.line = line;
  }
}
