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
import type { SystemStatus } from './ports.ts';
import { prepare } from './prepare.ts';
import { freshStatus, type RunContext } from './run-context.ts';
import type { ScheduleEvent } from './schedule.ts';
import { resolveTarget, rolesOf } from './targets.ts';
import type { OpenFault } from './wanted.ts';

/** Runs the event to its end; confirmed only when every target was seen down and is back in all its sets. */
export async function runRollingRestart(context: RunContext, event: ScheduleEvent, prng: Prng): Promise<void> {
  assert(event.fault.kind === 'rolling-restart', 'a rolling restart');
  const status = await freshStatus(context);
  const resolution = status === null ? null : resolveTarget(event.target, status, context.cluster.nodeIds(), prng);
  if (status === null || resolution === null || resolution.kind === 'unresolved') {
    const reason = resolution?.kind === 'unresolved' ? resolution.reason : 'no node gave a quorum-confirmed status';
    return context.write(event.id, { step: 'skipped', reason });
  }
  const targets = resolution.choices[0]?.nodeIds ?? [];
  const stop: Fault = { kind: 'stop', graceMs: event.fault.graceMs };
  const done: string[] = [];
  let last: Restart = { kind: 'restarted' };
  for (const nodeId of targets) {
    if (!context.cluster.nodeIds().includes(nodeId)) continue;
    const step: ScheduleEvent = {
      ...event,
      id: `${event.id}/${nodeId}`,
      fault: stop,
      target: { kind: 'node', nodeId },
    };
    const prepared = await prepare(context, step, prng.fork(nodeId), null, 'exact');
    if (prepared.kind === 'skip') {
      last = { kind: 'untouched', reason: `${nodeId}: ${prepared.reason}` };
      break;
    }
    if (done.length === 0) await announce(context, event, targets, status);
    last = await restartOne(context, prepared.open, nodeId);
    if (last.kind !== 'restarted') break;
    done.push(nodeId);
    if (done.length === 1) await context.write(event.id, { step: 'injected', evidence: `${nodeId} restarted` });
  }
  if (last.kind === 'untouched' && done.length === 0) {
    return context.write(event.id, { step: 'skipped', reason: last.reason });
  }
  await conclude(context, event.id, done, last);
}

/** `untouched`: the budget or another fault was in the way. `failed`: was touched; `isUp` says whether it runs again. */
type Restart =
  | { readonly kind: 'restarted' }
  | { readonly kind: 'untouched'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly isUp: boolean };

async function announce(
  context: RunContext,
  event: ScheduleEvent,
  targets: readonly string[],
  status: SystemStatus,
): Promise<void> {
  await context.write(event.id, {
    step: 'injecting',
    fault: event.fault,
    nodeIds: targets,
    partition: null,
    cuts: [],
    surroundings: {
      openFaults: context.field.open().map((one) => one.faultId),
      unhealthyPartitions: status.partitions.filter((one) => one.health !== 'Healthy').length,
      epoch: null,
      roles: rolesOf(targets, status),
    },
  });
}

async function conclude(context: RunContext, faultId: string, done: readonly string[], last: Restart): Promise<void> {
  const isWhole = last.kind === 'restarted';
  const evidence = `restarted: ${done.join(', ') || 'none'}${isWhole ? '' : `; then ${last.reason}`}`;
  await context.write(faultId, { step: isWhole && done.length > 0 ? 'confirmed' : 'unconfirmed', evidence });
  await context.write(faultId, { step: 'healed', evidence });
  const isUp = last.kind !== 'failed' || last.isUp;
  await context.write(faultId, { step: isUp ? 'heal-verified' : 'heal-unverified', evidence });
}

async function restartOne(context: RunContext, open: OpenFault, nodeId: string): Promise<Restart> {
  const { account, bounds, cluster, field } = context;
  const { faultId } = open;
  const failed = (reason: string, isUp: boolean): Restart => ({ kind: 'failed', reason, isUp });
  field.add(open);
  let down: Sighting;
  try {
    await field.reconcile(open);
    down = await field.call('looking', () => lookForEffect(cluster, open, field.openWithout(faultId)));
  } catch (error) {
    if (!(error instanceof ClusterCallError)) throw error;
    down = { kind: 'not-seen', evidence: error.message };
  } finally {
    field.remove(faultId);
    field.release(faultId);
  }
  try {
    await field.reconcile(open);
    const isUp = await within(context, bounds.verifyMs, async () => {
      const sighting = await field.call('looking', () => lookHealed(cluster, open, field.open()));
      return sighting.kind === 'seen';
    });
    if (!isUp) return failed(`${nodeId} did not come back within ${bounds.verifyMs} ms`, false);
  } catch (error) {
    if (!(error instanceof ClusterCallError)) throw error;
    context.environment(error.message);
    return failed(error.message, false);
  }
  account.healVerified(faultId, context.clock.nowMs());
  const isBack = await within(context, bounds.backInSetsMs, async () => {
    const status = await freshStatus(context);
    if (status !== null) account.settle(status);
    return !account.isCharged(faultId) || context.healNow.aborted;
  });
  if (!isBack) return failed(`${nodeId} was not back in all its sets within ${bounds.backInSetsMs} ms`, true);
  if (down.kind !== 'seen') return failed(`${nodeId} was not seen down: ${down.evidence}`, true);
  return { kind: 'restarted' };
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
