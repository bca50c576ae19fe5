/**
 * SIGINT and SIGTERM: the first asks the run to end early and be judged, the second to stop at once (and still clean up).
 */
export type InterruptSignal = 'SIGINT' | 'SIGTERM';

export class Interruption {
  private readonly soft = new AbortController();
  private readonly hard = new AbortController();
  private name: InterruptSignal | null = null;

  /** The first signal's name, or null. */
  get signalName(): InterruptSignal | null {
    return this.name;
  }

  /** Aborted at the first signal. */
  get early(): AbortSignal {
    return this.soft.signal;
  }

  /** Aborted at the second signal. */
  get atOnce(): AbortSignal {
    return this.hard.signal;
  }

  /** Takes in one signal. */
  received(signal: InterruptSignal): void {
    if (this.name === null) {
      this.name = signal;
      this.soft.abort(signal);
    } else this.hard.abort(signal);
  }
}

/** Resolves when the signal is aborted (or was already). */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
