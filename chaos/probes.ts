/**
 * Looking whether a fault bites, and whether it is gone.
 *
 * Invariant: `seen` is answered only when the cluster behaved as the fault's name says, and would have behaved otherwise
 * without it; silence that another open fault would explain, or that was there before, is no evidence. If this were wrong, a
 * fault that did not take hold would be counted: the first way in which a harness of this kind lies.
 */
import { unreachable } from '../lib/assert.ts';
import { clientEndpoint, type Cut, cutText, isCut } from './partitions.ts';
import type { Cluster, LinkRule, ProbeResult } from './ports.ts';
import { cutsOf, isHiddenFromClients, type OpenFault, wantedClockOffsetMs, wantedNode, wantedRules } from './wanted.ts';

export interface Sighting {
  /** `hidden`: another open fault stands in the way, nothing can be said yet. */
  readonly kind: 'seen' | 'not-seen' | 'hidden';
  readonly evidence: string;
}

/** Links looked at per fault, spread over all of its links. */
export const maxProbedLinks = 24;
/** How far a clock may be from where it should stand, ms. */
const clockToleranceMs = 500;

const seen = (evidence: string): Sighting => ({ kind: 'seen', evidence });
const notSeen = (evidence: string): Sighting => ({ kind: 'not-seen', evidence });
const hidden = (evidence: string): Sighting => ({ kind: 'hidden', evidence });

/** One verdict from several: all seen is seen, any not seen is not. */
function together(sightings: readonly Sighting[]): Sighting {
  const evidence = [...new Set(sightings.map((one) => one.evidence))].join('; ');
  if (sightings.some((one) => one.kind === 'not-seen')) return notSeen(evidence);
  if (sightings.some((one) => one.kind === 'hidden')) return hidden(evidence);
  return sightings.length === 0 ? notSeen('there was nothing to look at') : seen(evidence);
}

/** Evenly spread, never more than {@link maxProbedLinks}. */
export function sampled<T>(items: readonly T[]): readonly T[] {
  if (items.length <= maxProbedLinks) return items;
  return Array.from(
    { length: maxProbedLinks },
    (_, index) => items[Math.floor((index * items.length) / maxProbedLinks)] as T,
  );
}

/**
 * Before the injection: does what the fault will disturb work? What is silent already cannot show that the fault bites.
 * `open` are the faults open now, without this one.
 */
export async function lookBefore(cluster: Cluster, fault: OpenFault, open: readonly OpenFault[]): Promise<Sighting> {
  const { nodeIds, fault: what } = fault.intent;
  switch (what.kind) {
    case 'kill':
    case 'oom':
    case 'wipe':
    case 'stop':
    case 'scale-in':
    case 'rolling-restart':
      return together(
        await Promise.all(
          nodeIds.map(async (nodeId) => {
            const { kind } = await cluster.state(nodeId);
            return kind === 'running' || kind === 'paused'
              ? seen(`${nodeId} ran`)
              : notSeen(`${nodeId} was not running (${kind})`);
          }),
        ),
      );
    case 'pause':
      return together(await Promise.all(nodeIds.map((nodeId) => lookAnswers(cluster, nodeId, wantedRules(open)))));
    case 'clock':
      return together(
        await Promise.all(nodeIds.map((nodeId) => lookClock(cluster, nodeId, wantedClockOffsetMs(open, nodeId)))),
      );
    case 'partition':
    case 'client-partition':
    case 'reset': {
      const free = visibleLinks(cluster, fault, open);
      if (free.length === 0) return notSeen('every link of it is blocked already');
      return together(await Promise.all(sampled(free).map((link) => lookLink(cluster, link, 'reachable'))));
    }
    case 'loss':
    case 'latency':
    case 'bandwidth': {
      const free = visibleLinks(cluster, fault, open);
      return together(await Promise.all(sampled(free).map((link) => lookLink(cluster, link, 'reachable'))));
    }
    case 'scale-out':
      return seen('a node can be added');
    default:
      return unreachable(what, 'fault kind');
  }
}

/** After the injection: does it bite? `open` are the other open faults. */
export async function lookForEffect(cluster: Cluster, fault: OpenFault, open: readonly OpenFault[]): Promise<Sighting> {
  const { nodeIds, fault: what } = fault.intent;
  const rules = wantedRules(open);
  switch (what.kind) {
    case 'kill':
    case 'wipe':
    case 'stop':
    case 'scale-in':
    case 'rolling-restart':
      return together(await Promise.all(nodeIds.map((nodeId) => lookDead(cluster, nodeId, false))));
    case 'oom':
      return together(await Promise.all(nodeIds.map((nodeId) => lookDead(cluster, nodeId, true))));
    case 'pause':
      return together(await Promise.all(nodeIds.map((nodeId) => lookFrozen(cluster, nodeId, rules))));
    case 'partition':
    case 'client-partition':
    case 'reset': {
      const looks = sampled(visibleLinks(cluster, fault, open)).map((link) => lookLink(cluster, link, 'unreachable'));
      const back = oppositeLinks(cluster, fault, open).map((link) => lookPacket(cluster, link, 'reachable'));
      return together(await Promise.all([...looks, ...back]));
    }
    case 'loss':
    case 'latency':
    case 'bandwidth': {
      const visible = new Set(visibleLinks(cluster, fault, open).map(cutText));
      const free = fault.rules.filter((rule) => visible.has(cutText(rule)));
      return together(await Promise.all(sampled(free).map((rule) => lookRule(cluster, rule, 'seen'))));
    }
    case 'clock':
      return together(await Promise.all(nodeIds.map((nodeId) => lookClock(cluster, nodeId, what.offsetMs))));
    case 'scale-out':
      return together(await Promise.all(nodeIds.map((nodeId) => lookRunning(cluster, nodeId, rules))));
    default:
      return unreachable(what, 'fault kind');
  }
}

/** After the heal: is it gone? `open` are the faults still open; what they explain is hidden, not unhealed. */
export async function lookHealed(cluster: Cluster, fault: OpenFault, open: readonly OpenFault[]): Promise<Sighting> {
  const { fault: what } = fault.intent;
  const nodeIds = fault.intent.nodeIds.filter((nodeId) => cluster.nodeIds().includes(nodeId));
  if (nodeIds.length === 0 && fault.intent.nodeIds.length > 0) return seen('its nodes are gone');
  const rules = wantedRules(open);
  switch (what.kind) {
    case 'kill':
    case 'wipe':
    case 'stop':
    case 'oom':
    case 'rolling-restart':
    case 'pause': {
      const covered = nodeIds.find((nodeId) => wantedNode(open, nodeId).kind !== 'running');
      if (covered !== undefined) return hidden(`another fault holds ${covered}`);
      return together(await Promise.all(nodeIds.map((nodeId) => lookRunning(cluster, nodeId, rules))));
    }
    case 'partition':
    case 'client-partition':
    case 'reset': {
      const links = presentLinks(cluster, fault.rules);
      if (links.length === 0) return seen('its nodes are gone');
      const covered = links.find((link) => isBlocked(rules, link) || endIsHeld(open, link));
      if (covered !== undefined) return hidden(`another fault holds ${cutText(covered)}`);
      return together(await Promise.all(sampled(links).map((link) => lookLink(cluster, link, 'reachable'))));
    }
    case 'loss':
    case 'latency':
    case 'bandwidth': {
      const present = fault.rules.filter((rule) => isPresent(cluster, rule));
      if (present.length === 0) return seen('its nodes are gone');
      const covered = present.find(
        (rule) =>
          isBlocked(rules, rule) ||
          endIsHeld(open, rule) ||
          rules.some((other) => other.kind === rule.kind && cutText(other) === cutText(rule)),
      );
      if (covered !== undefined) return hidden(`another fault holds ${cutText(covered)}`);
      return together(await Promise.all(sampled(present).map((rule) => lookRule(cluster, rule, 'absent'))));
    }
    case 'clock':
      return together(
        await Promise.all(nodeIds.map((nodeId) => lookClock(cluster, nodeId, wantedClockOffsetMs(open, nodeId)))),
      );
    case 'scale-out':
    case 'scale-in':
      return seen('nothing to heal');
    default:
      return unreachable(what, 'fault kind');
  }
}

/** Both ends still exist; a node may have been removed since the fault began. */
const isPresent = (cluster: Cluster, link: Cut): boolean =>
  [link.from, link.to].every((end) => end === clientEndpoint || cluster.nodeIds().includes(end));

const presentLinks = (cluster: Cluster, rules: readonly LinkRule[]): readonly Cut[] =>
  rules.filter((rule) => isPresent(cluster, rule)).map(({ from, to }) => ({ from, to }));

/** Links of the fault on which it can be told from the other open faults: none of them blocks them, both ends run. */
export function visibleLinks(cluster: Cluster, fault: OpenFault, open: readonly OpenFault[]): readonly Cut[] {
  const rules = wantedRules(open);
  return presentLinks(cluster, fault.rules).filter((link) => !isBlocked(rules, link) && !endIsHeld(open, link));
}

/** A connection needs both directions: blocked either way it says nothing about this fault. */
function isBlocked(rules: readonly LinkRule[], link: Cut): boolean {
  return rules.some(
    (rule) =>
      (rule.kind === 'drop' || rule.kind === 'reset') &&
      ((rule.from === link.from && rule.to === link.to) || (rule.from === link.to && rule.to === link.from)),
  );
}

const endIsHeld = (open: readonly OpenFault[], link: Cut): boolean =>
  [link.from, link.to].some((end) => wantedNode(open, end).kind !== 'running');

/** Opposite directions of one-way cuts, where the cluster can tell them apart: these must stay open. */
function oppositeLinks(cluster: Cluster, fault: OpenFault, open: readonly OpenFault[]): readonly Cut[] {
  if (cluster.probePacket === undefined) return [];
  const cuts = cutsOf(fault.rules);
  const visible = visibleLinks(cluster, fault, open).filter((link) => isCut(cuts, link.from, link.to));
  return sampled(
    visible.map(({ from, to }) => ({ from: to, to: from })).filter((link) => !isCut(cuts, link.from, link.to)),
  );
}

const said = (link: Cut, result: ProbeResult): string => `${cutText(link)} ${result.outcome} (${result.evidence})`;

async function lookLink(cluster: Cluster, link: Cut, expected: 'reachable' | 'unreachable'): Promise<Sighting> {
  const result = await cluster.probeLink(link.from, link.to);
  return result.outcome === expected ? seen(`${cutText(link)} ${expected}`) : notSeen(said(link, result));
}

async function lookPacket(cluster: Cluster, link: Cut, expected: 'reachable' | 'unreachable'): Promise<Sighting> {
  const result = await cluster.probePacket?.(link.from, link.to);
  if (result === undefined) return notSeen('packets cannot be probed');
  return result.outcome === expected
    ? seen(`packets ${cutText(link)} ${expected}`)
    : notSeen(`packets ${said(link, result)}`);
}

async function lookDead(cluster: Cluster, nodeId: string, byKernel: boolean): Promise<Sighting> {
  const state = await cluster.state(nodeId);
  if (state.kind !== 'exited')
    return state.kind === 'absent' ? seen(`${nodeId} is absent`) : notSeen(`${nodeId} is ${state.kind}`);
  if (byKernel && !state.oomKilled) return notSeen(`${nodeId} exited, but not for memory`);
  return seen(`${nodeId} exited with ${state.exitCode}${state.oomKilled ? ' (out of memory)' : ''}`);
}

async function lookFrozen(cluster: Cluster, nodeId: string, rules: readonly LinkRule[]): Promise<Sighting> {
  if (isHiddenFromClients(rules, nodeId)) return hidden(`${nodeId} is cut from the prober`);
  const [state, answer] = await Promise.all([cluster.state(nodeId), cluster.probeNode(nodeId)]);
  if (state.kind !== 'running' && state.kind !== 'paused') return notSeen(`${nodeId} is ${state.kind}, not frozen`);
  if (answer.outcome !== 'unreachable') return notSeen(`${nodeId} ${answer.outcome} (${answer.evidence})`);
  return seen(`${nodeId} exists (${state.kind}) and does not answer (${answer.evidence})`);
}

async function lookAnswers(cluster: Cluster, nodeId: string, rules: readonly LinkRule[]): Promise<Sighting> {
  if (isHiddenFromClients(rules, nodeId)) return hidden(`${nodeId} is cut from the prober`);
  const answer = await cluster.probeNode(nodeId);
  return answer.outcome === 'reachable'
    ? seen(`${nodeId} answers`)
    : notSeen(`${nodeId} ${answer.outcome} (${answer.evidence})`);
}

async function lookRunning(cluster: Cluster, nodeId: string, rules: readonly LinkRule[]): Promise<Sighting> {
  const state = await cluster.state(nodeId);
  if (state.kind !== 'running') return notSeen(`${nodeId} is ${state.kind}`);
  // Cut from the prober its process can be seen, its answers cannot.
  if (isHiddenFromClients(rules, nodeId)) return seen(`${nodeId} runs (cut from the prober)`);
  return lookAnswers(cluster, nodeId, rules);
}

async function lookRule(cluster: Cluster, rule: LinkRule, expected: 'seen' | 'absent'): Promise<Sighting> {
  const probe = await cluster.probeRule?.(rule);
  if (probe === undefined) return notSeen(`the effect of ${rule.kind} cannot be probed here`);
  const text = `${rule.kind} ${cutText(rule)} ${probe.effect} (${probe.evidence})`;
  return probe.effect === expected ? seen(text) : notSeen(text);
}

async function lookClock(cluster: Cluster, nodeId: string, offsetMs: number): Promise<Sighting> {
  const clock = await cluster.probeClock?.(nodeId);
  if (clock === undefined) return notSeen('clocks cannot be probed here');
  const text = `${nodeId}: wall clock off by ${Math.round(clock.wallOffsetMs)} ms, monotonic by ${Math.round(clock.monotonicOffsetMs)} ms`;
  const isRight =
    Math.abs(clock.wallOffsetMs - offsetMs) <= clockToleranceMs &&
    Math.abs(clock.monotonicOffsetMs) <= clockToleranceMs;
  return isRight ? seen(text) : notSeen(text);
}
