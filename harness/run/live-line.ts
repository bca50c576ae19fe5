/**
 * The one line that shows how a run goes: rewritten on a terminal, a plain line now and then elsewhere.
 */
import type { Tally } from './tally.ts';

const terminalEveryMs = 1_000;
const plainEveryMs = 10_000;

export interface LiveLineOptions {
  readonly out: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number };
  readonly tally: Tally;
  readonly nowMs: () => number;
  readonly durationMs: number;
}

/** "1:02:03" or "02:03". */
export function clockText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const two = (value: number): string => String(value).padStart(2, '0');
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return seconds >= 3_600 ? `${Math.floor(seconds / 3_600)}:${rest}` : rest;
}

/** The line's text. */
export function liveText(
  tally: Tally,
  phase: string,
  elapsedMs: number,
  durationMs: number,
  writesPerSecond: number,
): string {
  const count = (value: number): string => Math.round(value).toLocaleString('en-US');
  return [
    `${phase} ${clockText(elapsedMs)}/${clockText(durationMs)}`,
    `${count(tally.acknowledgedWrites)} acked writes (${count(writesPerSecond)}/s)`,
    `faults ${tally.faultsConfirmed} confirmed, ${tally.faultsOpen} open`,
    `failovers ${tally.failovers}`,
    `in flight ${tally.inFlight}`,
    `lost so far ${tally.losses}`,
  ].join(' · ');
}

export class LiveLine {
  private readonly options: LiveLineOptions;
  private timer: NodeJS.Timeout | null = null;
  private startedMs: number;
  private phase = 'start';
  private shown = false;

  constructor(options: LiveLineOptions) {
    this.options = options;
    this.startedMs = options.nowMs();
  }

  /** Starts to show the line; elapsed time counts from here. */
  start(phase: string): void {
    this.startedMs = this.options.nowMs();
    this.phase = phase;
    this.timer ??= setInterval(() => this.show(), this.options.out.isTTY === true ? terminalEveryMs : plainEveryMs);
  }

  /** Prints a line of its own, above the live line. */
  print(text: string): void {
    this.clear();
    this.options.out.write(`${text}\n`);
  }

  stop(): void {
    if (this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
    this.clear();
    this.options.out.write(`${this.text()}\n`);
  }

  private text(): string {
    const { tally, nowMs, durationMs } = this.options;
    const atMs = nowMs();
    return liveText(tally, this.phase, atMs - this.startedMs, durationMs, tally.writeRate(atMs));
  }

  private show(): void {
    const text = this.text();
    if (this.options.out.isTTY !== true) {
      this.options.out.write(`${text}\n`);
      return;
    }
    this.clear();
    const columns = this.options.out.columns ?? 120;
    this.options.out.write(text.length >= columns ? text.slice(0, columns - 1) : text);
    this.shown = true;
  }

  private clear(): void {
    if (!this.shown) return;
    this.options.out.write('\r\u001b[2K');
    this.shown = false;
  }
}
