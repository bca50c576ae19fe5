/** The time line: charts and lanes under one window, one hovered moment, one pointer, one set of keys. */
import { faultName } from '../finding-words.ts';
import type { RunReport } from '../model.ts';
import { formatDuration, formatOffset, formatWall, listWords } from '../text.ts';
import { Charts } from './charts.ts';
import { button, element } from './element.ts';
import { type LaneRow, faultLetters, faultRows, findingRow, nodeRows, partitionRows } from './lane-rows.ts';
import { Lanes } from './lanes.ts';
import { laneLegend } from './legend.ts';
import { type Palette, readPalette } from './palette.ts';
import { attachPointer } from './pointer.ts';
import { TimeView } from './time-view.ts';

/** Below this width the gutter for labels shrinks. */
const narrowPx = 560;
/** More partitions than this are drawn compact. */
const tallRowsUpTo = 16;

type Choice = 'findings' | 'moved' | 'all';

export class Timeline {
  readonly view: TimeView;
  private readonly report: RunReport;
  private readonly section: HTMLElement;
  private readonly stack = element('div', {
    class: 'stack',
    tabindex: 0,
    role: 'group',
    'aria-label':
      'Time line. Arrow keys move, plus and minus zoom, 0 shows the whole run, n and p go to the next and previous fault.',
  });
  private readonly readout = element('p', { class: 'readout', 'aria-live': 'off' });
  private readonly span = element('span', { class: 'span' });
  private readonly geometry = { gutterPx: 64, marginPx: 28, widthPx: 800 };
  private palette: Palette;
  private readonly charts: Charts;
  private readonly lanes: Lanes[];
  private readonly partitions: Lanes;
  private hint: string | null = null;
  private readonly choiceButtons = new Map<Choice, HTMLButtonElement>();

  constructor(report: RunReport, section: HTMLElement) {
    this.report = report;
    this.section = section;
    this.view = new TimeView({ fromMs: 0, toMs: Math.max(1, report.run.durationMs) });
    this.palette = readPalette();
    this.charts = new Charts(report, this.view, this.geometry, this.palette);
    const lanes = (rows: readonly LaneRow[], rowPx: number, gapPx: number, description: string): Lanes =>
      new Lanes({ rows, rowPx, gapPx, description }, this.view, this.geometry, this.palette);
    const letters = faultLetters(report.faults);
    const top = lanes(
      [findingRow(report), ...faultRows(report, letters)],
      14,
      2,
      'Findings and faults over time; the tables below list the same.',
    );
    const nodes = lanes(nodeRows(report), 15, 3, 'State of each node over time.');
    this.partitions = lanes([], 15, 2, 'Owner, epoch and health of each partition over time.');
    this.lanes = [top, nodes, this.partitions];
    this.assemble(top, nodes, letters);
    this.choose(this.involved().size > 0 ? 'findings' : 'all');
    this.view.onWindow(() => this.drawAll());
    this.view.onHover(() => this.showHover());
    attachPointer(this.stack, this.view, this.geometry, (clientX, clientY, atMs) => this.look(clientX, clientY, atMs));
    this.stack.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.stack);
    this.resize();
  }

  private assemble(top: Lanes, nodes: Lanes, letters: ReadonlyMap<string, string>): void {
    const tools = element(
      'div',
      { class: 'tools' },
      button('−', 'Zoom out', () => this.view.zoom(2)),
      button('+', 'Zoom in', () => this.view.zoom(0.5)),
      button('◀', 'Earlier', () => this.view.pan(-0.4)),
      button('▶', 'Later', () => this.view.pan(0.4)),
      button('whole run', 'Show the whole run', () => this.view.showAll()),
      button('⇤ fault', 'Previous fault', () => this.step(-1)),
      button('fault ⇥', 'Next fault', () => this.step(1)),
      this.span,
    );
    const choices = element('p', { class: 'legend' }, element('strong', {}, 'Partitions'));
    const epochs = new Set(this.report.epochs.map((change) => change.partition)).size;
    const labels: [Choice, string][] = [
      ['findings', `with findings (${this.involved().size})`],
      ['moved', `moved (${this.moved().size})`],
      ['all', `all (${epochs})`],
    ];
    for (const [choice, label] of labels) {
      const made = button(label, `Show partitions: ${label}`, () => this.choose(choice));
      this.choiceButtons.set(choice, made);
      choices.append(made);
    }
    this.stack.append(
      element(
        'p',
        { class: 'legend' },
        element('strong', {}, 'Findings ▼ and faults'),
        ...[...letters]
          .toSorted((a, b) => a[1].localeCompare(b[1]))
          .map(([kind, letter]) => element('span', {}, element('kbd', {}, letter), ` ${kind}`)),
      ),
      top.canvas,
      ...this.charts.parts,
      element('p', { class: 'legend' }, element('strong', {}, 'Nodes'), ...laneLegend('nodes')),
      nodes.canvas,
      choices,
      element('p', { class: 'legend' }, ...laneLegend('partitions')),
      this.partitions.canvas,
    );
    const help = element(
      'p',
      { class: 'quiet help' },
      'Drag to zoom, double-click for the whole run. Keys: ← → move, + − zoom, 0 whole run, n p next and previous fault.',
    );
    this.section.append(element('div', { class: 'bar' }, tools, this.readout), this.stack, help);
  }

  private involved(): Set<number> {
    return new Set(this.report.findings.groups.flatMap((group) => group.partitions));
  }

  private moved(): Set<number> {
    return new Set(this.report.epochs.filter((change) => change.kind !== 'edge').map((change) => change.partition));
  }

  private choose(choice: Choice): void {
    const only = choice === 'all' ? null : choice === 'moved' ? this.moved() : this.involved();
    for (const [name, made] of this.choiceButtons) made.setAttribute('aria-pressed', String(name === choice));
    const rows = partitionRows(this.report, only);
    const tall = rows.length <= tallRowsUpTo;
    this.partitions.setRows(rows, tall ? 15 : 6, tall ? 3 : 1);
  }

  private resize(): void {
    const widthPx = Math.floor(this.stack.clientWidth);
    if (widthPx === 0 || (widthPx === this.geometry.widthPx && this.charts.parts[1]?.firstChild)) return;
    this.geometry.widthPx = widthPx;
    this.geometry.gutterPx = widthPx < narrowPx ? 50 : 64;
    this.charts.rebuild(this.palette);
    this.drawAll();
  }

  /** After a change of theme. */
  restyle(): void {
    this.palette = readPalette();
    for (const lane of this.lanes) lane.setPalette(this.palette);
    this.charts.rebuild(this.palette);
    this.drawAll();
  }

  private drawAll(): void {
    for (const lane of this.lanes) lane.draw();
    this.charts.showWindow();
    const { fromMs, toMs } = this.view.window;
    this.span.textContent = `${formatOffset(fromMs)} – ${formatOffset(toMs)} (${formatDuration(toMs - fromMs)} of ${formatDuration(this.view.whole.toMs)})`;
    this.showHover();
  }

  private look(_clientX: number, clientY: number, atMs: number | null): void {
    this.hint = null;
    if (atMs !== null) {
      for (const lane of this.lanes) {
        const box = lane.canvas.getBoundingClientRect();
        if (clientY >= box.top && clientY < box.bottom) this.hint = lane.hintAt(atMs, clientY - box.top);
      }
    }
    this.view.hover(atMs);
  }

  private showHover(): void {
    this.charts.showHover();
    const at = this.view.hoverMs;
    if (at === null) {
      this.readout.textContent = 'Point at a chart or a lane to read it here.';
      return;
    }
    const open = this.report.faults.filter(
      ({ stages }) => stages.injectedMs !== null && stages.injectedMs <= at && at < (stages.healedMs ?? Infinity),
    );
    const faults = open.length === 0 ? 'no fault open' : `open: ${listWords(open.map(faultName), 3)}`;
    const precise = this.view.window.toMs - this.view.window.fromMs < 120_000;
    this.readout.replaceChildren(
      element('b', {}, formatOffset(at, precise)),
      ` ${formatWall(this.report.run.startedAt, at).slice(11)} UTC · ${faults}`,
      ...(this.hint === null ? [] : [element('span', { class: 'hint' }, this.hint)]),
    );
  }

  /** Shows some seconds around a moment, and marks it. */
  focus(atMs: number, aroundMs: number): void {
    this.view.show(atMs - aroundMs, atMs + aroundMs);
    this.view.hover(atMs);
    this.section.scrollIntoView();
  }

  private step(direction: 1 | -1): void {
    const times = this.report.faults.flatMap((fault) => fault.stages.injectedMs ?? []).toSorted((a, b) => a - b);
    const at = this.view.hoverMs ?? (direction === 1 ? -1 : Infinity);
    const next = direction === 1 ? times.find((time) => time > at + 1) : times.findLast((time) => time < at - 1);
    if (next === undefined) return;
    this.view.show(next - 8_000, next + 16_000);
    this.view.hover(next);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => this.view.pan(-0.2),
      ArrowRight: () => this.view.pan(0.2),
      '+': () => this.view.zoom(0.5),
      '=': () => this.view.zoom(0.5),
      '-': () => this.view.zoom(2),
      '0': () => this.view.showAll(),
      Home: () => this.view.showAll(),
      n: () => this.step(1),
      p: () => this.step(-1),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }
}
