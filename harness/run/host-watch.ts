/**
 * Watches the host under the run: whether the harness itself was held up, whether the wall clock was set, whether the disk runs full.
 *
 * What happens while the harness does not run, it cannot have seen: such a stretch is a gap of the ledger, and is never laid at the
 * store's door. Invariant: the monotonic clock decides; the wall clock is only compared with it.
 */
import type { Clock } from '../../lib/clock.ts';

/** Pause between two looks, ms. */
export const hostLookMs = 250;
/** A tick that comes so much too late means that the harness was held up, ms. */
export const heldUpMs = 5_000;
/** The wall clock may drift from the monotonic one by so much between two looks, ms. */
const clockStepMs = 1_000;

export type HostTrouble =
  /** Nothing ran here from one moment to the other, monotonic ms. */
  | { readonly kind: 'held-up'; readonly fromMs: number; readonly toMs: number }
  /** The wall clock moved by so much more than time passed; a suspended machine looks like this too. */
  | { readonly kind: 'clock-step'; readonly atMs: number; readonly byMs: number }
  | { readonly kind: 'disk-low'; readonly freeBytes: number };

export interface HostWatchOptions {
  readonly clock: Clock;
  /** Free bytes where the results lie. */
  readonly freeBytes: () => number;
  /** Below this the ledger takes no new operations. */
  readonly leastFreeBytes: number;
  readonly onTrouble: (trouble: HostTrouble) => void;
}

export class HostWatch {
  private readonly options: HostWatchOptions;
  private lastMs: number;
  private lastWallMs: number;
  private timer: NodeJS.Timeout | null = null;
  private saidDisk = false;
  /** How late a look was at worst, ms: what else ran here was held up as long. */
  latenessMs = 0;

  constructor(options: HostWatchOptions) {
    this.options = options;
    this.lastMs = options.clock.nowMs();
    this.lastWallMs = options.clock.wallMs();
  }

  start(): void {
    this.timer ??= setInterval(() => this.look(), hostLookMs).unref();
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  /** One look; called by the timer. */
  look(): void {
    const { clock, onTrouble, freeBytes, leastFreeBytes } = this.options;
    const nowMs = clock.nowMs();
    const wallMs = clock.wallMs();
    const passedMs = nowMs - this.lastMs;
    const steppedMs = wallMs - this.lastWallMs - passedMs;
    this.latenessMs = Math.max(this.latenessMs, passedMs - hostLookMs);
    if (passedMs > hostLookMs + heldUpMs) onTrouble({ kind: 'held-up', fromMs: this.lastMs, toMs: nowMs });
    if (Math.abs(steppedMs) > clockStepMs) onTrouble({ kind: 'clock-step', atMs: nowMs, byMs: steppedMs });
    this.lastMs = nowMs;
    this.lastWallMs = wallMs;
    const free = freeBytes();
    if (!this.saidDisk && free > 0 && free < leastFreeBytes) {
      this.saidDisk = true;
      onTrouble({ kind: 'disk-low', freeBytes: free });
    }
  }
}

/** One sentence for people. */
export function troubleText(trouble: HostTrouble): string {
  switch (trouble.kind) {
    case 'held-up':
      return `This machine did not run the harness for ${seconds(trouble.toMs - trouble.fromMs)} (paused, or without processor time)`;
    case 'clock-step': {
      const direction = trouble.byMs > 0 ? 'forward' : 'back';
      return `The wall clock of this machine went ${direction} by ${seconds(Math.abs(trouble.byMs))} (set, or the machine was suspended); the run counts time on its monotonic clock`;
    }
    case 'disk-low':
      return `Only ${Math.floor(trouble.freeBytes / 1e6)} MB are free for the ledger; no new operation is started`;
  }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
