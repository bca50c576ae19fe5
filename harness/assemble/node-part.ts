/** What each node was doing when, from the faults that were injected into it. */
import type { Fault, NodeLane, NodeStateName } from '../report/model-timeline.ts';
import type { IncarnationRow } from '../../ledger/rows.ts';

const stateOfKind = (kind: string): NodeStateName => {
  switch (kind) {
    case 'pause':
      return 'paused';
    case 'kill':
    case 'oom':
    case 'wipe':
      return 'killed';
    case 'stop':
    case 'rolling-restart':
    case 'scale-in':
      return 'stopped';
    default:
      return 'cut-off';
  }
};

/** Kinds under which a node goes on as before. */
const harmless = new Set(['loss', 'latency', 'bandwidth', 'clock', 'scale-out', 'client-partition', 'reset']);

/** One lane per node, its spans disjoint and in order; the last word on a moment has the fault injected last. */
export function nodeLanes(
  nodeIds: readonly string[],
  faults: readonly Fault[],
  incarnations: readonly IncarnationRow[],
  endMs: number,
): NodeLane[] {
  return nodeIds.map((nodeId) => {
    const cuts = new Set([0, endMs]);
    const periods = faults.flatMap((fault) => periodsOf(fault, nodeId, endMs));
    const births = incarnations
      .filter((row) => row.node === nodeId)
      .map((row) => ({ atMs: row.atNs / 1e6, incarnation: row.incarnation }));
    for (const { fromMs, toMs } of periods) cuts.add(fromMs).add(toMs);
    for (const { atMs } of births) cuts.add(atMs);
    const times = [...cuts].filter((atMs) => atMs >= 0 && atMs <= endMs).toSorted((a, b) => a - b);
    const spans: NodeLane['spans'] = [];
    for (let index = 0; index + 1 < times.length; index++) {
      const fromMs = times[index] as number;
      const toMs = times[index + 1] as number;
      const state = periods.findLast((period) => period.fromMs <= fromMs && period.toMs >= toMs)?.state ?? 'up';
      const incarnation = births.findLast((birth) => birth.atMs <= fromMs)?.incarnation ?? null;
      const last = spans.at(-1);
      if (last !== undefined && last.state === state && last.incarnation === incarnation) last.toMs = toMs;
      else spans.push({ state, fromMs, toMs, incarnation });
    }
    return { nodeId, spans };
  });
}

function periodsOf(
  fault: Fault,
  nodeId: string,
  endMs: number,
): { state: NodeStateName; fromMs: number; toMs: number }[] {
  const { injectedMs, healedMs, healVerifiedMs } = fault.stages;
  if (injectedMs === null || harmless.has(fault.kind) || !fault.targets.includes(nodeId)) return [];
  const state = stateOfKind(fault.kind);
  const toMs = healedMs ?? endMs;
  const open = { state, fromMs: injectedMs, toMs };
  return healVerifiedMs === null || healVerifiedMs <= toMs
    ? [open]
    : [{ state: 'catching-up' as const, fromMs: toMs, toMs: healVerifiedMs }, open];
}
