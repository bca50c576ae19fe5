/** What the whole time line shows: one window and one hovered moment, shared by every chart and lane. */

export interface TimeWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Closest zoom. */
const narrowestMs = 20;

export class TimeView {
  readonly whole: TimeWindow;
  window: TimeWindow;
  hoverMs: number | null = null;
  private readonly windowListeners: (() => void)[] = [];
  private readonly hoverListeners: (() => void)[] = [];

  constructor(whole: TimeWindow) {
    this.whole = whole;
    this.window = whole;
  }

  onWindow(listener: () => void): void {
    this.windowListeners.push(listener);
  }

  onHover(listener: () => void): void {
    this.hoverListeners.push(listener);
  }

  /** Clamped to the run and to the closest zoom. */
  show(fromMs: number, toMs: number): void {
    const full = this.whole.toMs - this.whole.fromMs;
    const width = Math.min(full, Math.max(narrowestMs, toMs - fromMs));
    const middle = (fromMs + toMs) / 2;
    const from = Math.max(this.whole.fromMs, Math.min(this.whole.toMs - width, middle - width / 2));
    this.window = { fromMs: from, toMs: from + width };
    for (const listener of this.windowListeners) listener();
  }

  showAll(): void {
    this.show(this.whole.fromMs, this.whole.toMs);
  }

  /** Below 1 zooms in; around the hovered moment, else the middle. */
  zoom(factor: number): void {
    const { fromMs, toMs } = this.window;
    const inside = this.hoverMs !== null && this.hoverMs >= fromMs && this.hoverMs <= toMs;
    const anchor = inside ? (this.hoverMs as number) : (fromMs + toMs) / 2;
    this.show(anchor - (anchor - fromMs) * factor, anchor + (toMs - anchor) * factor);
  }

  /** By a share of the window. */
  pan(share: number): void {
    const shift = (this.window.toMs - this.window.fromMs) * share;
    this.show(this.window.fromMs + shift, this.window.toMs + shift);
  }

  hover(atMs: number | null): void {
    this.hoverMs = atMs;
    for (const listener of this.hoverListeners) listener();
  }
}
