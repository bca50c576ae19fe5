/**
 * What shows how a run goes: on a terminal two lines with bars, rewritten every second; elsewhere a plain line now and then, so
 * that the log of a night stays readable.
 */
import type { Tally } from './tally.ts';

const terminalEveryMs = 1_000;
/** Least time between two plain lines, ms. */
export const plainEveryMs = 10_000;
const barCells = 12;

export interface LiveLineOptions {
  readonly out: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number };
  readonly tally: Tally;
  readonly nowMs: () => number;
}

/** What a phase is measured by: the time it takes, or things done of all there are. */
export type Progress =
  | { readonly kind: 'time'; readonly totalMs: number }
  | { readonly kind: 'count'; readonly noun: string; readonly total: number; readonly done: () => number };

/** "1:02:03" or "02:03". */
export function clockText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const two = (value: number): string => String(value).padStart(2, '0');
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return seconds >= 3_600 ? `${Math.floor(seconds / 3_600)}:${rest}` : rest;
}

/** A bar of a share from 0 to 1; beyond them it is empty or full. */
export function barOf(share: number, cells = barCells): string {
  const filled = Math.round(Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)) * cells);
  return `[${'█'.repeat(filled)}${'░'.repeat(cells - filled)}]`;
}

const count = (value: number): string => Math.round(value).toLocaleString('en-US');

/** Where the phase stands: "03:12/10:00" or "12,000/31,000 keys", and the share that is done. */
export function standingOf(progress: Progress, elapsedMs: number): { readonly text: string; readonly share: number } {
  if (progress.kind === 'time')
    return {
      text: `${clockText(elapsedMs)}/${clockText(progress.totalMs)}`,
      share: progress.totalMs <= 0 ? 1 : elapsedMs / progress.totalMs,
    };
  const done = progress.done();
  return {
    text: `${count(done)}/${count(progress.total)} ${progress.noun}`,
    share: progress.total === 0 ? 1 : done / progress.total,
  };
}

/** The one line for logs. */
export function liveText(tally: Tally, phase: string, standing: string, writesPerSecond: number): string {
  return [
    `${phase} ${standing}`,
    `${count(tally.acknowledgedWrites)} acked writes (${count(writesPerSecond)}/s)`,
    `faults ${tally.faultsConfirmed} confirmed, ${tally.faultsOpen} open`,
    `failovers ${tally.failovers}`,
    `in flight ${tally.inFlight}`,
    `lost so far ${tally.losses}`,
  ].join(' · ');
}

/** The two lines for a terminal, each at most `columns` wide. */
export function liveLines(
  tally: Tally,
  phase: string,
  standing: { readonly text: string; readonly share: number },
  writesPerSecond: number,
  columns: number,
): readonly [string, string] {
  const faults = `faults ${barOf(tally.faultsPlanned === 0 ? 0 : tally.faultsDone / tally.faultsPlanned)} ${tally.faultsDone}/${tally.faultsPlanned}, ${tally.faultsOpen} open`;
  const numbers = [
    `${count(tally.acknowledgedWrites)} acked writes (${count(writesPerSecond)}/s)`,
    `failovers ${tally.failovers}`,
    `in flight ${tally.inFlight}`,
    `lost so far ${tally.losses}`,
  ].join(' · ');
  const cut = (text: string): string => (text.length >= columns ? text.slice(0, Math.max(0, columns - 1)) : text);
  return [
    cut(`${phase.padEnd(9)} ${barOf(standing.share)} ${standing.text}   ${faults}`),
    cut(`${' '.repeat(10)}${numbers}`),
  ];
}

interface Running {
  readonly phase: string;
  readonly progress: Progress;
  readonly startedMs: number;
  readonly timer: NodeJS.Timeout;
}

export class LiveLine {
  private readonly options: LiveLineOptions;
  private running: Running | null = null;
  private shown = false;

  constructor(options: LiveLineOptions) {
    this.options = options;
  }

  /** Starts to show a phase; a phase shown before ends. Elapsed time counts from here. */
  start(phase: string, progress: Progress): void {
    this.stop();
    const everyMs = this.options.out.isTTY === true ? terminalEveryMs : plainEveryMs;
    const timer = setInterval(() => this.show(), everyMs);
    this.running = { phase, progress, startedMs: this.options.nowMs(), timer };
  }

  /** Prints a line of its own, above the live lines. */
  print(text: string): void {
    this.clear();
    this.options.out.write(`${text}\n`);
  }

  /** Ends the phase with its last line, which stays. */
  stop(): void {
    const { running } = this;
    if (running === null) return;
    clearInterval(running.timer);
    this.clear();
    this.options.out.write(`${this.text(running)}\n`);
    this.running = null;
  }

  private text(running: Running): string {
    const { tally, nowMs } = this.options;
    const atMs = nowMs();
    const standing = standingOf(running.progress, atMs - running.startedMs);
    return liveText(tally, running.phase, standing.text, tally.writeRate(atMs));
  }

  private show(): void {
    const { running } = this;
    if (running === null) return;
    const { out, tally, nowMs } = this.options;
    if (out.isTTY !== true) {
      out.write(`${this.text(running)}\n`);
      return;
    }
    const atMs = nowMs();
    const standing = standingOf(running.progress, atMs - running.startedMs);
    const lines = liveLines(tally, running.phase, standing, tally.writeRate(atMs), out.columns ?? 120);
    this.clear();
    out.write(lines.join('\n'));
    this.shown = true;
  }

  private clear(): void {
    if (!this.shown) return;
    // The second line, then the one above it.
    this.options.out.write('\r\u001b[2K\u001b[1A\u001b[2K');
    this.shown = false;
  }
}
