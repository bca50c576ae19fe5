/** Draws rows of spans on one canvas, in the window of the time view. Knows nothing of what the rows mean. */
import { element } from './element.ts';
import type { Fill, LaneRow, Span } from './lane-rows.ts';
import { makePattern, type Palette, type PatternName } from './palette.ts';
import type { TimeView } from './time-view.ts';

export interface Geometry {
  /** Left of the plot, for labels; the same for charts and lanes. */
  gutterPx: number;
  /** Right of the plot. */
  marginPx: number;
  widthPx: number;
}

interface LaneOptions {
  readonly rows: readonly LaneRow[];
  readonly rowPx: number;
  readonly gapPx: number;
  readonly description: string;
}

const patternNames: readonly PatternName[] = ['stripes', 'hatch', 'dots', 'cross'];

export class Lanes {
  readonly canvas: HTMLCanvasElement;
  private options: LaneOptions;
  private readonly view: TimeView;
  private readonly geometry: Geometry;
  private patterns = new Map<PatternName, CanvasPattern>();
  private palette: Palette;

  constructor(options: LaneOptions, view: TimeView, geometry: Geometry, palette: Palette) {
    this.options = options;
    this.view = view;
    this.geometry = geometry;
    this.palette = palette;
    this.canvas = element('canvas', { role: 'img', 'aria-label': options.description });
  }

  get heightPx(): number {
    return this.options.rows.length * (this.options.rowPx + this.options.gapPx) + this.options.gapPx;
  }

  setRows(rows: readonly LaneRow[], rowPx: number, gapPx: number): void {
    this.options = { ...this.options, rows, rowPx, gapPx };
    this.draw();
  }

  setPalette(palette: Palette): void {
    this.palette = palette;
    this.patterns = new Map();
  }

  /** What lies at a time and a height of the canvas; null for nothing. */
  hintAt(atMs: number, y: number): string | null {
    const row = this.options.rows[Math.floor(y / (this.options.rowPx + this.options.gapPx))];
    if (row === undefined) return null;
    const perPx = (this.view.window.toMs - this.view.window.fromMs) / this.plotPx();
    const close =
      row.spans.length === 0 ? row.marks.find((mark) => Math.abs(mark.atMs - atMs) <= perPx * 5) : undefined;
    if (close !== undefined) return close.hint;
    const exact = row.spans.find((span) => span.fromMs <= atMs && atMs < span.toMs);
    return (
      (exact ?? row.spans.find((span) => span.fromMs - perPx * 2 <= atMs && atMs < span.toMs + perPx * 2))?.hint ?? null
    );
  }

  private plotPx(): number {
    return Math.max(1, this.geometry.widthPx - this.geometry.gutterPx - this.geometry.marginPx);
  }

  draw(): void {
    const scale = devicePixelRatio;
    this.canvas.width = Math.round(this.geometry.widthPx * scale);
    this.canvas.height = Math.round(this.heightPx * scale);
    this.canvas.style.width = `${this.geometry.widthPx}px`;
    this.canvas.style.height = `${this.heightPx}px`;
    const pen = this.canvas.getContext('2d') as CanvasRenderingContext2D;
    pen.scale(scale, scale);
    if (this.patterns.size === 0) {
      for (const name of patternNames) this.patterns.set(name, makePattern(pen, name, this.palette.soft));
    }
    const { rows, rowPx, gapPx } = this.options;
    for (const [index, row] of rows.entries()) {
      const top = gapPx + index * (rowPx + gapPx);
      const everyNth = rowPx >= 11 ? 1 : Math.ceil(11 / (rowPx + gapPx));
      if (index % everyNth === 0) this.drawLabel(pen, row, top);
      this.drawRow(pen, row, top);
    }
  }

  private drawLabel(pen: CanvasRenderingContext2D, row: LaneRow, top: number): void {
    const { gutterPx } = this.geometry;
    const middle = top + this.options.rowPx / 2;
    pen.font = '11px system-ui, sans-serif';
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    pen.fillStyle = this.palette.soft;
    const swatchPx = row.swatch === null ? 0 : 14;
    pen.fillText(row.label, gutterPx - 8 - swatchPx, middle + 0.5, gutterPx - 10 - swatchPx);
    if (row.swatch === null) return;
    pen.fillStyle = this.palette.owners[row.swatch % this.palette.owners.length] ?? this.palette.soft;
    pen.fillRect(gutterPx - 16, middle - 5, 10, 10);
  }

  private drawRow(pen: CanvasRenderingContext2D, row: LaneRow, top: number): void {
    const { fromMs, toMs } = this.view.window;
    const { gutterPx } = this.geometry;
    const plotPx = this.plotPx();
    const x = (atMs: number): number => gutterPx + ((atMs - fromMs) / (toMs - fromMs)) * plotPx;
    pen.save();
    pen.beginPath();
    pen.rect(gutterPx, top - this.options.gapPx, plotPx, this.options.rowPx + 2 * this.options.gapPx);
    pen.clip();
    if (row.spans.length === 0) {
      pen.fillStyle = this.palette.faint;
      pen.fillRect(gutterPx, top + this.options.rowPx / 2, plotPx, 1);
    }
    for (const span of row.spans) {
      if (span.toMs <= fromMs || span.fromMs >= toMs) continue;
      const left = Math.max(gutterPx, x(span.fromMs));
      const right = Math.min(gutterPx + plotPx, x(span.toMs));
      this.drawSpan(pen, span, left, Math.max(1.2, right - left), top);
    }
    for (const mark of row.marks) {
      if (mark.atMs >= fromMs && mark.atMs <= toMs) this.drawMark(pen, x(mark.atMs), top, row.spans.length > 0);
    }
    pen.restore();
  }

  /** A failover is a thin line over its row; a finding a triangle. */
  private drawMark(pen: CanvasRenderingContext2D, x: number, top: number, line: boolean): void {
    if (line) {
      pen.fillStyle = this.palette.ink;
      pen.fillRect(x - 0.5, top, 1, this.options.rowPx);
      return;
    }
    pen.fillStyle = this.palette.bad;
    pen.beginPath();
    pen.moveTo(x - 4, top + 1);
    pen.lineTo(x + 4, top + 1);
    pen.lineTo(x, top + this.options.rowPx - 1);
    pen.fill();
  }

  private drawSpan(pen: CanvasRenderingContext2D, span: Span, left: number, width: number, top: number): void {
    const { rowPx } = this.options;
    this.paint(pen, span.fill, left, width, top);
    if (rowPx < 11 || width < 9) return;
    pen.font = '10px system-ui, sans-serif';
    pen.textAlign = 'left';
    pen.textBaseline = 'middle';
    const label = span.labels.find((text) => pen.measureText(text).width <= width - 6);
    if (label === undefined) return;
    if (span.fill.kind === 'pattern' || (span.fill.kind === 'owner' && span.fill.health !== 'Healthy')) {
      pen.fillStyle = this.palette.paper;
      pen.globalAlpha = 0.85;
      pen.fillRect(left + 2, top + 1, pen.measureText(label).width + 3, rowPx - 2);
      pen.globalAlpha = 1;
    }
    const dark =
      span.fill.kind === 'solid' ||
      span.fill.kind === 'soft' ||
      (span.fill.kind === 'owner' && span.fill.health === 'Lost');
    pen.fillStyle = dark ? this.palette.paper : this.palette.ink;
    pen.fillText(label, left + 3, top + rowPx / 2 + 0.5);
  }

  private paint(pen: CanvasRenderingContext2D, fill: Fill, left: number, width: number, top: number): void {
    const { rowPx } = this.options;
    const block = (style: string | CanvasPattern | undefined, from = 0, to = rowPx): void => {
      pen.fillStyle = style ?? this.palette.soft;
      pen.fillRect(left, top + from, width, to - from);
    };
    switch (fill.kind) {
      case 'faint':
        return block(this.palette.faint, rowPx * 0.3, rowPx * 0.7);
      case 'solid':
        return block(this.palette.ink);
      case 'soft':
        return block(this.palette.soft);
      case 'bad':
        return block(this.palette.bad);
      case 'pattern':
        block(this.palette.faint);
        return block(this.patterns.get(fill.name));
      case 'owner':
        return this.paintOwner(block, fill.owner, fill.health);
    }
  }

  private paintOwner(
    block: (style: string | CanvasPattern | undefined, from?: number, to?: number) => void,
    owner: number,
    health: string,
  ): void {
    const { rowPx } = this.options;
    const colour = owner === -1 ? this.palette.faint : this.palette.owners[owner % this.palette.owners.length];
    block(colour);
    switch (health) {
      case 'Healthy':
        return;
      case 'Degraded':
        return block(this.palette.ink, rowPx - Math.max(1.5, rowPx / 5));
      case 'Recovering':
        return block(this.patterns.get('hatch'));
      case 'Lost':
        return block(this.palette.ink);
      default:
        return block(this.patterns.get('cross'));
    }
  }
}
