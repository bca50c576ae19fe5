/** The harness's side of its warden: starts it, asks it, ends it. */
import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EnvironmentError } from '../../../docker/errors.ts';
import { currentHost } from '../../../docker/labels.ts';
import type { ProcessName, WardenAnswers, WardenCommand, WardenReply } from './commands.ts';

const entry = fileURLToPath(new URL('warden.ts', import.meta.url));
const answerTimeoutMs = 10_000;

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A running warden. */
export class WardenClient {
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;
  private ended: string | null = null;

  /** `seed` decides which bytes a lossy link loses; what it says when it breaks goes to `logFile`. */
  constructor(seed: number, logFile: string) {
    const log = openSync(logFile, 'a');
    // In a session of its own: Ctrl-C in a terminal reaches the harness only, which winds the run down.
    this.child = fork(entry, [String(seed)], { detached: true, stdio: ['ignore', log, log, 'ipc'] });
    closeSync(log);
    this.child.on('message', (reply: WardenReply) => this.answered(reply));
    this.child.once('exit', (code, signal) => this.end(`it ended (${signal ?? code})`));
    this.child.once('error', (error) => this.end(error.message));
  }

  /** Null once it is gone. */
  get name(): ProcessName | null {
    const { pid } = this.child;
    const startTicks = pid === undefined ? null : currentHost().startTicks(pid);
    return pid === undefined || startTicks === null ? null : { pid, startTicks };
  }

  /** Rejects with EnvironmentError when the warden is gone, with Error when it could not do it. */
  async ask<K extends WardenCommand['kind']>(
    command: Extract<WardenCommand, { kind: K }>,
    timeoutMs = answerTimeoutMs,
  ): Promise<WardenAnswers[K]> {
    if (this.ended !== null) throw new EnvironmentError(`The proxy of the cluster is gone: ${this.ended}.`);
    const id = this.nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.waiting.set(id, { resolve, reject });
    const timer = setTimeout(
      () => reject(new Error(`The proxy did not answer to ${command.kind} within ${timeoutMs} ms.`)),
      timeoutMs,
    );
    this.child.send({ id, command });
    try {
      return (await promise) as WardenAnswers[K];
    } finally {
      clearTimeout(timer);
      this.waiting.delete(id);
    }
  }

  /** Ends it, and with it every guarded process that still runs. */
  async close(): Promise<void> {
    if (this.ended !== null) return;
    const exited = new Promise<void>((resolve) => this.child.once('exit', () => resolve()));
    this.child.disconnect();
    await exited;
  }

  /** Lets the harness end without it. */
  release(): void {
    this.child.unref();
    this.child.channel?.unref();
  }

  private answered({ id, answer, error }: WardenReply): void {
    const waiting = this.waiting.get(id);
    if (error === undefined) waiting?.resolve(answer);
    else waiting?.reject(new Error(error));
  }

  private end(why: string): void {
    this.ended ??= why;
    for (const { reject } of this.waiting.values())
      reject(new EnvironmentError(`The proxy of the cluster is gone: ${why}.`));
  }
}
