/**
 * Runs one command of the host to its end, with a bound on its time and output.
 *
 * It never rejects: what went wrong is in the result, so that callers decide what a failure means. Without the time
 * bound a stuck tool would hang a run for ever.
 */
import { execFile } from 'node:child_process';

/** How a command ended; `exitCode` is -1 when it could not run, was killed or timed out. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

export interface CommandOptions {
  readonly timeoutMs?: number;
  /** Written to standard input, which is then closed. */
  readonly input?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const defaultTimeoutMs = 10_000;
const maxOutputBytes = 8 * 1024 * 1024;

/** Runs `file` with `args`; resolves when it has ended. */
export function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = execFile(
      file,
      [...args],
      {
        timeout: options.timeoutMs ?? defaultTimeoutMs,
        killSignal: 'SIGKILL',
        maxBuffer: maxOutputBytes,
        // Of bash: a file that it would read before any script.
        env: { ...process.env, LC_ALL: 'C', BASH_ENV: '', ...options.env },
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      },
      (error, stdout, stderr) => {
        const code: unknown = error?.code;
        resolve({
          exitCode: error === null ? 0 : typeof code === 'number' ? code : -1,
          stdout,
          stderr: stderr === '' && error !== null && typeof code !== 'number' ? error.message : stderr,
          timedOut: error?.killed === true,
        });
      },
    );
    // A command that ends before it has read its input breaks the pipe; its exit code tells that, not this.
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.input ?? '');
  });
}

/**
 * The words that run a bash script, and nothing else. A program started by Node has a socket for standard input; bash then takes itself
 * for a remote shell and reads the user's ~/.bashrc first, which may cost more than the script, or print into its output.
 */
export const bashWords = (script: string): readonly [string, ...string[]] => ['bash', '--norc', '-c', script];

/** Runs a bash script of the host's; see {@link bashWords}. */
export function runBash(script: string, timeoutMs: number): Promise<CommandResult> {
  const [file, ...args] = bashWords(script);
  return runCommand(file, args, { timeoutMs });
}

/** The last non-empty line of a command's output, for one-sentence messages. */
export function lastLine(result: CommandResult): string {
  const lines = `${result.stdout}\n${result.stderr}`.split('\n').filter((line) => line.trim() !== '');
  return lines.at(-1)?.trim() ?? (result.timedOut ? 'timed out' : `exit code ${result.exitCode}`);
}
