/**
 * Takes a cluster over that a dead harness left: everything of ours is healed, and the journal told so, before anything else is
 * done with it. If a leftover cut stayed, the run would go on under a fault that nobody knows of.
 */
import type { Cluster } from '../../chaos/ports.ts';
import type { FaultStep } from '../../chaos/journal.ts';
import type { Resumption } from './resumption.ts';
import type { RunState } from './run-state.ts';

/** Removes every rule, lets frozen nodes go on, starts those that are not running, puts clocks right. Returns what was done. */
export async function healLeftovers(cluster: Cluster): Promise<string> {
  const done: string[] = ['no link rule stands'];
  if (cluster.setLinkRules !== undefined) await cluster.setLinkRules([]);
  else await cluster.setCuts([]);
  for (const nodeId of cluster.nodeIds()) {
    const { kind } = await cluster.state(nodeId);
    if (kind === 'paused') {
      await cluster.resume(nodeId);
      done.push(`${nodeId} resumed`);
    } else if (kind !== 'running') {
      await cluster.startNode(nodeId);
      done.push(`${nodeId} started`);
    }
  }
  const unsupported = await cluster.unsupported();
  if (cluster.setClockOffset !== undefined && !unsupported.has('clock')) {
    for (const nodeId of cluster.nodeIds()) await cluster.setClockOffset(nodeId, 0);
    done.push('clocks put right');
  }
  return done.join('; ');
}

/** Names the nodes that ended while nobody watched and no open fault of ours explains it. Call it before the heal. */
export async function unexplainedDeaths(state: RunState, cluster: Cluster, resumed: Resumption): Promise<void> {
  const open = new Set(resumed.unhealed.filter((fault) => fault.open).map((fault) => fault.faultId));
  const explained = new Set(
    resumed.records.flatMap((record) =>
      record.step === 'injecting' && open.has(record.faultId) ? [...record.nodeIds] : [],
    ),
  );
  for (const nodeId of cluster.nodeIds()) {
    const at = await cluster.state(nodeId);
    if (at.kind !== 'exited' || explained.has(nodeId)) continue;
    state.against({
      verdict: 'inconclusive',
      reason: `${nodeId} had ended with exit code ${at.exitCode} without a fault of ours while the harness was away.`,
    });
  }
}

/** Heals what the dead harness left open and writes it to the journal; what had not had its turn is closed. */
export async function takeUp(state: RunState, cluster: Cluster, resumed: Resumption): Promise<void> {
  const { journal, clock } = state;
  journal.restore(resumed.records);
  await unexplainedDeaths(state, cluster, resumed);
  const write = (faultId: string, step: FaultStep): Promise<void> =>
    journal.append({ faultId, atMs: clock.nowMs(), ...step });
  const open = resumed.unhealed.filter((fault) => fault.open);
  for (const { faultId } of open)
    await write(faultId, { step: 'healing', why: 'the harness had died while it was open' });
  const evidence = await healLeftovers(cluster);
  for (const { faultId } of open) await write(faultId, { step: 'healed', evidence });
  for (const { faultId, becomes } of resumed.unplayed) {
    const reason =
      becomes === null
        ? 'the harness died before its turn, and no load is left'
        : `the harness died before its turn; it comes again as ${becomes}`;
    await write(faultId, { step: 'skipped', reason });
  }
  state.print(`Taken up: ${cluster.nodeIds().length} nodes, ${open.length} open faults healed (${evidence})`);
}

/** After the cluster has become whole again: what was healed is verified. */
export async function verifyTakenUp(state: RunState, resumed: Resumption): Promise<void> {
  const { journal, clock } = state;
  const evidence = 'every partition was healthy again after the harness had come back';
  for (const { faultId } of resumed.unhealed)
    await journal.append({ faultId, atMs: clock.nowMs(), step: 'heal-verified', evidence });
}

/** The keys that live in the store are read back and retired as before; no generator names them again. */
export function takeUpKeys(state: RunState, resumed: Resumption): void {
  for (const key of resumed.keys) {
    state.keys.opened(key);
    state.keys.finished(key);
  }
}
