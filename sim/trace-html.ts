/** A trace as a space–time diagram: one lane per node, time downwards, messages as arrows (Lamport 1978). One file, no scripts. */
import type { Trace, TraceMark } from './trace.ts';

const laneWidth = 210;
const leftMargin = 90;
const topMargin = 46;
/** Height of one row; rows are moments at which something happens, so that quiet time takes no room. */
const rowHeight = 15;
const maxLabel = 62;

const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const short = (text: string): string => (text.length > maxLabel ? `${text.slice(0, maxLabel - 1)}…` : text);

/** The whole page. `title` says what is shown. */
export function traceHtml(trace: Trace, title: string): string {
  const times = [
    ...trace.marks.flatMap(({ atMs, untilMs }) =>
      untilMs === undefined || untilMs > trace.toMs ? [atMs] : [atMs, untilMs],
    ),
    ...trace.messages.flatMap(({ sentAtMs, arrivedAtMs }) =>
      arrivedAtMs === null ? [sentAtMs] : [sentAtMs, arrivedAtMs],
    ),
  ].sort((a, b) => a - b);
  const rows = new Map<number, number>();
  for (const atMs of times) if (!rows.has(atMs)) rows.set(atMs, rows.size);
  const y = (atMs: number): number => topMargin + (rows.get(atMs) ?? rows.size) * rowHeight;
  const x = (lane: string): number => leftMargin + Math.max(0, trace.lanes.indexOf(lane)) * laneWidth + laneWidth / 2;
  const height = topMargin + (rows.size + 2) * rowHeight;
  const width = leftMargin + trace.lanes.length * laneWidth;
  const parts: string[] = [];
  for (const lane of trace.lanes) {
    parts.push(
      `<line class="lane" x1="${x(lane)}" y1="${topMargin - 12}" x2="${x(lane)}" y2="${height}"/><text class="head" x="${x(lane)}" y="24">${escaped(lane)}</text>`,
    );
  }
  for (const [atMs, row] of rows)
    parts.push(`<text class="time" x="4" y="${topMargin + row * rowHeight + 4}">${atMs.toFixed(2)}</text>`);
  for (const { from, to, text, sentAtMs, arrivedAtMs } of trace.messages) {
    const endX = arrivedAtMs === null ? (x(from) + x(to)) / 2 : x(to);
    const endY = arrivedAtMs === null ? y(sentAtMs) + rowHeight / 2 : y(arrivedAtMs);
    parts.push(
      `<g class="${arrivedAtMs === null ? 'lost' : 'message'}"><title>${escaped(`${from} → ${to} ${text}`)}</title>` +
        `<line x1="${x(from)}" y1="${y(sentAtMs)}" x2="${endX}" y2="${endY}" marker-end="url(#arrow)"/>` +
        `<text x="${x(from) + (x(to) > x(from) ? 6 : -6)}" y="${y(sentAtMs) - 2}" text-anchor="${x(to) > x(from) ? 'start' : 'end'}">${escaped(short(text))}</text></g>`,
    );
  }
  for (const mark of trace.marks)
    parts.push(markOf(mark, x(mark.lane), y(mark.atMs), mark.untilMs === undefined ? null : y(mark.untilMs)));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title><style>
body { font: 13px system-ui, sans-serif; margin: 12px; color: #1a1a1a; background: #fff; }
svg { font: 10px ui-monospace, monospace; }
.lane { stroke: #bbb; } .head { font-size: 13px; font-weight: 600; text-anchor: middle; } .time { fill: #777; }
.message line { stroke: #5b7db1; } .message text { fill: #35507a; } .lost line { stroke: #c0392b; stroke-dasharray: 3 3; } .lost text { fill: #c0392b; }
.notice { fill: #2e7d32; } .fault { fill: #b71c1c; font-weight: 700; } .operation { fill: #6a1b9a; } .finding { fill: #b71c1c; font-size: 12px; font-weight: 700; }
.span { stroke: #6a1b9a; stroke-width: 4; opacity: .5; }
</style></head><body><h1 style="font-size:16px">${escaped(title)}</h1>
<p>Time runs downwards, in virtual milliseconds; moments at which nothing happened are left out. Hover a message for all of it. Dashed: never arrived.</p>
<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#5b7db1"/></marker></defs>
${parts.join('\n')}
</svg></body></html>
`;
}

function markOf({ kind, text }: TraceMark, x: number, y: number, endY: number | null): string {
  const span = endY === null ? '' : `<line class="span" x1="${x}" y1="${y}" x2="${x}" y2="${Math.max(endY, y + 3)}"/>`;
  return `<g><title>${escaped(text)}</title>${span}<circle class="${kind}" cx="${x}" cy="${y}" r="3.5"/><text class="${kind}" x="${x + 7}" y="${y + 4}">${escaped(short(text))}</text></g>`;
}
