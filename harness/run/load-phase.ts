/**
 * Load and faults together, then the heal: from the first operation to the moment when nothing of ours hurts the cluster
 * any more and every operation has ended or is left open as unknown.
 */
import type { ScaleChange } from '../../chaos/run-context.ts';
import { encodeValue } from '../../ledger/values.ts';
import { Prng } from '../../lib/prng.ts';
import { Mix } from '../../workloads/mix.ts';
import type { ActiveRun } from './open-run.ts';
import { disobedientNodes } from './heal-check.ts';
import { aborted } from './interruption.ts';
import { clockText } from './live-line.ts';
import { Load } from './load.ts';
import { NodeWatch, watchNodes } from './node-watch.ts';
import { interruptedLimits } from './phases.ts';
import { unawaited } from './ports.ts';
import { retireKeys } from './retirer.ts';
import type { RunState } from './run-state.ts';
import type { ChaosControl } from './world.ts';

/** Keys written once that all sessions together remember for their reads. */
const rememberedKeys = 32_768;
/** Longest wait for open operations after the heal; beyond it they stay open. */
const drainLimitMs = 70_000;
const memoryEveryMs = 1_000;

/** Runs until the duration is over or something ends it early; resolves healed. */
export async function loadAndChaos(state: RunState, active: ActiveRun): Promise<void> {
  const { settings, world, clock } = state;
  const { journal } = state;
  const load = new Load({
    workload: makeWorkload(state),
    executor: state.executor,
    clients: active.clients.slice(0, settings.sessions),
    clock,
    ratePerSecond: settings.ratePerSecond,
    maxOperations: settings.maxOperations,
  });
  const end = new AbortController();
  state.onLoss = () => {
    if (settings.onLoss === 'continue') return;
    state.stopped ??= 'a loss was seen';
    end.abort(state.stopped);
  };
  const memory = setInterval(() => state.noteMemory(process.memoryUsage.rss()), memoryEveryMs);
  let chaos: ChaosControl | null = null;
  const background = new AbortController();
  const watch = new NodeWatch(state, active);
  const helpers = [watchNodes(watch, background.signal), retire(state, active, background.signal)];
  try {
    await state.phases.run('load', state.limits.load, [world.interruption.early], async () => {
      state.live.start('load', { kind: 'time', totalMs: state.loadMs });
      const loading = load.start();
      chaos = await world.startChaos({
        settings,
        schedule: state.resumed?.schedule ?? null,
        journal,
        clock,
        folder: state.folder,
        cluster: active.cluster.cluster,
        status: active.system.status,
        events: active.events,
        against: (reason) => state.against(reason),
        onScaled: (change) => tellSystem(active, change),
        onSchedule: (schedule, unsupported) => {
          if (state.resumed?.schedule === undefined || state.resumed.schedule === null)
            unawaited(state.ledger.meta('schedule', schedule));
          unawaited(state.ledger.meta('unsupported', [...unsupported]));
          state.print(
            `Faults: ${schedule.events.length} planned (saved in schedule.json), healing from ${clockText(schedule.healFromMs)} on`,
          );
        },
      });
      const time = new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, state.loadMs);
        end.signal.addEventListener('abort', () => clearTimeout(timer));
      });
      // A schedule that is over does not end the load; one that fails does.
      const chaosFailed = chaos.done.then(() => new Promise<void>(() => undefined));
      await Promise.race([
        time,
        loading,
        chaosFailed,
        aborted(end.signal),
        aborted(world.interruption.early),
        ...helpers.map(rejectionOf),
      ]);
    });
    // A node that died by itself just before the loss was seen would be started again by the heal, and never be told of. An
    // engine that is gone shows itself in the heal.
    if (end.signal.aborted) await watch.look().catch(() => undefined);
    if (end.signal.aborted && settings.onLoss === 'freeze') return await freeze(state, active, chaos);
    const limitMs = world.interruption.early.aborted ? interruptedLimits.heal : state.limits.heal;
    state.live.start('heal', { kind: 'time', totalMs: limitMs });
    const healed = await state.phases.run('heal', limitMs, [], () => healAndDrain(state, active, load, chaos));
    if (healed.kind === 'out-of-time')
      state.against({
        verdict: 'not-recovered',
        reason: `The faults were not all healed within ${limitMs / 1_000} s.`,
      });
  } finally {
    load.stop();
    background.abort();
    // What a helper broke on has ended the load already; the rest of the clean-up must not wait on it.
    await Promise.allSettled(helpers);
    clearInterval(memory);
    state.live.stop();
  }
}

/** Never resolves; rejects when `promise` does. */
const rejectionOf = (promise: Promise<unknown>): Promise<void> =>
  promise.then(() => new Promise<void>(() => undefined));

/** Only nodes that a fault of ours held: one that died by itself stays as it is, and is a finding. */
/** A node that the system does not hear of would stay empty, or be missed for ever. */
function tellSystem({ cluster, system }: ActiveRun, { kind, nodeId }: ScaleChange): void {
  if (kind === 'removed') return system.nodeRemoved?.(nodeId);
  const address = cluster.addresses().find((each) => each.nodeId === nodeId);
  if (address !== undefined) system.nodeAdded(address);
}

async function checkHeal(state: RunState, active: ActiveRun): Promise<void> {
  const { cluster } = active.cluster;
  const ours = cluster.nodeIds().filter((nodeId) => state.journal.hasHeld(nodeId));
  for (const reason of await disobedientNodes(cluster, ours)) {
    state.isUnhealed = true;
    state.against({ verdict: 'environment', reason });
  }
}

async function healAndDrain(state: RunState, active: ActiveRun, load: Load, chaos: ChaosControl | null): Promise<void> {
  chaos?.healNow('the run ends');
  if (state.world.interruption.early.aborted) load.stop();
  await chaos?.done;
  if (chaos !== null) await checkHeal(state, active);
  load.stop();
  const drained = await Promise.race([
    load.start().then(() => true),
    new Promise<boolean>((resolve) => setTimeout(() => resolve(false), drainLimitMs).unref()),
  ]);
  if (drained) return;
  const stuck = state.executor.stuckSessions(drainLimitMs);
  state.against({
    verdict: 'inconclusive',
    reason: `${stuck.length} operations did not end within ${drainLimitMs / 1_000} s after the last heal; the client is stuck.`,
  });
}

function makeWorkload(state: RunState): Mix {
  const { settings, keys, runTag } = state;
  return new Mix(settings.mix, {
    prng: new Prng(settings.seed).fork(state.resumed === null ? 'workload' : `workload ${state.resumed.count}`),
    ...(state.resumed === null ? {} : { keyTag: `${state.resumed.count}-` }),
    values: {
      encode: (operationId) => encodeValue(runTag, operationId, settings.valueBytes),
      element: (operationId) => encodeValue(runTag, operationId, 0),
    },
    keys,
    distribution: settings.distribution,
    readRatio: settings.readRatio,
    activeKeys: settings.activeKeys,
    operationsPerKey: settings.operationsPerKey,
    rememberedKeys: Math.max(8, Math.floor(rememberedKeys / settings.sessions)),
  });
}

function retire(state: RunState, active: ActiveRun, signal: AbortSignal): Promise<void> {
  const session = state.settings.sessions + 1;
  const client = active.clients[session];
  if (client === undefined || !state.world.system.capabilities.peek) return Promise.resolve();
  return retireKeys({
    executor: state.executor,
    keys: state.keys,
    watch: active.watch,
    system: active.system,
    ledger: state.ledger,
    liveCheck: state.liveCheck,
    clock: state.clock,
    client,
    session,
    partitionCount: state.settings.partitionCount,
    signal,
  });
}

async function freeze(state: RunState, active: ActiveRun, chaos: ChaosControl | null): Promise<void> {
  const { cluster } = active.cluster;
  // Else the end of a fault that is open now would start its node, or let it go on.
  chaos?.letGo();
  await Promise.allSettled(cluster.nodeIds().map((nodeId) => cluster.pause(nodeId)));
  state.frozen = true;
  state.print('The cluster is frozen as it was when the loss was seen.');
}
