/**
 * One certified run, from an empty results folder to a verdict.
 *
 * Invariant: whatever happens after the ledger was opened, the cluster is removed (or kept on request), the ledger is closed, what
 * is in it is judged, and everything that stands against a certificate is in it. A path around this would leave containers
 * behind, or a green verdict over missing evidence.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EnvironmentError } from '../../docker/errors.ts';
import { keptMarker } from '../report/list-runs.ts';
import { messageOf, NotRecoveredError } from '../errors.ts';
import { createRunFolder, type RunFolder, runIdOf, writeVerdict } from '../results.ts';
import type { RunSettings } from '../settings.ts';
import { decideVerdict, exitCodeOf, type VerdictReason } from '../verdict.ts';
import { aborted } from './interruption.ts';
import { type ActiveRun, openRun } from './open-run.ts';
import { interruptedLimits, type PhaseName } from './phases.ts';
import { finish } from './finish.ts';
import { loadAndChaos } from './load-phase.ts';
import type { Judged, World } from './world.ts';
import { defaultMinFreeBytes } from '../../ledger/ledger.ts';
import { HostWatch, troubleText } from './host-watch.ts';
import { type RunLedger, unawaited } from './ports.ts';
import type { Resumption } from './resumption.ts';
import { RunState } from './run-state.ts';

/** Longest wait for the removal of a cluster, ms. */
const removalLimitMs = 120_000;

/** Runs and judges. Rejects only when the harness itself fails in a way that leaves nothing to judge. */
export async function certify(
  settings: RunSettings,
  world: World,
): Promise<{ readonly folder: RunFolder; readonly judged: Judged }> {
  const runId = runIdOf(world.clock.wallMs(), settings.seed, world.processId);
  const folder = createRunFolder(settings.resultsDir, runId);
  const ledger = await world.openLedger(folder, settings);
  const state = new RunState(settings, world, folder, ledger);
  sayWhatComes(state);
  return { folder, judged: await conduct(state) };
}

/** Goes on with a run whose harness died: same ledger, same cluster, fresh clients; the time in between is a gap. */
export async function resume(
  folder: RunFolder,
  settings: RunSettings,
  ledger: RunLedger,
  resumed: Resumption,
  world: World,
): Promise<Judged> {
  const state = new RunState(settings, world, folder, ledger, resumed);
  state.print(
    `Run ${folder.runId} goes on: ${Math.round(resumed.remainingMs / 1_000)} s of its load are left, ${resumed.keys.length} keys live in the store`,
  );
  return await conduct(state);
}

/** From an open ledger to a verdict on disk. */
async function conduct(state: RunState): Promise<Judged> {
  const { world, folder, ledger } = state;
  const { interruption } = world;
  interruption.listen();
  interruption.early.addEventListener('abort', () => interrupted(state), { once: true });
  const host = watchHost(state);
  let isClosed = false;
  try {
    await attempt(state);
  } finally {
    host.stop();
    isClosed = await closeLedger(state, ledger);
  }
  const found = await judge(state);
  const judged = isClosed ? found : withReasons(found, state.reasonsAgainst);
  try {
    writeVerdict(folder, {
      runId: folder.runId,
      verdict: judged.verdict,
      exitCode: judged.exitCode,
      headline: judged.headline,
    });
  } catch (error) {
    state.print(`The verdict could not be written to ${folder.verdict} (${messageOf(error)}).`);
  }
  return judged;
}

/** What the ledger could not take down any more counts all the same. */
function withReasons(judged: Judged, reasons: readonly VerdictReason[]): Judged {
  const own: VerdictReason[] =
    judged.verdict === 'certified' ? [] : [{ verdict: judged.verdict, reason: judged.headline }];
  const closing: VerdictReason = { verdict: 'inconclusive', reason: 'The ledger could not be closed.' };
  const all = [...own, ...reasons, closing];
  const verdict = decideVerdict(all);
  if (verdict === judged.verdict) return judged;
  const headline = all.find((each) => each.verdict === verdict)?.reason ?? judged.headline;
  return { ...judged, verdict, exitCode: exitCodeOf(verdict), headline, lines: [headline, ...judged.lines] };
}

/** Names the trouble of this machine; a stretch in which nothing ran here is a gap of the ledger. */
function watchHost(state: RunState): HostWatch {
  const { ledger, clock } = state;
  const host = new HostWatch({
    clock,
    freeBytes: () => ledger.usage().freeBytes,
    leastFreeBytes: defaultMinFreeBytes,
    onTrouble: (trouble) => {
      const text = troubleText(trouble);
      state.print(text);
      state.hostTroubles.push(text);
      unawaited(ledger.meta('hostTroubles', state.hostTroubles));
      if (trouble.kind === 'held-up')
        unawaited(ledger.gap({ fromNs: clock.nsOf(trouble.fromMs), toNs: clock.nsOf(trouble.toMs), reason: text }));
    },
  });
  state.latenessMs = () => host.latenessMs;
  host.start();
  return host;
}

function interrupted(state: RunState): void {
  const { world, folder } = state;
  const why =
    world.interruption.uncaught === null
      ? `interrupted by ${world.interruption.signalName}`
      : 'stopped by an error of the harness';
  state.print(`The run is ${why}: healing, then judging what there is. Ctrl-C stops at once.`);
  world.preliminary(folder, state.settings, state.tally, why).catch((error: unknown) => {
    world.logger.error({ error: messageOf(error) }, 'the preliminary report could not be written');
  });
}

/** Judges what is in the ledger, within its limit; a verifier that does not end leaves the verdict to what is known without it. */
async function judge(state: RunState): Promise<Judged> {
  const { world, folder } = state;
  const isEarly = world.interruption.early.aborted;
  const limitMs = isEarly
    ? interruptedLimits.verify + interruptedLimits.report
    : state.limits.verify + state.limits.report;
  let why: string;
  try {
    const atOnce = world.interruption.uncaught === null ? [world.interruption.atOnce] : [];
    const end = await state.phases.run('verify', limitMs, atOnce, (signal) => world.judge(folder, signal));
    if (end.kind === 'done') return end.value;
    why = `the verifier did not end within ${Math.round(limitMs / 1_000)} s`;
  } catch (error) {
    world.logger.error(
      { error: error instanceof Error ? (error.stack ?? error.message) : String(error) },
      'the verifier failed',
    );
    why = `the verifier failed (${messageOf(error)})`;
  }
  const verdict = decideVerdict([...state.reasonsAgainst, { verdict: 'inconclusive', reason: why }]);
  const headline = `${verdict.toUpperCase()}: ${why}; "certify verify ${folder.runId}" judges the run again.`;
  return { verdict, exitCode: exitCodeOf(verdict), headline, lines: state.reasonsAgainst.map(({ reason }) => reason) };
}

/** The part that needs a cluster. What goes wrong becomes a reason. */
async function attempt(state: RunState): Promise<void> {
  const { world } = state;
  let active: ActiveRun | null = null;
  try {
    const opened = await state.phases.run('start', state.limits.start, [world.interruption.early], (signal) =>
      openRun(state, signal),
    );
    if (opened.kind === 'out-of-time') {
      if (!world.interruption.early.aborted)
        state.against({
          verdict: 'environment',
          reason: `The cluster did not come up within ${state.limits.start / 1_000} s.`,
        });
      return;
    }
    active = opened.value;
    const hardStop = aborted(world.interruption.atOnce);
    await Promise.race([work(state, active), hardStop]);
  } catch (error) {
    state.against(reasonOf(error, state.phases.current));
    world.logger.error(
      { error: error instanceof Error ? (error.stack ?? error.message) : String(error) },
      'the run was cut short by an error',
    );
  } finally {
    const { uncaught } = world.interruption;
    if (uncaught !== null) state.against(reasonOf(uncaught.error, state.phases.current));
    if (world.interruption.signalName !== null) {
      state.against({ verdict: 'interrupted', reason: `The run was ended early by ${world.interruption.signalName}.` });
    }
    await endCluster(state, active);
  }
}

async function work(state: RunState, active: ActiveRun): Promise<void> {
  if (state.resumed?.isLoadOver !== true) await loadAndChaos(state, active);
  await finish(state, active);
}

/** What an error speaks for. Everything unknown is the harness's fault. */
function reasonOf(error: unknown, phase: PhaseName | null): VerdictReason {
  const reason = `${messageOf(error)}${phase === null ? '' : ` (in phase ${phase})`}`;
  if (error instanceof EnvironmentError) return { verdict: 'environment', reason: error.message };
  if (error instanceof NotRecoveredError) return { verdict: 'not-recovered', reason };
  if (error instanceof Error && error.name === 'DiskGuardError') return { verdict: 'inconclusive', reason };
  return { verdict: 'harness-fault', reason };
}

async function endCluster(state: RunState, active: ActiveRun | null): Promise<void> {
  const cluster = state.cluster;
  if (cluster === null) return;
  try {
    await active?.system.close();
  } catch (error) {
    state.world.logger.warn({ error: messageOf(error) }, 'the clients could not be closed');
  }
  try {
    if (state.settings.keep || state.frozen) {
      const how = await cluster.keep();
      // A run whose cluster somebody wanted to look at is not pruned either.
      writeFileSync(join(state.folder.path, keptMarker), '');
      state.print(`The cluster is kept; remove it with: ${how}`);
    } else await withinLimit(cluster.dispose());
  } catch (error) {
    state.against({
      verdict: 'environment',
      reason: `The cluster could not be removed (${messageOf(error)}); "certify clean" tries again.`,
    });
  }
}

/** An engine that has stopped must not keep the run from its verdict. */
async function withinLimit(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${removalLimitMs / 1_000} s`)), removalLimitMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** False when the ledger could not take down everything. */
async function closeLedger(state: RunState, ledger: RunLedger): Promise<boolean> {
  try {
    await state.writeEnd();
    await ledger.close();
    return true;
  } catch (error) {
    state.world.logger.error({ error: messageOf(error) }, 'the ledger could not be closed');
    return false;
  }
}

function sayWhatComes(state: RunState): void {
  const { settings, folder } = state;
  const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`;
  state.print(
    `Run ${folder.runId}: ${settings.system} on ${settings.cluster}, ${settings.nodeCount} nodes, rf ${settings.replicationFactor}, seed 0x${settings.seed.toString(16)}`,
  );
  state.print(`Results: ${folder.path}`);
  const { limits } = state;
  state.print(
    `Phases, at most: start ${seconds(limits.start)}, load and faults ${seconds(settings.durationMs)}, heal ${seconds(limits.heal)}, settle ${seconds(limits.settle)}, ` +
      `read-back ${seconds(limits['read-back'])}, autopsy ${seconds(limits.autopsy)}, verify and report ${seconds(limits.verify + limits.report)}`,
  );
}
