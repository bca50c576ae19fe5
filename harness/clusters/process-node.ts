/**
 * One node of the process cluster: its process, its disk, its log, over all its incarnations.
 *
 * Invariant: `state` is what the kernel says where it can be asked, not what was ordered; a stop or a kill has happened when
 * its promise resolves.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NodeState } from '../../chaos/ports.ts';
import { currentHost } from '../../docker/labels.ts';
import { kernelState } from './kernel-state.ts';
import type { NodePorts, ProcessName } from './links/commands.ts';
import { keepWord, sourceVariable } from './links/node-words.ts';

const preload = new URL('links/node-preload.ts', import.meta.url).href;
const logTailChars = 4_000;
const pollMs = 5;
const stopTimeoutMs = 2_000;

export interface ProcessNodeOptions {
  readonly nodeId: string;
  readonly index: number;
  /** Where the process listens. */
  readonly ports: NodePorts;
  /** Where it is reached. */
  readonly proxied: NodePorts;
  readonly probePort: number;
  /** Empty: the host's only one. */
  readonly sourceAddress: string;
  readonly program: string;
  /** Runs this instead of `program`; it may have children of its own, which share its fate. */
  readonly command?: () => readonly string[];
  readonly workingDirectory: string;
  readonly disk: string;
  readonly logsDir: string;
  readonly environment: () => Record<string, string>;
  readonly nowMs: () => number;
}

/** A node; not running at first. */
export class ProcessNode {
  readonly options: ProcessNodeOptions;
  private child: ChildProcess | null = null;
  private last: NodeState = { kind: 'absent' };
  private starts = 0;
  private isPauseOrdered = false;

  constructor(options: ProcessNodeOptions) {
    this.options = options;
  }

  /** The running process, or null. */
  get process(): ProcessName | null {
    const pid = this.child?.pid;
    if (pid === undefined) return null;
    const startTicks = currentHost().startTicks(pid);
    return startTicks === null ? null : { pid, startTicks };
  }

  async start(): Promise<void> {
    if (this.child !== null) return;
    const { options } = this;
    mkdirSync(options.disk, { recursive: true });
    this.starts++;
    this.isPauseOrdered = false;
    const instance = `${options.nodeId}-${this.starts}`;
    // Straight to the file: the log of a node does not pass through the run loop, and outlives it.
    const log = openSync(this.logFile, 'a');
    const [file = '', ...words] = options.command?.() ?? [process.execPath, '--import', preload, options.program];
    const child = spawn(file, words, {
      cwd: options.workingDirectory,
      env: { ...process.env, ...options.environment(), [sourceVariable]: options.sourceAddress },
      stdio: ['pipe', log, log],
      // In a session of its own: Ctrl-C in a terminal reaches the harness only, which winds the run down.
      detached: true,
    });
    closeSync(log);
    this.child = child;
    child.stdin?.on('error', () => undefined);
    child.once('exit', (code, signal) => {
      if (this.child === child) this.child = null;
      this.last = { kind: 'exited', instance, exitCode: code ?? (signal === 'SIGKILL' ? 137 : 143), oomKilled: false };
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error) => {
        this.child = null;
        reject(error);
      });
    });
    this.last = { kind: 'running', since: options.nowMs(), instance };
  }

  /** SIGKILL, or SIGTERM and SIGKILL after `graceMs`. Resolves once the process is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM', graceMs: number): Promise<void> {
    const { child } = this;
    if (child === null) return;
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    this.signal(child, signal);
    if (signal === 'SIGTERM') {
      // A frozen process takes the signal only once it runs.
      this.signal(child, 'SIGCONT');
      const timer = setTimeout(() => this.signal(child, 'SIGKILL'), graceMs);
      await exited;
      clearTimeout(timer);
    } else await exited;
  }

  async pause(): Promise<void> {
    this.isPauseOrdered = true;
    if (this.child !== null) this.signal(this.child, 'SIGSTOP');
    await this.until('paused');
  }

  async resume(): Promise<void> {
    this.isPauseOrdered = false;
    if (this.child !== null) this.signal(this.child, 'SIGCONT');
    await this.until('running');
  }

  /** To the process, or to its whole group where it is a command. A process that is gone takes no signal, and that is fine. */
  private signal(child: ChildProcess, signal: NodeJS.Signals): void {
    if (this.options.command === undefined || child.pid === undefined) {
      child.kill(signal);
      return;
    }
    try {
      process.kill(-child.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  /** Takes the disk; the node must not run. */
  wipe(): void {
    rmSync(this.options.disk, { recursive: true, force: true });
    this.last = { kind: 'absent' };
  }

  state(): NodeState {
    const { child, last } = this;
    if (child?.pid === undefined || (last.kind !== 'running' && last.kind !== 'paused')) return last;
    const { instance } = last;
    const letter = kernelState(child.pid);
    const isPaused = letter === null ? this.isPauseOrdered : letter === 'T' || letter === 't';
    if (isPaused) this.last = { kind: 'paused', instance };
    else if (last.kind === 'paused') this.last = { kind: 'running', since: this.options.nowMs(), instance };
    return this.last;
  }

  /** Tells the process to stay when the harness ends. */
  keep(): void {
    this.child?.stdin?.write(keepWord);
    this.child?.unref();
    (this.child?.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  }

  logTail(): string {
    try {
      return readFileSync(this.logFile, 'utf8').slice(-logTailChars);
    } catch {
      return '';
    }
  }

  private get logFile(): string {
    return join(this.options.logsDir, `${this.options.nodeId}-${this.starts}.log`);
  }

  /** A signal is sent at once and takes hold soon. */
  private async until(kind: 'paused' | 'running'): Promise<void> {
    const untilMs = this.options.nowMs() + stopTimeoutMs;
    while (this.child !== null && this.state().kind !== kind) {
      if (this.options.nowMs() > untilMs) throw new Error(`${this.options.nodeId} is not ${kind} after a signal.`);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }
}

/** The folder of this project. */
export const projectDir = fileURLToPath(new URL('../..', import.meta.url));
