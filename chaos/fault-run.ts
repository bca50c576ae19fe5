/**
 * One fault from its injection to its verified heal.
 *
 * Invariant: announced in the journal before each action, evidence after; every fault that was announced is healed, whatever
 * went wrong in between; one that no probe saw is never confirmed. If a heal could be skipped, the fault would outlive its
 * place in the report and the read-back would judge a hurt cluster. Source: DESIGN §6.
 */
import type { Prng } from '../lib/prng.ts';
import { overshoot } from './budget.ts';
import { isPermanent } from './faults.ts';
import { ClusterCallError } from './field.ts';
import { lookForEffect, lookHealed, type Sighting } from './probes.ts';
import { prepare, type Prepared } from './prepare.ts';
import { freshStatus, healReason, type RunContext } from './run-context.ts';
import type { ScheduleEvent } from './schedule.ts';
import { rolesOf } from './targets.ts';
import { cutsOf, type OpenFault } from './wanted.ts';

/** Runs a due event to its end. Resolves when its heal is verified, or past its bounds. */
export async function runFault(
  context: RunContext,
  event: ScheduleEvent,
  prng: Prng,
  hintPartition: number | null,
): Promise<void> {
  const prepared = await prepare(context, event, prng, hintPartition);
  if (prepared.kind === 'skip') {
    await context.write(event.id, { step: 'skipped', reason: prepared.reason });
    return;
  }
  if (prepared.change !== null) {
    await context.write(event.id, { step: 'changed', ...prepared.change, fault: prepared.open.intent.fault });
  }
  const open = await inject(context, prepared);
  if (open !== null && prepared.beyond !== null)
    await context.write(event.id, { step: 'overshoot', ...prepared.beyond });
  const injectedAtMs = context.clock.nowMs();
  if (open !== null) await confirm(context, open);
  context.field.release(event.id);
  if (open !== null) {
    await checkOvershoot(context, open.faultId);
    if (!isPermanent(open.intent.fault)) {
      const leftMs = injectedAtMs + event.durationMs - context.clock.nowMs();
      if (leftMs > 0) await context.sleeper.sleep(leftMs, context.healNow);
    }
  }
  await heal(context, open ?? prepared.open, context.healNow.aborted ? healReason(context) : 'its time is over');
}

/** Null when the cluster could not do it; what it did do must be healed all the same. */
async function inject(context: RunContext, prepared: Extract<Prepared, { kind: 'ready' }>): Promise<OpenFault | null> {
  const { cluster, field } = context;
  const { open, status, partition } = prepared;
  const { intent, faultId } = open;
  await context.write(faultId, {
    step: 'injecting',
    fault: intent.fault,
    nodeIds: intent.nodeIds,
    partition,
    cuts: cutsOf(open.rules),
    surroundings: {
      openFaults: field.open().map((one) => one.faultId),
      unhealthyPartitions: status.partitions.filter((one) => one.health !== 'Healthy').length,
      epoch: status.partitions.find((one) => one.partition === partition)?.epoch ?? null,
      roles: rolesOf(intent.nodeIds, status),
    },
  });
  field.add(open);
  try {
    let evidence: string;
    let injected = open;
    if (intent.fault.kind === 'scale-out') {
      const nodeId = await field.call('adding a node', () => cluster.addNode(), 1);
      injected = { ...open, intent: { ...intent, nodeIds: [nodeId] } };
      // Until it was looked at it belongs to this fault: killed before that, nobody could say that it ever ran.
      field.reserve(injected);
      evidence = `${nodeId} added`;
      context.scaled({ kind: 'added', nodeId });
    } else {
      evidence = await field.reconcile(open);
    }
    if (intent.fault.kind === 'scale-in') {
      for (const nodeId of intent.nodeIds) {
        field.forget(nodeId);
        await field.call(`removing ${nodeId}`, () => cluster.removeNode(nodeId));
        context.scaled({ kind: 'removed', nodeId });
      }
    }
    await context.write(faultId, { step: 'injected', evidence });
    return injected;
  } catch (error) {
    await reportFailure(context, faultId, error);
    return null;
  }
}

async function reportFailure(context: RunContext, faultId: string, error: unknown): Promise<void> {
  if (!(error instanceof ClusterCallError)) throw error;
  context.environment(`${faultId}: ${error.message}`);
  await context.write(faultId, { step: 'failed', error: error.message });
}

/** Looks until it bites, within its bound. A look that fails is no sighting. */
async function confirm(context: RunContext, open: OpenFault): Promise<void> {
  const { bounds, clock, cluster, field, sleeper } = context;
  const { confirmMs, confirmStartMs } = bounds;
  const deadlineMs = clock.nowMs() + (open.intent.fault.kind === 'scale-out' ? confirmStartMs : confirmMs);
  for (;;) {
    const sighting = await looked(context, () => lookForEffect(cluster, open, field.openWithout(open.faultId)));
    if (sighting.kind === 'seen') {
      await context.write(open.faultId, { step: 'confirmed', evidence: sighting.evidence });
      return;
    }
    if (clock.nowMs() >= deadlineMs || context.healNow.aborted) {
      await context.write(open.faultId, { step: 'unconfirmed', evidence: sighting.evidence });
      return;
    }
    await sleeper.sleep(bounds.pollMs, context.healNow);
  }
}

async function looked(context: RunContext, look: () => Promise<Sighting>): Promise<Sighting> {
  try {
    return await context.field.call('looking', look, 1);
  } catch (error) {
    if (!(error instanceof ClusterCallError)) throw error;
    return { kind: 'not-seen', evidence: error.message };
  }
}

/** Judged again after the injection: an overshoot is recorded, and the run can certify nothing. */
export async function checkOvershoot(context: RunContext, faultId: string): Promise<void> {
  const status = await freshStatus(context);
  if (status === null) return;
  context.account.settle(status);
  const over = overshoot(status, context.account.charges);
  if (over !== null) await context.write(faultId, { step: 'overshoot', ...over });
}

/** Heals and verifies; the fault stays open in the journal when the cluster cannot be brought to heal it. */
export async function heal(context: RunContext, open: OpenFault, why: string): Promise<void> {
  const { field } = context;
  await context.write(open.faultId, { step: 'healing', why });
  field.remove(open.faultId);
  try {
    const evidence = isPermanent(open.intent.fault) ? 'nothing to heal' : await field.reconcile(open);
    await context.write(open.faultId, { step: 'healed', evidence });
  } catch (error) {
    await reportFailure(context, open.faultId, error);
    return;
  }
  await verifyHeal(context, open);
}

async function verifyHeal(context: RunContext, open: OpenFault): Promise<void> {
  const { account, bounds, clock, cluster, field, sleeper } = context;
  const hiddenUntilMs = clock.nowMs() + bounds.hiddenMs;
  let visibleUntilMs = clock.nowMs() + bounds.verifyMs;
  for (;;) {
    const sighting = await looked(context, () => lookHealed(cluster, open, field.open()));
    const nowMs = clock.nowMs();
    if (sighting.kind === 'seen') {
      await context.write(open.faultId, { step: 'heal-verified', evidence: sighting.evidence });
      account.healVerified(open.faultId, clock.nowMs());
      return;
    }
    if (sighting.kind === 'hidden') visibleUntilMs = nowMs + bounds.verifyMs;
    if (nowMs >= (sighting.kind === 'hidden' ? hiddenUntilMs : visibleUntilMs)) {
      await context.write(open.faultId, { step: 'heal-unverified', evidence: sighting.evidence });
      return;
    }
    await sleeper.sleep(bounds.pollMs);
  }
}
