/**
 * What the cluster shall look like while these faults are open: a reduction, so that overlapping faults compose and a heal
 * is nothing but the reduction without one of them.
 *
 * Invariant: down > paused > running; cuts and rules are the union of all open faults. If a heal removed what another open
 * fault still wants, the journal would show a fault that was not there.
 */
import { unreachable } from '../lib/assert.ts';
import type { Intent } from './budget.ts';
import { type Cut, clientCuts, clientEndpoint, partitionCuts, unionOfCuts } from './partitions.ts';
import type { LinkRule } from './ports.ts';

/** A fault between its announcement and its heal. */
export interface OpenFault {
  readonly faultId: string;
  readonly intent: Intent;
  /** The rules it wants on links, fixed at injection. */
  readonly rules: readonly LinkRule[];
}

/** How a process is brought down. */
export type DownBy = { readonly kind: 'kill' | 'oom' | 'wipe' } | { readonly kind: 'stop'; readonly graceMs: number };

export type WantedNode =
  | { readonly kind: 'running' }
  | { readonly kind: 'paused' }
  | { readonly kind: 'down'; readonly by: DownBy };

/** The part of a fault that concerns a node's process; null when it leaves processes alone. */
export function wantedByFault(intent: Intent): WantedNode | null {
  const { fault } = intent;
  switch (fault.kind) {
    case 'kill':
    case 'oom':
    case 'wipe':
      return { kind: 'down', by: { kind: fault.kind } };
    case 'stop':
    case 'scale-in':
    case 'rolling-restart':
      return { kind: 'down', by: { kind: 'stop', graceMs: fault.graceMs } };
    case 'pause':
      return { kind: 'paused' };
    case 'partition':
    case 'client-partition':
    case 'reset':
    case 'loss':
    case 'latency':
    case 'bandwidth':
    case 'clock':
    case 'scale-out':
      return null;
    default:
      return unreachable(fault, 'fault kind');
  }
}

/** What all open faults want of a node's process. */
export function wantedNode(open: readonly OpenFault[], nodeId: string): WantedNode {
  let wanted: WantedNode = { kind: 'running' };
  for (const one of open) {
    if (!one.intent.nodeIds.includes(nodeId)) continue;
    const own = wantedByFault(one.intent);
    if (own !== null && (own.kind === 'down' || wanted.kind === 'running')) wanted = own;
  }
  return wanted;
}

/** All rules that open faults want, each once; of two that differ in strength the stronger one. */
export function wantedRules(open: readonly OpenFault[]): readonly LinkRule[] {
  const strongest = new Map<string, LinkRule>();
  for (const rule of open.flatMap((one) => one.rules)) {
    const key = `${rule.kind} ${rule.from}→${rule.to}`;
    const other = strongest.get(key);
    if (other === undefined || strength(rule) > strength(other)) strongest.set(key, rule);
  }
  return [...strongest.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, rule]) => rule);
}

function strength(rule: LinkRule): number {
  switch (rule.kind) {
    case 'drop':
    case 'reset':
      return 0;
    case 'loss':
      return rule.percent;
    case 'delay':
      return rule.delayMs + rule.jitterMs;
    case 'rate':
      return -rule.bytesPerSecond;
    default:
      return unreachable(rule, 'link rule');
  }
}

/** The wall-clock offset that the last open clock fault on the node wants; 0 without one. */
export function wantedClockOffsetMs(open: readonly OpenFault[], nodeId: string): number {
  let offsetMs = 0;
  for (const { intent } of open) {
    if (intent.fault.kind === 'clock' && intent.nodeIds.includes(nodeId)) offsetMs = intent.fault.offsetMs;
  }
  return offsetMs;
}

/** One-way cuts among the rules. */
export function cutsOf(rules: readonly LinkRule[]): readonly Cut[] {
  return unionOfCuts([rules.filter((rule) => rule.kind === 'drop').map(({ from, to }) => ({ from, to }))]);
}

/** The rules of an intent on a cluster of `nodeIds`. */
export function rulesFor(intent: Intent, nodeIds: readonly string[]): readonly LinkRule[] {
  const { fault } = intent;
  const targets = intent.nodeIds;
  switch (fault.kind) {
    case 'partition': {
      // A ring is drawn through the nodes in the order of the intent.
      const order = fault.shape === 'majorities-ring' ? targets : nodeIds;
      return partitionCuts(fault.shape, order, targets, fault.clients).map((cut) => ({ kind: 'drop', ...cut }));
    }
    case 'client-partition':
      return clientCuts(targets).map((cut) => ({ kind: 'drop', ...cut }));
    case 'reset':
      return linksOf(targets, nodeIds).map((cut) => ({ kind: 'reset', ...cut }));
    case 'loss':
      return linksOf(targets, nodeIds).map((cut) => ({ kind: 'loss', ...cut, percent: fault.percent }));
    case 'latency':
      return linksOf(targets, nodeIds).map((cut) => ({
        kind: 'delay',
        ...cut,
        delayMs: fault.delayMs,
        jitterMs: fault.jitterMs,
      }));
    case 'bandwidth':
      return linksOf(targets, nodeIds).map((cut) => ({ kind: 'rate', ...cut, bytesPerSecond: fault.bytesPerSecond }));
    case 'kill':
    case 'stop':
    case 'pause':
    case 'oom':
    case 'clock':
    case 'wipe':
    case 'scale-out':
    case 'scale-in':
    case 'rolling-restart':
      return [];
    default:
      return unreachable(fault, 'fault kind');
  }
}

/** Every link of the targets, both ways, also those with the clients. */
function linksOf(targets: readonly string[], nodeIds: readonly string[]): readonly Cut[] {
  return unionOfCuts([
    clientCuts(targets),
    ...targets.map((target) =>
      nodeIds
        .filter((other) => other !== target)
        .flatMap((other) => [
          { from: target, to: other },
          { from: other, to: target },
        ]),
    ),
  ]);
}

/** True when a cut or a refusal stands between the clients and the node: then silence on that side proves nothing. */
export function isHiddenFromClients(rules: readonly LinkRule[], nodeId: string): boolean {
  return rules.some(
    (rule) =>
      (rule.kind === 'drop' || rule.kind === 'reset') &&
      ((rule.from === clientEndpoint && rule.to === nodeId) || (rule.to === clientEndpoint && rule.from === nodeId)),
  );
}
