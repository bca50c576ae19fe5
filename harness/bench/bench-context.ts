/**
 * What every bench is given: how long it may take, where it may write, whom it tells, and the clean-up stack.
 *
 * Invariant: whatever a bench starts is pushed on a stack that runs at its end, on the first Ctrl-C, and, as far as it can without
 * waiting, when the process exits. A left-over server would take the CPU from the next measurement.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';

export interface BenchContext {
  /** A short version, to see that everything works; its figures are worth little. */
  readonly isQuick: boolean;
  /** Containers instead of local processes where a bench knows both. */
  readonly isDocker: boolean;
  /** A folder of this run that is removed at its end. */
  readonly workDir: string;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** The result, for standard output. */
  readonly print: (text: string) => void;
  /** Progress, for standard error. */
  readonly say: (line: string) => void;
}

/** Throws when Ctrl-C was pressed. */
export function checkGoing(context: BenchContext): void {
  context.signal.throwIfAborted();
}

/** Waits; rejects at once on Ctrl-C. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

const endings = new Set<() => void>();
process.on('exit', () => {
  for (const end of endings) end();
});

/** Runs `end` when the process exits, unless the returned function was called before. It must not wait for anything. */
export function atExit(end: () => void): () => void {
  endings.add(end);
  return () => endings.delete(end);
}

/** A program that runs until it is disposed of. */
export interface RunningProgram extends AsyncDisposable {
  readonly pid: number;
  /** Non-null once it has ended. */
  exit(): string | null;
}

/** Starts a program with its output in `workDir/NAME.log`. Rejects when it cannot be started. */
export async function startProgram(
  context: BenchContext,
  name: string,
  command: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>> = {},
): Promise<RunningProgram> {
  mkdirSync(context.workDir, { recursive: true });
  const log = openSync(join(context.workDir, `${name}.log`), 'a');
  const [file, ...args] = command;
  const child: ChildProcess = spawn(file, args, {
    stdio: ['ignore', log, log],
    cwd: context.workDir,
    env: { ...process.env, ...environment },
  });
  closeSync(log);
  let ended: string | null = null;
  const exited = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      ended = `${name} ended with ${signal ?? `exit code ${code}`}`;
      resolve();
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  const forget = atExit(() => child.kill('SIGKILL'));
  return {
    pid: child.pid as number,
    exit: () => ended,
    async [Symbol.asyncDispose]() {
      if (ended === null) child.kill('SIGKILL');
      await exited;
      forget();
    },
  };
}
