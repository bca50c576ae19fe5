/**
 * Notices a node that died without a fault of ours: a finding of its own, with its exit code and last words. Such a node is
 * not started again; hiding a crash behind a restart would certify a store that falls over.
 */
import { messageOf } from '../errors.ts';
import type { LedgerFaultJournal } from './fault-journal.ts';
import type { ActiveRun } from './open-run.ts';
import { lastLine } from './open-run.ts';
import type { RunState } from './run-state.ts';

const everyMs = 2_000;

/** Runs until `signal` is aborted. */
export async function watchNodes(
  state: RunState,
  active: ActiveRun,
  journal: LedgerFaultJournal,
  signal: AbortSignal,
): Promise<void> {
  const reported = new Set<string>();
  while (!signal.aborted) {
    await Promise.all(active.cluster.cluster.nodeIds().map((nodeId) => look(state, active, journal, reported, nodeId)));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, everyMs);
      signal.addEventListener(
        'abort',
        () => {
          clearTimeout(timer);
          resolve();
        },
        { once: true },
      );
    });
  }
}

async function look(
  state: RunState,
  active: ActiveRun,
  journal: LedgerFaultJournal,
  reported: Set<string>,
  nodeId: string,
): Promise<void> {
  try {
    const at = await active.cluster.cluster.state(nodeId);
    if (at.kind !== 'exited' || reported.has(at.instance) || journal.explains(nodeId).length > 0) return;
    // A fault may have been announced while the engine was asked.
    reported.add(at.instance);
    const tail = await active.cluster.logTail(nodeId).catch(() => '');
    const how = at.oomKilled ? 'was killed by the kernel for memory' : `ended with exit code ${at.exitCode}`;
    state.against({ verdict: 'inconclusive', reason: `${nodeId} ${how} without a fault of ours: ${lastLine(tail)}` });
    state.print(`${nodeId} ${how} without a fault of ours`);
  } catch (error) {
    state.world.logger.warn({ nodeId, error: messageOf(error) }, 'the state of a node could not be read');
  }
}
