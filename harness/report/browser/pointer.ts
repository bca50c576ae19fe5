/** The pointer over the time line: a hair line through every chart and lane, drag to zoom, double-click for all. */
import { element } from './element.ts';
import type { Geometry } from './lanes.ts';
import type { TimeView } from './time-view.ts';

/** Shorter drags are clicks. */
const dragPx = 6;

/** `look` is told where the pointer is, in client coordinates, and the moment under it (null: outside the plot). */
export function attachPointer(
  stack: HTMLElement,
  view: TimeView,
  geometry: Geometry,
  look: (clientX: number, clientY: number, atMs: number | null) => void,
): void {
  const hair = element('div', { class: 'hair', hidden: true });
  const box = element('div', { class: 'selection', hidden: true });
  stack.append(hair, box);
  const plotPx = (): number => Math.max(1, geometry.widthPx - geometry.gutterPx - geometry.marginPx);
  const xOf = (event: PointerEvent): number => event.clientX - stack.getBoundingClientRect().left;
  const timeAt = (x: number): number => {
    const share = Math.min(1, Math.max(0, (x - geometry.gutterPx) / plotPx()));
    return view.window.fromMs + share * (view.window.toMs - view.window.fromMs);
  };
  let dragFrom: number | null = null;

  view.onHover(() => {
    const at = view.hoverMs;
    const { fromMs, toMs } = view.window;
    hair.hidden = at === null || at < fromMs || at > toMs;
    if (at !== null) hair.style.left = `${geometry.gutterPx + ((at - fromMs) / (toMs - fromMs)) * plotPx()}px`;
  });
  stack.addEventListener('pointermove', (event) => {
    const x = xOf(event);
    const inside = x >= geometry.gutterPx && x <= geometry.gutterPx + plotPx();
    look(event.clientX, event.clientY, inside ? timeAt(x) : null);
    if (dragFrom === null) return;
    box.hidden = Math.abs(x - dragFrom) < dragPx;
    box.style.left = `${Math.min(x, dragFrom)}px`;
    box.style.width = `${Math.abs(x - dragFrom)}px`;
  });
  stack.addEventListener('pointerleave', () => {
    if (dragFrom === null) look(0, 0, null);
  });
  stack.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || (event.target as Element).closest('button') !== null) return;
    dragFrom = xOf(event);
    stack.setPointerCapture(event.pointerId);
  });
  stack.addEventListener('pointerup', (event) => {
    const from = dragFrom;
    dragFrom = null;
    box.hidden = true;
    if (from === null || Math.abs(xOf(event) - from) < dragPx) return;
    const [a, b] = [timeAt(from), timeAt(xOf(event))];
    view.show(Math.min(a, b), Math.max(a, b));
  });
  stack.addEventListener('pointercancel', () => {
    dragFrom = null;
    box.hidden = true;
  });
  stack.addEventListener('dblclick', () => view.showAll());
}
