/**
 * The end of a run on a healed cluster: settle, canary, read-back through the client, autopsy of every replica.
 */
import pLimit from 'p-limit';
import { assert } from '../../lib/assert.ts';
import type { SystemStatus } from '../../chaos/ports.ts';
import { askReplicas } from './autopsy.ts';
import { releaseCanary } from './canary.ts';
import { aborted, type Interruption } from './interruption.ts';
import type { ActiveRun } from './open-run.ts';
import { interruptedLimits, type PhaseName } from './phases.ts';
import { readBack } from './read-back.ts';
import type { RunState } from './run-state.ts';
import { settle } from './settle.ts';

/** The canary's time, ms: a store that does not answer would hold up each of its requests for as long as a client waits. */
const canaryLimitMs = 60_000;
/** Its time after a signal. */
const hurriedCanaryMs = 5_000;
/** Partitions whose replicas are asked at the same time. */
const partitionsAtOnce = 4;

/** Gathers all evidence that the verdict needs; what cannot be had is said in the state's reasons. */
export async function finish(state: RunState, active: ActiveRun): Promise<void> {
  if (state.frozen) {
    await active.watch.stop();
    return;
  }
  const status = await settled(state, active);
  await active.watch.stop();
  await canary(state, active);
  const keys = [...state.keys.liveKeys(), ...state.canaryPlanted];
  await readEverything(state, active, keys);
  if (status === null || !state.world.system.capabilities.peek) {
    if (status === null) state.replicas = { asked: 1, answered: 0 };
    return;
  }
  await askEverybody(state, active, status, keys);
}

const limitOf = (state: RunState, phase: Exclude<PhaseName, 'start' | 'load'>): number =>
  state.world.interruption.early.aborted || (phase === 'settle' && state.isUnhealed)
    ? interruptedLimits[phase]
    : state.limits[phase];

async function settled(state: RunState, active: ActiveRun): Promise<SystemStatus | null> {
  const limitMs = limitOf(state, 'settle');
  state.live.start('settle', { kind: 'time', totalMs: limitMs });
  const end = await state.phases.run('settle', limitMs + 1_000, hurryOf(state, 'settle'), (signal) =>
    settle(active.system.status, state.clock, limitMs, signal),
  );
  state.live.stop();
  if (end.kind === 'done' && end.value.kind === 'settled') {
    const lost = end.value.status.partitions.filter((partition) => partition.health === 'Lost').length;
    const what = lost === 0 ? 'every partition healthy' : `${lost} partitions Lost, the others healthy`;
    state.print(`Settled: ${what} ${(end.value.afterMs / 1_000).toFixed(1)} s after the heal`);
    return end.value.status;
  }
  const reason = end.kind === 'done' && end.value.kind === 'not-settled' ? end.value.reason : 'it did not answer';
  state.against({
    verdict: 'not-recovered',
    reason: `The cluster was not healthy ${limitMs / 1_000} s after the last heal: ${reason}.`,
  });
  const isHurried = state.world.interruption.early.aborted;
  return end.kind === 'done' && end.value.kind === 'not-settled' && !isHurried ? unsettled(end.value.status) : null;
}

/**
 * Whom to ask in a cluster that did not settle: where a value is matters most there. Only members that are in sync now are held to
 * have everything; the others are named in the certificate as not asked.
 */
function unsettled(status: SystemStatus | null): SystemStatus | null {
  if (status === null) return null;
  const partitions = status.partitions
    .filter((partition) => partition.serving)
    .map((partition) => ({ ...partition, replicas: partition.replicas.filter((id) => partition.inSync.includes(id)) }));
  return { ...status, partitions };
}

async function canary(state: RunState, active: ActiveRun): Promise<void> {
  const session = state.settings.sessions;
  const client = active.clients[session];
  assert(client !== undefined, 'the canary has a client');
  const signal = canaryEnd(state.world.interruption);
  const deleted: string[] = [];
  const work = releaseCanary(
    {
      executor: state.executor,
      client,
      session,
      runTag: state.runTag,
      valueBytes: state.settings.valueBytes,
      signal,
      onDeleted: (key) => deleted.push(key),
    },
    state.canaryPlanted,
  );
  // A request that is under way may wait for a minute more: nobody waits for it.
  await Promise.race([work, aborted(signal)]);
  state.canaryDeleted = [...deleted];
}

/** Aborted when the canary has had its time. */
function canaryEnd({ atOnce, early }: Interruption): AbortSignal {
  const limitMs = early.aborted ? hurriedCanaryMs : canaryLimitMs;
  return AbortSignal.any([atOnce, AbortSignal.timeout(limitMs), soonAfter(early, hurriedCanaryMs)]);
}

/** Aborted so long after a signal that is still to come; a phase that begins after it has its own, shorter limit. */
function soonAfter(early: AbortSignal, delayMs: number): AbortSignal {
  const end = new AbortController();
  const soon = (): void => void setTimeout(() => end.abort(), delayMs).unref();
  if (!early.aborted) early.addEventListener('abort', soon, { once: true });
  return end.signal;
}

/** What else ends a phase of the end: a signal that comes during it. */
const hurryOf = (state: RunState, phase: 'settle' | 'read-back' | 'autopsy'): readonly AbortSignal[] => [
  soonAfter(state.world.interruption.early, interruptedLimits[phase]),
];

async function readEverything(state: RunState, active: ActiveRun, keys: readonly string[]): Promise<void> {
  const limitMs = limitOf(state, 'read-back');
  let done = 0;
  state.live.start('read-back', { kind: 'count', noun: 'keys', total: keys.length, done: () => done });
  const stuck = new Set(state.executor.stuckSessions(0));
  const clients = active.clients.filter((_, session) => !stuck.has(session));
  state.readBack = { expected: keys.length, done: 0 };
  try {
    const end = await state.phases.run('read-back', limitMs, hurryOf(state, 'read-back'), (signal) =>
      readBack({
        ledger: state.ledger,
        clock: state.clock,
        clients,
        phase: 'final',
        keys,
        expected: keys.length,
        signal,
        onRead: () => {
          done++;
        },
      }),
    );
    if (end.kind === 'done') state.readBack = end.value;
  } finally {
    state.live.stop();
  }
}

async function askEverybody(
  state: RunState,
  active: ActiveRun,
  status: SystemStatus,
  keys: readonly string[],
): Promise<void> {
  const limitMs = limitOf(state, 'autopsy');
  const byPartition = Map.groupBy(keys, (key) => active.system.partitionOf(key));
  // Of a partition that the store reports Lost there is no copy to ask for.
  const partitions = status.partitions.filter((each) => each.health !== 'Lost').map((each) => each.partition);
  const total = { asked: 0, answered: 0 };
  let asked = 0;
  state.live.start('autopsy', { kind: 'count', noun: 'partitions', total: partitions.length, done: () => asked });
  const end = await state.phases.run('autopsy', limitMs, hurryOf(state, 'autopsy'), async (signal) => {
    const { ledger, clock } = state;
    const options = { system: active.system, ledger, clock, phase: 'final', signal } as const;
    await pLimit(partitionsAtOnce).map(partitions, async (partition) => {
      if (signal.aborted) return;
      const result = await askReplicas(options, status, partition, byPartition.get(partition) ?? []);
      total.asked += result.asked;
      total.answered += result.answered;
      asked++;
    });
    return !signal.aborted;
  });
  state.live.stop();
  const complete = end.kind === 'done' && end.value;
  state.replicas = total;
  // Answers that are missing the verifier finds in the ledger.
  if (!complete)
    state.against({ verdict: 'inconclusive', reason: `Not every replica was asked within ${limitMs / 1_000} s.` });
}
