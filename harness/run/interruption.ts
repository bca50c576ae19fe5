/**
 * What ends a run from outside its loop: SIGINT and SIGTERM (the first asks to end early and be judged, the second to stop at once and
 * still clean up), and errors that nobody caught.
 */
export type InterruptSignal = 'SIGINT' | 'SIGTERM';

export class Interruption {
  private readonly soft = new AbortController();
  private readonly hard = new AbortController();
  private name: InterruptSignal | null = null;
  private error: { readonly error: unknown } | null = null;
  private listening = false;

  /** The first signal's name, or null. */
  get signalName(): InterruptSignal | null {
    return this.name;
  }

  /** The first uncaught error, or null. */
  get uncaught(): { readonly error: unknown } | null {
    return this.error;
  }

  /** Aborted at the first signal or uncaught error. */
  get early(): AbortSignal {
    return this.soft.signal;
  }

  /** Aborted at the second signal, or at an uncaught error after the first. */
  get atOnce(): AbortSignal {
    return this.hard.signal;
  }

  /** Somebody will clean up after an uncaught error; until then it ends the process at once. */
  listen(): void {
    this.listening = true;
  }

  /** Takes in one signal. */
  received(signal: InterruptSignal): void {
    if (this.soft.signal.aborted) this.hard.abort(signal);
    this.name ??= signal;
    this.soft.abort(signal);
  }

  /** Takes in an uncaught error; false when nobody will clean up, or one came before. */
  fatal(error: unknown): boolean {
    if (!this.listening || this.error !== null) return false;
    this.error = { error };
    this.soft.abort(error);
    this.hard.abort(error);
    return true;
  }
}

/** Resolves when the signal is aborted (or was already). */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
