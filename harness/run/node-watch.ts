/**
 * Watches the nodes and the engine under them. A node that died without a fault of ours is a finding of its own, with its exit code
 * and last words, and is not started again: hiding a crash behind a restart would certify a store that falls over. An engine that
 * stops answering is the environment's trouble, and ends the run early.
 */
import { EnvironmentError } from '../../docker/errors.ts';
import { messageOf } from '../errors.ts';
import type { ActiveRun } from './open-run.ts';
import { lastLine } from './open-run.ts';
import { unawaited } from './ports.ts';
import type { RunState } from './run-state.ts';

const everyMs = 2_000;
/** An engine that answers nobody for so long has stopped, ms. */
const engineSilenceMs = 45_000;
/** An answer that takes longer counts as none, ms. */
const answerMs = 15_000;
/** Every so many looks, and when a node has died by itself, what the nodes stand on is looked at too. */
const foundationEvery = 5;
/** Lines of a dead node's log that the log of the run keeps. */
const lastWords = 20;

/** Runs until `signal` is aborted. Rejects with EnvironmentError when the engine has stopped answering. */
export async function watchNodes(watch: NodeWatch, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await watch.look();
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

/** One look at every node at a time; made for {@link watchNodes}. */
export class NodeWatch {
  private readonly state: RunState;
  private readonly active: ActiveRun;
  private readonly reported = new Set<string>();
  /** Nodes that died by themselves. */
  private readonly crashed = new Set<string>();
  private answeredAtMs: number;
  private looks = 0;

  constructor(state: RunState, active: ActiveRun) {
    this.state = state;
    this.active = active;
    this.answeredAtMs = state.clock.nowMs();
  }

  async look(): Promise<void> {
    const { cluster } = this.active.cluster;
    const { clock } = this.state;
    const nodeIds = cluster.nodeIds();
    if (this.looks++ % foundationEvery === 0) await this.lookUnder();
    const answers = await Promise.all(nodeIds.map((nodeId) => this.lookAt(nodeId)));
    if (nodeIds.length === 0 || answers.includes(true)) this.answeredAtMs = clock.nowMs();
    const silentMs = clock.nowMs() - this.answeredAtMs;
    if (silentMs > engineSilenceMs) {
      throw new EnvironmentError(
        `The engine under the nodes has not answered for ${Math.round(silentMs / 1_000)} s: see whether it still runs.`,
      );
    }
  }

  /** Throws when what the nodes stand on is gone: their deaths are no fault of the store. */
  private async lookUnder(): Promise<void> {
    const { cluster } = this.active.cluster;
    const fallen = await bounded(cluster.foundation?.() ?? Promise.resolve(null), answerMs).catch(() => null);
    if (fallen !== null) throw new EnvironmentError(fallen);
  }

  /** True when the engine told the node's state. */
  private async lookAt(nodeId: string): Promise<boolean> {
    const { state, active, reported } = this;
    try {
      const at = await bounded(active.cluster.cluster.state(nodeId), answerMs);
      if (at.kind !== 'exited' || reported.has(at.instance) || state.journal.explains(nodeId).length > 0) return true;
      await this.lookUnder();
      // A fault may have been announced while the engine was asked.
      reported.add(at.instance);
      const tail = await active.cluster.logTail(nodeId).catch(() => '');
      const how = at.oomKilled ? 'was killed by the kernel for memory' : `ended with exit code ${at.exitCode}`;
      state.against({ verdict: 'inconclusive', reason: `${nodeId} ${how} without a fault of ours: ${lastLine(tail)}` });
      unawaited(state.ledger.meta('crashed', [...this.crashed.add(nodeId)]));
      state.print(`${nodeId} ${how} without a fault of ours`);
      state.world.logger.error(
        { nodeId, lastWords: tail.trim().split('\n').slice(-lastWords) },
        'a node died by itself',
      );
      return true;
    } catch (error) {
      if (error instanceof EnvironmentError) throw error;
      state.world.logger.warn({ nodeId, error: messageOf(error) }, 'the state of a node could not be read');
      return false;
    }
  }
}

/** What `answer` comes to, or a rejection when it takes too long. */
async function bounded<T>(answer: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${limitMs / 1_000} s`)), limitMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
