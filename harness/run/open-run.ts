/** The start of a run: cluster up, system connected and whole, clients open, canary planted, watch running. */
import type { ClusterEvent, EventSource } from '../../chaos/ports.ts';
import { assert } from '../../lib/assert.ts';
import { EnvironmentError } from '../../docker/errors.ts';
import type { StoreClient } from '../../workloads/port.ts';
import { messageOf, NotRecoveredError } from '../errors.ts';
import type { ClusterProgram, OwnImage, RunCluster } from '../clusters/run-cluster.ts';
import { movesClocks } from '../schedule.ts';
import type { RunningSystem } from '../systems/system.ts';
import { plantCanary } from './canary.ts';
import { EpochWatch } from './epoch-watch.ts';
import { unawaited } from './ports.ts';
import { movableClocksMeta } from './resumption.ts';
import type { RunState } from './run-state.ts';
import { takeUp, takeUpKeys, verifyTakenUp } from './take-up.ts';

/** Sessions beside those of the load: one for the canary, one for the retirer. */
export const extraSessions = 2;

/** Pause between two looks at the nodes while they start, ms. */
const startPollMs = 500;

/** A run whose cluster is up. */
export interface ActiveRun {
  readonly cluster: RunCluster;
  readonly system: RunningSystem;
  /** One client per session, then {@link extraSessions} more. */
  readonly clients: readonly StoreClient[];
  readonly watch: EpochWatch;
  readonly events: EventSource;
}

/** Brings everything up. Whatever was started is in `state.cluster`, also when this rejects. */
export async function openRun(state: RunState, signal: AbortSignal): Promise<ActiveRun> {
  const { settings, world, plan, folder, ledger, clock } = state;
  // Not asked of a schedule's file again when a run goes on: it may be gone, and the nodes are as they are.
  const movableClocks = state.resumed?.movableClocks ?? movesClocks(settings);
  unawaited(ledger.meta(movableClocksMeta, movableClocks));
  const cluster = await world.openCluster({
    runId: folder.runId,
    nodeCount: settings.nodeCount,
    logsDir: folder.logs,
    environment: (nodeId, index, nodes) => ({
      ...world.system.nodeEnvironment(plan, nodeId, index, nodes),
      ...settings.nodeEnvironment,
    }),
    nodeEntry: settings.nodeEntry,
    ...programOf(state),
    ...ownImageOf(state),
    adopt: state.resumed !== null,
    movableClocks,
    clock,
    say: (line) => state.print(line),
    signal,
  });
  state.cluster = cluster;
  const system = world.system.connect({ plan, addresses: cluster.addresses(), nowMs: () => clock.nowMs() });
  state.partitionOf = (key) => system.partitionOf(key);
  if (state.resumed !== null) await takeUp(state, cluster.cluster, state.resumed);
  await whole(state, system, cluster, signal);
  if (state.resumed !== null) {
    await verifyTakenUp(state, state.resumed);
    takeUpKeys(state, state.resumed);
  }
  const facts = await system.facts();
  await ledger.meta('facts', {
    ...facts,
    build: cluster.build,
    engine: cluster.engine,
    versions: [...facts.versions, ...cluster.versions],
    name: world.system.name,
    contract: world.system.contract(plan),
    capabilities: world.system.capabilities,
    promises: world.system.clientPromises,
    peek: world.system.capabilities.peek,
  });
  state.print(
    `Cluster is up: ${facts.partitions} partitions, ${facts.replicationFactor} copies, ${facts.minInSync} needed to acknowledge`,
  );
  const hub = new EventHub();
  state.onAcknowledged = (partition, node) =>
    hub.publish({ name: 'ack', nodeId: node, atMs: clock.nowMs(), fields: { partition } });
  const watch = openWatch(state, system, hub);
  watch.start();
  const clients = Array.from({ length: settings.sessions + extraSessions }, (_, session) => system.client(session));
  const [canaryClient] = clients.slice(settings.sessions);
  assert(canaryClient !== undefined, 'the canary has a client');
  state.canaryPlanted = await plantCanary({
    executor: state.executor,
    client: canaryClient,
    session: settings.sessions,
    runTag: state.runTag,
    valueBytes: settings.valueBytes,
    signal,
  });
  return { cluster, system, clients, watch, events: hub };
}

/** The program of a system that does not come with the harness. */
function programOf({ world: { system }, plan }: RunState): { readonly program?: ClusterProgram } {
  if (system.program === undefined) return {};
  return { program: { program: system.program, plan, unsupportedFaults: system.unsupportedFaults ?? new Map() } };
}

function ownImageOf({ settings }: RunState): { readonly own?: OwnImage } {
  if (settings.image !== null) return { own: { kind: 'image', image: settings.image } };
  return settings.build === null ? {} : { own: { kind: 'build', folder: settings.build } };
}

/** Bootstraps; a cluster that never became whole is no fault of the store's durability, but nothing was certified either. */
async function whole(state: RunState, system: RunningSystem, cluster: RunCluster, signal: AbortSignal): Promise<void> {
  const watching = new AbortController();
  const died = nodeDied(cluster, watching.signal);
  try {
    await Promise.race([system.bootstrap(state.limits.start, AbortSignal.any([signal, watching.signal])), died]);
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw new NotRecoveredError(`The cluster did not become whole at the start: ${messageOf(error)}.`);
  } finally {
    watching.abort();
    died.catch(() => undefined);
  }
}

/** Rejects when a node's program has ended; resolves never, or when `signal` is aborted. */
async function nodeDied(run: RunCluster, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const nodeId of run.cluster.nodeIds()) {
      const at = await run.cluster.state(nodeId);
      if (at.kind !== 'exited') continue;
      const tail = await run.logTail(nodeId).catch(() => '');
      throw new EnvironmentError(
        `The node program of ${nodeId} ended with exit code ${at.exitCode} at the start: ${lastLine(tail)}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, startPollMs));
  }
}

export const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.slice(0, 300) ?? '';

function openWatch(state: RunState, system: RunningSystem, hub: EventHub): EpochWatch {
  const { ledger, clock, tally, world } = state;
  return new EpochWatch({
    status: system.status,
    events: () => system.events(),
    clock,
    onEpoch: (change) => {
      if (change.kind === 'failover') tally.failovers++;
      if (change.kind === 'handoff') tally.handoffs++;
      const { atMs, primary, missed, ...rest } = change;
      unawaited(ledger.epochChange({ ...rest, node: primary, atNs: clock.nsOf(atMs) }));
      if (missed > 0)
        world.logger.debug(
          { partition: change.partition, epoch: change.epoch, missed },
          'edges were too quick to be seen',
        );
    },
    onIncarnation: (change) => {
      if (!change.alive) return;
      unawaited(
        ledger.incarnation({
          node: change.nodeId,
          incarnation: change.incarnation,
          atNs: clock.nsOf(change.atMs),
          wallMs: clock.wallOf(change.atMs),
        }),
      );
    },
    onEvent: (event) => hub.publish(event),
  });
}

/** Hands events on to whoever subscribed. */
class EventHub implements EventSource {
  private readonly listeners = new Set<(event: ClusterEvent) => void>();

  subscribe(listener: (event: ClusterEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  publish(event: ClusterEvent): void {
    for (const listener of this.listeners) listener(event);
  }
}
