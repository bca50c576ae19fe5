/**
 * Rolling restart: every target stopped and started again, one after the other, each back in every set it left before the
 * next is touched.
 *
 * Invariant: at most one node is down by it, and each stop is judged by the budget like a fault of its own. Going on too early
 * would empty a partition's in-sync set node by node.
 */
import { assert } from '../lib/assert.ts';
import type { Prng } from '../lib/prng.ts';
import type { Fault } from './faults.ts';
import { ClusterCallError } from './field.ts';
import { lookForEffect, lookHealed, type Sighting } from './probes.ts';
import { prepare } from './prepare.ts';
import { freshStatus, type RunContext } from './run-context.ts';
import type { ScheduleEvent } from './schedule.ts';
import { resolveTarget, rolesOf } from './targets.ts';

/** Runs the event to its end; confirmed only when every target was seen down and seen back. */
export async function runRollingRestart(context: RunContext, event: ScheduleEvent, prng: Prng): Promise<void> {
  assert(event.fault.kind === 'rolling-restart', 'a rolling restart');
  const { field } = context;
  const status = await freshStatus(context);
  const nodeIds = context.cluster.nodeIds();
  const resolution = status === null ? null : resolveTarget(event.target, status, nodeIds, prng);
  if (status === null || resolution === null || resolution.kind === 'unresolved') {
    const reason = resolution?.kind === 'unresolved' ? resolution.reason : 'no node gave a quorum-confirmed status';
    return context.write(event.id, { step: 'skipped', reason });
  }
  const targets = resolution.choices[0]?.nodeIds ?? [];
  await context.write(event.id, {
    step: 'injecting',
    fault: event.fault,
    nodeIds: targets,
    partition: null,
    cuts: [],
    surroundings: {
      openFaults: field.open().map((one) => one.faultId),
      unhealthyPartitions: status.partitions.filter((one) => one.health !== 'Healthy').length,
      epoch: null,
      roles: rolesOf(targets, status),
    },
  });
  const stop: Fault = { kind: 'stop', graceMs: event.fault.graceMs };
  const done: string[] = [];
  let failure: string | null = null;
  for (const nodeId of targets) {
    const step: ScheduleEvent = { ...event, id: `${event.id}/${nodeId}`, fault: stop, target: { kind: 'node', nodeId } };
    failure = await restartOne(context, step, nodeId, prng.fork(nodeId));
    if (failure !== null) break;
    done.push(nodeId);
    if (done.length === 1) await context.write(event.id, { step: 'injected', evidence: `${nodeId} restarted` });
  }
  const evidence = `restarted: ${done.join(', ') || 'none'}${failure === null ? '' : `; then ${failure}`}`;
  if (done.length > 0) {
    await context.write(event.id, { step: failure === null ? 'confirmed' : 'unconfirmed', evidence });
  }
  await context.write(event.id, { step: 'healed', evidence });
  await context.write(event.id, { step: failure === null ? 'heal-verified' : 'heal-unverified', evidence });
}

/** Null once the node is back in every set it left, else why not. */
async function restartOne(
  context: RunContext,
  step: ScheduleEvent,
  nodeId: string,
  prng: Prng,
): Promise<string | null> {
  const { account, bounds, cluster, field } = context;
  const prepared = await prepare(context, step, prng, null, 'exact');
  if (prepared.kind === 'skip') return `${nodeId}: ${prepared.reason}`;
  const { open } = prepared;
  field.add(open);
  let down: Sighting;
  try {
    await field.reconcile(open);
    down = await field.call('looking', () => lookForEffect(cluster, open, field.openWithout(step.id)));
  } catch (error) {
    if (!(error instanceof ClusterCallError)) throw error;
    down = { kind: 'not-seen', evidence: error.message };
  } finally {
    field.remove(step.id);
  }
  try {
    await field.reconcile(open);
    const isUp = await within(context, bounds.verifyMs, async () => {
      const sighting = await field.call('looking', () => lookHealed(cluster, open, field.open()));
      return sighting.kind === 'seen';
    });
    if (!isUp) return `${nodeId} did not come back within ${bounds.verifyMs} ms`;
  } catch (error) {
    if (!(error instanceof ClusterCallError)) throw error;
    context.environment(error.message);
    return error.message;
  }
  account.healVerified(step.id, context.clock.nowMs());
  const isBack = await within(context, bounds.backInSetsMs, async () => {
    const status = await freshStatus(context);
    if (status !== null) account.settle(status);
    return !account.isCharged(step.id);
  });
  if (!isBack) return `${nodeId} was not back in all its sets within ${bounds.backInSetsMs} ms`;
  return down.kind === 'seen' ? null : `${nodeId} was not seen down: ${down.evidence}`;
}

async function within(context: RunContext, boundMs: number, test: () => Promise<boolean>): Promise<boolean> {
  const { bounds, clock, sleeper } = context;
  const deadlineMs = clock.nowMs() + boundMs;
  for (;;) {
    if (await test()) return true;
    if (clock.nowMs() >= deadlineMs) return false;
    await sleeper.sleep(bounds.pollMs);
  }
}
