/**
 * From a due event to a fault that may be injected: target by live status, budget, a look that it can be seen to bite, and
 * the budget once more by a fresh status.
 *
 * Invariant: what is returned is charged to the account and was judged by a status read after that; what is not returned is
 * not charged. No status means no fault. If a fault were injected on a guess, the run could lose what nobody promised to keep.
 */
import type { Prng } from '../lib/prng.ts';
import {
  type BudgetPolicy,
  chargeFor,
  fitToBudget,
  intentText,
  judge,
  type Overshoot,
  statusMaxAgeMs,
  uncoveredPartitions,
} from './budget.ts';
import { type Fault, faultName } from './faults.ts';
import { ClusterCallError, type FaultField } from './field.ts';
import { lookBefore, visibleLinks } from './probes.ts';
import type { Cluster, SystemStatus } from './ports.ts';
import { freshStatus, healReason, type RunContext } from './run-context.ts';
import type { ScheduleEvent } from './schedule.ts';
import { type Candidate, candidatesFor, resolveTarget } from './targets.ts';
import { isHiddenFromClients, type OpenFault, rulesFor, wantedByFault, wantedNode, wantedRules } from './wanted.ts';

export type Prepared =
  | {
      readonly kind: 'ready';
      readonly open: OpenFault;
      readonly partition: number | null;
      readonly status: SystemStatus;
      /** Set when it is not what was meant. */
      readonly change: { readonly from: string; readonly to: string; readonly why: string } | null;
      /** Set when it goes past the budget, as the run asked. */
      readonly beyond: Overshoot | null;
    }
  | { readonly kind: 'skip'; readonly reason: string };

type Attempt = Prepared | { readonly kind: 'later'; readonly reason: string };

const later = (reason: string): Attempt => ({ kind: 'later', reason });

/** Why this cluster cannot do this at all; null when it can. */
export function whyUnsupported(
  cluster: Cluster,
  fault: Fault,
  unsupported: ReadonlyMap<string, string>,
): string | null {
  const told = unsupported.get(faultName(fault)) ?? unsupported.get(fault.kind);
  if (told !== undefined) return told;
  const isWeakening = fault.kind === 'loss' || fault.kind === 'latency' || fault.kind === 'bandwidth';
  if ((isWeakening || fault.kind === 'reset') && cluster.setLinkRules === undefined) {
    return `the ${cluster.kind} cluster knows cuts only`;
  }
  if (isWeakening && cluster.probeRule === undefined) {
    return `the ${cluster.kind} cluster cannot probe for ${fault.kind}`;
  }
  if (fault.kind === 'oom' && cluster.oom === undefined)
    return `the ${cluster.kind} cluster cannot run a node out of memory`;
  if (fault.kind === 'clock' && (cluster.setClockOffset === undefined || cluster.probeClock === undefined)) {
    return `the ${cluster.kind} cluster cannot set a node's clock`;
  }
  return null;
}

/** Can this fault take hold beside those that are open, and be seen to? */
export function isSuitable(cluster: Cluster, fault: OpenFault, field: FaultField): boolean {
  const { intent } = fault;
  const concerns = (one: OpenFault): boolean =>
    one.faultId !== fault.faultId && one.intent.nodeIds.some((nodeId) => intent.nodeIds.includes(nodeId));
  if (field.reserved().some(concerns)) return false;
  const open = field.openWithout(fault.faultId);
  const concerned = open.filter(concerns);
  if (concerned.some((one) => faultName(one.intent.fault) === faultName(intent.fault))) return false;
  if (intent.fault.kind === 'scale-in') return concerned.length === 0;
  if (fault.rules.length > 0 && visibleLinks(cluster, fault, open).length === 0) return false;
  const states = intent.nodeIds.map((nodeId) => wantedNode(open, nodeId).kind);
  const own = wantedByFault(intent);
  // SIGKILL works on what is frozen; nothing else can be seen to bite there.
  if (own?.kind === 'down' && (own.by.kind === 'kill' || own.by.kind === 'wipe')) return !states.includes('down');
  if (own?.kind === 'paused' && intent.nodeIds.some((nodeId) => isHiddenFromClients(wantedRules(open), nodeId)))
    return false;
  return states.every((state) => state === 'running');
}

/**
 * `nearest`: what the budget denies is changed to the nearest that it allows: to other nodes at once, to another kind of
 * fault only after half of the wait (or short runs would plan kinds that they never see). `exact`: that or nothing.
 */
export type Fitting = 'nearest' | 'exact';

/**
 * Tries until it may happen, within `postponeMs`; then the last reason why not. What is ready is reserved in the field: the
 * caller releases it once it has looked for its effect.
 */
export async function prepare(
  context: RunContext,
  event: ScheduleEvent,
  prng: Prng,
  hintPartition: number | null,
  fitting: Fitting = 'nearest',
): Promise<Prepared> {
  const { bounds, clock, sleeper, healNow } = context;
  const boundMs = fitting === 'exact' ? bounds.backInSetsMs : bounds.postponeMs;
  const startMs = clock.nowMs();
  const deadlineMs = startMs + boundMs;
  for (let count = 1; ; count++) {
    if (healNow.aborted) return { kind: 'skip', reason: healReason(context) };
    let attempt: Attempt;
    const mayChangeKind = clock.nowMs() >= startMs + boundMs / 2;
    try {
      attempt = await tryOnce(context, {
        event,
        prng: prng.fork(`attempt ${count}`),
        hintPartition,
        fitting,
        mayChangeKind,
      });
    } catch (error) {
      giveUp(context, event.id);
      if (!(error instanceof ClusterCallError)) throw error;
      attempt = later(error.message);
    }
    if (attempt.kind !== 'later') return attempt;
    if (clock.nowMs() >= deadlineMs) return { kind: 'skip', reason: `${attempt.reason}, for ${boundMs} ms` };
    await sleeper.sleep(2 * bounds.pollMs, healNow);
  }
}

interface Wish {
  readonly event: ScheduleEvent;
  readonly prng: Prng;
  readonly hintPartition: number | null;
  readonly fitting: Fitting;
  readonly mayChangeKind: boolean;
}

async function tryOnce(context: RunContext, wish: Wish): Promise<Attempt> {
  const { event, prng, hintPartition, fitting, mayChangeKind } = wish;
  const { account, cluster, field, unsupported } = context;
  // What comes one after the other waits for its turn even where the budget may be exceeded.
  const policy: BudgetPolicy = fitting === 'exact' ? { ...context.policy, mayExceed: false } : context.policy;
  const nodeIds = cluster.nodeIds();
  const cannot = whyUnsupported(cluster, event.fault, unsupported);
  if (cannot !== null) return { kind: 'skip', reason: cannot };
  const status = await freshStatus(context);
  if (status === null) return later('no node gave a quorum-confirmed status');
  account.settle(status);
  const resolution = resolveTarget(event.target, status, nodeIds, prng, hintPartition);
  if (resolution.kind === 'unresolved') return later(resolution.reason);
  const candidates = candidatesFor(event.fault, resolution.choices, nodeIds, prng);
  const meant = candidates[0];
  if (meant === undefined) return { kind: 'skip', reason: `the cluster is too small for ${faultName(event.fault)}` };
  const opened = ({ intent }: Candidate): OpenFault => ({
    faultId: event.id,
    intent,
    rules: rulesFor(intent, nodeIds),
  });
  const usable = (fitting === 'exact' ? [meant] : candidates).filter(
    (one) =>
      (mayChangeKind || one.intent.fault === event.fault) &&
      isSuitable(cluster, opened(one), field) &&
      whyUnsupported(cluster, one.intent.fault, unsupported) === null,
  );
  const fit = fitToBudget(
    status,
    account.charges,
    usable.map((one) => one.intent),
    nodeIds,
    policy,
  );
  if (fit.kind === 'denied')
    return later(usable.length === 0 ? 'every node in question is under another fault' : fit.reason);
  const chosen = usable.find((one) => one.intent === fit.intent) as Candidate;
  const open = opened(chosen);
  account.enter(chargeFor(event.id, chosen.intent, status, nodeIds));
  field.reserve(open);
  const before = await field.call('looking before the fault', () =>
    lookBefore(cluster, open, field.openWithout(event.id)),
  );
  const again = before.kind === 'seen' ? await freshStatus(context) : null;
  const refusal =
    before.kind !== 'seen'
      ? `it could not be seen to bite: ${before.evidence}`
      : rejudged(context, open, again, policy);
  if (refusal !== null || again === null) {
    giveUp(context, event.id);
    return later(refusal ?? 'no fresh status');
  }
  const why = fit.kind === 'changed' ? fit.why : 'the node meant is under another fault';
  return {
    kind: 'ready',
    open,
    partition: chosen.partition,
    status: again,
    beyond: beyondBudget(context, open, again),
    change: chosen === meant ? null : { from: intentText(meant.intent), to: intentText(chosen.intent), why },
  };
}

/** Chosen and then not done: nothing is charged, nobody else is kept out. */
function giveUp(context: RunContext, faultId: string): void {
  context.account.discharge(faultId);
  context.field.release(faultId);
}

/** The budget once more, with everything that was charged meanwhile; null when it still holds. */
function rejudged(
  context: RunContext,
  open: OpenFault,
  status: SystemStatus | null,
  policy: BudgetPolicy,
): string | null {
  const { account, cluster, clock, field } = context;
  if (status === null) return 'no node gave a quorum-confirmed status';
  if (clock.nowMs() - status.atMs > statusMaxAgeMs) return 'the status is too old to judge by';
  account.settle(status);
  if (!isSuitable(cluster, open, field)) return 'the node came under another fault';
  const nodeIds = cluster.nodeIds();
  const judgement = judge(status, account.without(open.faultId), open.intent, nodeIds, policy);
  if (judgement.kind === 'denied' && policy.mayExceed !== true) return judgement.reason;
  account.enter(chargeFor(open.faultId, open.intent, status, nodeIds));
  return null;
}

/** What the budget would have said; null when it allows this, or was obeyed. */
function beyondBudget(context: RunContext, open: OpenFault, status: SystemStatus): Overshoot | null {
  const { account, cluster, policy } = context;
  if (policy.mayExceed !== true) return null;
  const nodeIds = cluster.nodeIds();
  const others = account.without(open.faultId);
  const judgement = judge(status, others, open.intent, nodeIds, policy);
  if (judgement.kind === 'allowed') return null;
  return {
    why: `past the budget, as asked: ${judgement.reason}`,
    partitions: uncoveredPartitions(status, others, open.intent, nodeIds),
  };
}
