/** The three charts, on uPlot: acknowledged per second, latency, refusals. Faults are shaded behind; pointer and zoom belong to the time line. */
import type UPlot from 'uplot';
import type { RunReport } from '../model.ts';
import { formatCount, formatDuration, formatOffset } from '../text.ts';
import { element } from './element.ts';
import type { Geometry } from './lanes.ts';
import type { Palette } from './palette.ts';
import type { TimeView } from './time-view.ts';

declare const uPlot: typeof UPlot;

interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  readonly dash: readonly number[];
  readonly format: (value: number) => string;
}

interface ChartPlan {
  readonly title: string;
  readonly heightPx: number;
  readonly log: boolean;
  readonly lines: readonly Line[];
}

/** Told apart by dash as well as by colour. */
const dashes: readonly (readonly number[])[] = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4]];

const axisStepsMs = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3,
  7200e3, 14400e3,
];

function plans(report: RunReport): ChartPlan[] {
  const { series } = report;
  // Round seconds are the axis's own labels; in minutes they would not fit beside it.
  const milliseconds = (value: number): string =>
    value >= 60e3 && value % 1e3 === 0 ? `${formatCount(value / 1e3)} s` : formatDuration(value);
  const counted = (value: number): string => formatCount(value);
  const line = (label: string, values: readonly (number | null)[], index: number, format: Line['format']): Line => ({
    label,
    values,
    format,
    dash: dashes[index % dashes.length] ?? [],
  });
  return [
    {
      title: 'Acknowledged',
      heightPx: 130,
      log: false,
      lines: [line('per second', series.ackedPerSecond, 0, counted)],
    },
    {
      title: 'Latency',
      heightPx: 150,
      log: true,
      lines: [
        line('p50', series.p50Ms, 0, milliseconds),
        line('p99', series.p99Ms, 1, milliseconds),
        line('max', series.maxMs, 2, milliseconds),
      ],
    },
    {
      title: 'Refusals',
      heightPx: 110,
      log: false,
      lines: series.refusals.map((refusal, index) => line(refusal.status, refusal.counts, index, counted)),
    },
    { title: 'In flight', heightPx: 70, log: false, lines: [line('operations', series.inFlight, 0, counted)] },
  ].filter((plan) => plan.lines.length > 0);
}

export class Charts {
  readonly parts: HTMLElement[] = [];
  private readonly report: RunReport;
  private readonly view: TimeView;
  private readonly geometry: Geometry;
  private palette: Palette;
  private readonly drawn: { plan: ChartPlan; plot: UPlot | null; box: HTMLElement; keys: HTMLElement[] }[] = [];
  private readonly times: number[];

  constructor(report: RunReport, view: TimeView, geometry: Geometry, palette: Palette) {
    this.report = report;
    this.view = view;
    this.geometry = geometry;
    this.palette = palette;
    const { series } = report;
    this.times = series.ackedPerSecond.map((_, index) => series.fromMs + (index + 0.5) * series.bucketMs);
    for (const plan of plans(report)) this.addBox(plan);
  }

  private addBox(plan: ChartPlan): void {
    const keys = plan.lines.map(() => element('b'));
    const legend = element('p', { class: 'legend' }, element('strong', {}, plan.title));
    for (const [index, line] of plan.lines.entries()) {
      const swatch = element('i', { class: `swatch swatch-${(index % 5) + 1}`, 'aria-hidden': 'true' });
      legend.append(element('span', {}, swatch, `${line.label} `, keys[index] ?? null));
    }
    const box = element('div', { class: 'chart' });
    this.parts.push(legend, box);
    this.drawn.push({ plan, plot: null, box, keys });
  }

  /** Builds the plots again: after a change of theme or width. */
  rebuild(palette: Palette): void {
    this.palette = palette;
    for (const chart of this.drawn) {
      chart.plot?.destroy();
      const data = [this.times, ...chart.plan.lines.map((line) => line.values)] as unknown as UPlot.AlignedData;
      chart.plot = new uPlot(this.optionsOf(chart.plan), data, chart.box);
    }
    this.showWindow();
  }

  private optionsOf(plan: ChartPlan): UPlot.Options {
    const { palette, geometry } = this;
    const axis = {
      stroke: palette.soft,
      grid: { stroke: palette.line, width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
    };
    const format = plan.lines[0]?.format ?? String;
    const powerOfTen = (value: number): boolean => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;
    const decades = (_: UPlot, splits: number[]): (number | null)[] =>
      plan.log ? splits.map((value) => (powerOfTen(value) ? value : null)) : splits;
    return {
      width: geometry.widthPx,
      height: plan.heightPx,
      padding: [6, geometry.marginPx, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      select: { show: false, left: 0, top: 0, width: 0, height: 0 },
      scales: {
        x: { time: false },
        // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- a const enum of its types, which does not exist at run time
        y: plan.log
          ? { distr: 3, log: 10 }
          : { range: (_: UPlot, __: number, max: number) => [0, max > 0 ? max * 1.08 : 1] },
      },
      axes: [
        {
          ...axis,
          size: 22,
          gap: 3,
          space: 80,
          incrs: axisStepsMs,
          values: (_: UPlot, splits: number[]) => this.timeLabels(splits),
        },
        {
          ...axis,
          size: geometry.gutterPx,
          gap: 6,
          space: 26,
          filter: decades,
          grid: { ...axis.grid, filter: decades },
          values: (_: UPlot, splits: (number | null)[]) => splits.map((value) => (value === null ? '' : format(value))),
        },
      ],
      series: [
        {},
        ...plan.lines.map((line, index): UPlot.Series => ({
          label: line.label,
          stroke: palette.series[index % 5] ?? palette.ink,
          width: index === 0 ? 1.5 : 1.2,
          dash: [...line.dash],
          points: { size: 4 },
          spanGaps: false,
        })),
      ],
      hooks: { drawClear: [(plot: UPlot) => this.shadeFaults(plot)] },
    };
  }

  private timeLabels(splits: readonly number[]): string[] {
    const step = (splits[1] ?? 0) - (splits[0] ?? 0);
    return splits.map((value) => formatOffset(value, step > 0 && step < 1000));
  }

  private shadeFaults(plot: UPlot): void {
    const { ctx, bbox } = plot;
    const { fromMs, toMs } = this.view.window;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = this.palette.shade;
    for (const fault of this.report.faults) {
      const from = fault.stages.injectedMs;
      const to = fault.stages.healedMs ?? this.view.whole.toMs;
      if (from === null || from > toMs || to < fromMs) continue;
      const left = plot.valToPos(Math.max(from, fromMs), 'x', true);
      const right = plot.valToPos(Math.min(to, toMs), 'x', true);
      ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
    }
    ctx.restore();
  }

  showWindow(): void {
    const { fromMs, toMs } = this.view.window;
    for (const { plot } of this.drawn) plot?.setScale('x', { min: fromMs, max: toMs });
  }

  showHover(): void {
    const { series } = this.report;
    const at = this.view.hoverMs;
    const index = at === null ? -1 : Math.floor((at - series.fromMs) / series.bucketMs);
    for (const { plan, keys } of this.drawn) {
      for (const [place, line] of plan.lines.entries()) {
        const value = line.values[index];
        const key = keys[place];
        if (key !== undefined)
          key.textContent = index < 0 ? '' : value === null || value === undefined ? 'none' : line.format(value);
      }
    }
  }
}
