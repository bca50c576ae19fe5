/** The report as rows of spans: faults, findings, nodes, partitions. Pure; drawn by `lanes.ts`. */
import { faultName, findingNoun, isUnplaced } from '../finding-words.ts';
import type { Fault, NodeStateName } from '../model-timeline.ts';
import type { RunReport } from '../model.ts';
import { formatDuration, visible } from '../text.ts';
import type { PatternName } from './palette.ts';

/** How a span is filled: a plain tint, solid ink, a pattern, or an owner's colour (with what its health adds). */
export type Fill =
  | { readonly kind: 'faint' }
  | { readonly kind: 'solid' }
  | { readonly kind: 'soft' }
  | { readonly kind: 'bad' }
  | { readonly kind: 'pattern'; readonly name: PatternName }
  | { readonly kind: 'owner'; readonly owner: number; readonly health: string };

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly fill: Fill;
  /** Drawn when it fits, longest first. */
  readonly labels: readonly string[];
  readonly hint: string;
}

export interface LaneRow {
  readonly label: string;
  readonly spans: readonly Span[];
  /** Single moments drawn as marks: findings, failovers. */
  readonly marks: readonly { readonly atMs: number; readonly hint: string }[];
  /** Owner colour shown beside the label; null for none. */
  readonly swatch: number | null;
}

/** Sub-rows for overlapping faults; the rest share the last. */
const faultRowsShown = 3;

/** One letter per fault kind, taken from its name, no two alike. */
export function faultLetters(faults: readonly Fault[]): Map<string, string> {
  const letters = new Map<string, string>();
  const taken = new Set<string>();
  for (const { kind } of faults) {
    if (letters.has(kind)) continue;
    const letter = [...kind.toUpperCase()].find((one) => /[A-Z]/.test(one) && !taken.has(one)) ?? '*';
    taken.add(letter);
    letters.set(kind, letter);
  }
  return letters;
}

export function faultRows(report: RunReport, letters: ReadonlyMap<string, string>): LaneRow[] {
  const rows: Span[][] = Array.from({ length: faultRowsShown }, () => []);
  const freeAtMs: number[] = rows.map(() => 0);
  const applied = report.faults.filter((fault) => fault.stages.injectedMs !== null);
  for (const fault of applied.toSorted((a, b) => (a.stages.injectedMs ?? 0) - (b.stages.injectedMs ?? 0))) {
    const fromMs = fault.stages.injectedMs ?? 0;
    const toMs = fault.stages.healedMs ?? report.run.durationMs;
    const place = freeAtMs.findIndex((free) => free <= fromMs);
    const row = place === -1 ? faultRowsShown - 1 : place;
    freeAtMs[row] = Math.max(freeAtMs[row] ?? 0, toMs);
    const letter = letters.get(fault.kind) ?? '*';
    const counted = fault.outcome === 'confirmed';
    const targets = fault.targets.map(visible).join(',');
    rows[row]?.push({
      fromMs,
      toMs,
      fill: counted ? { kind: 'solid' } : { kind: 'pattern', name: 'hatch' },
      labels: [
        `${letter} ${fault.kind} ${targets} ${fault.id}`,
        `${letter} ${targets} ${fault.id}`,
        `${letter} ${targets}`,
        letter,
      ],
      hint: `${faultName(fault)}, ${fault.outcome}, ${formatDuration(toMs - fromMs)}`,
    });
  }
  return rows
    .filter((spans, index) => index === 0 || spans.length > 0)
    .map((spans, index) => ({ label: index === 0 ? 'faults' : '', spans, marks: [], swatch: null }));
}

export function findingRow(report: RunReport): LaneRow {
  const placed = report.findings.items.filter((finding) => !isUnplaced(finding));
  const marks = placed.map((finding) => ({
    atMs: finding.operation.acknowledgedAtMs ?? finding.operation.invokedAtMs,
    hint: `${finding.id}: ${findingNoun(finding.kind, 1)}, key ${visible(finding.key)}`,
  }));
  return { label: 'findings', spans: [], marks, swatch: null };
}

const stateLooks: Readonly<Record<NodeStateName, { fill: Fill; letter: string }>> = {
  up: { fill: { kind: 'faint' }, letter: '' },
  paused: { fill: { kind: 'pattern', name: 'stripes' }, letter: 'P' },
  'cut-off': { fill: { kind: 'pattern', name: 'hatch' }, letter: 'C' },
  killed: { fill: { kind: 'solid' }, letter: 'K' },
  stopped: { fill: { kind: 'soft' }, letter: 'S' },
  'catching-up': { fill: { kind: 'pattern', name: 'dots' }, letter: 'U' },
};

export function nodeRows(report: RunReport): LaneRow[] {
  return report.nodes.map((lane, index) => ({
    label: visible(lane.nodeId),
    swatch: index,
    marks: [],
    spans: lane.spans.map((span) => {
      const look = stateLooks[span.state];
      const life = span.incarnation === null ? '' : ` #${span.incarnation}`;
      return {
        fromMs: span.fromMs,
        toMs: span.toMs,
        fill: look.fill,
        labels: span.state === 'up' ? [] : [span.state, look.letter],
        hint: `${visible(lane.nodeId)}${life} ${span.state} for ${formatDuration(span.toMs - span.fromMs)}`,
      };
    }),
  }));
}

export function partitionRows(report: RunReport, only: ReadonlySet<number> | null): LaneRow[] {
  const owners = new Map(report.nodes.map((lane, index) => [lane.nodeId, index]));
  const byPartition = Map.groupBy(report.epochs, (change) => change.partition);
  const chosen = [...byPartition.keys()]
    .filter((partition) => only === null || only.has(partition))
    .toSorted((a, b) => a - b);
  return chosen.map((partition) => {
    const changes = (byPartition.get(partition) ?? []).toSorted((a, b) => a.atMs - b.atMs);
    const spans = changes.map((change, index): Span => {
      const owner = change.owner === null ? 'no owner' : visible(change.owner);
      return {
        fromMs: change.atMs,
        toMs: changes[index + 1]?.atMs ?? report.run.durationMs,
        fill: {
          kind: 'owner',
          owner: change.owner === null ? -1 : (owners.get(change.owner) ?? -1),
          health: change.health,
        },
        labels: [`${owner} · e${change.epoch} · ${change.health}`, `${owner} e${change.epoch}`, owner],
        hint: `p${partition}: ${owner}, epoch ${change.epoch}, term ${change.term}, ${change.health}${change.kind === 'edge' ? '' : `, ${change.kind}`}`,
      };
    });
    const marks = changes
      .filter((change) => change.kind === 'failover')
      .map((change) => ({ atMs: change.atMs, hint: 'failover' }));
    return { label: `p${partition}`, spans, marks, swatch: null };
  });
}
