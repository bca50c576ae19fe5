/**
 * What every bench is given: how long it may take, where it may write, whom it tells, and the clean-up stack.
 *
 * Invariant: whatever a bench starts is pushed on a stack that runs at its end, on the first Ctrl-C, and, as far as it can without
 * waiting, when the process exits. A left-over server would take the CPU from the next measurement.
 */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';

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
  return new Promise((settle, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      settle();
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
  /** How it ended, or null while it runs. */
  exit(): string | null;
  /** Sends the signal, SIGKILL after `graceMs` where that is not enough, and resolves when it has ended. */
  end(signal: 'SIGTERM' | 'SIGKILL', graceMs: number): Promise<void>;
}

/** Has the kernel kill what it runs when this process dies, however it dies. */
const parentDeath = '/usr/bin/setpriv';

/** Starts a program with its output in `LOG.log`, a path or a name in `workDir`. Rejects when it cannot be started. */
export async function startProgram(
  context: BenchContext,
  log: string,
  command: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>> = {},
): Promise<RunningProgram> {
  const output = openSync(`${resolve(context.workDir, log)}.log`, 'a');
  const words = existsSync(parentDeath) ? [parentDeath, '--pdeathsig', 'KILL', ...command] : command;
  const [file = '', ...args] = words;
  const child = spawn(file, args, {
    stdio: ['ignore', output, output],
    cwd: context.workDir,
    env: { ...process.env, ...environment },
  });
  closeSync(output);
  let ended: string | null = null;
  const exited = new Promise<void>((settle) => {
    child.once('exit', (code, signal) => {
      ended = `${log} ended with ${signal ?? `exit code ${code}`}`;
      settle();
    });
  });
  await new Promise<void>((settle, reject) => {
    child.once('spawn', settle);
    child.once('error', reject);
  });
  const forget = atExit(() => child.kill('SIGKILL'));
  const end = async (signal: 'SIGTERM' | 'SIGKILL', graceMs: number): Promise<void> => {
    if (ended === null) child.kill(signal);
    const timer = signal === 'SIGTERM' ? setTimeout(() => child.kill('SIGKILL'), graceMs) : undefined;
    await exited;
    clearTimeout(timer);
    forget();
  };
  return { pid: child.pid as number, exit: () => ended, end, [Symbol.asyncDispose]: () => end('SIGKILL', 0) };
}
