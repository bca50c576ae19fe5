/** The thread of `certify sim --seed N`: one simulated run, its ledger, and the judgement and report of any other run. */
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { formatSchedule } from '../../chaos/schedule-file.ts';
import { present } from '../../lib/assert.ts';
import { describeOptions, drawOptions, type Pins, type SimOptions } from '../../sim/options.ts';
import { outcomeOf } from '../../sim/outcome.ts';
import { runSim } from '../../sim/run-seed.ts';
import { replayCommand } from '../../sim/sweep.ts';
import { writeLedger } from '../../sim/write-ledger.ts';
import { currentHost } from '../assemble/head-part.ts';
import { judgeFolder } from '../judge-folder.ts';
import { createRunFolder, runIdOf, writeVerdict, writeWhole } from '../results.ts';
import { zaris } from '../systems/zaris.ts';
import type { VerdictReason } from '../verdict.ts';

export interface SimRunTask {
  readonly seed: number;
  readonly pins: Pins;
  readonly resultsDir: string;
  readonly colour: boolean;
}

export type SimRunReply =
  | { readonly kind: 'line'; readonly line: string }
  | { readonly kind: 'end'; readonly exitCode: number };

const port = present(parentPort, 'a parent thread');
const print = (line: string): void => port.postMessage({ kind: 'line', line } satisfies SimRunReply);

/** Plays one seed, writes its ledger, and judges that as any other run's. */
async function simRun({ seed, pins, resultsDir, colour }: SimRunTask): Promise<number> {
  const options = drawOptions(seed, pins);
  print(`Seed ${seed}: ${describeOptions(options)}`);
  const result = await runSim({ seed, options, checkers: true });
  const outcome = outcomeOf(result);
  print(
    `${(result.virtualMs / 60_000).toFixed(1)} min simulated in ${(result.wallMs / 1_000).toFixed(1)} s: ${outcome.operations} operations, ${outcome.confirmedFaults} faults, ` +
      `${outcome.failovers} failovers, trace ${outcome.traceHash}`,
  );
  const reasons: VerdictReason[] = [];
  for (const { atMs, where, why } of result.breaches)
    reasons.push({ verdict: 'violated', reason: `Invariant broken on ${where} at ${Math.round(atMs)} ms: ${why}` });
  if (result.notRecovered !== null)
    reasons.push({ verdict: 'not-recovered', reason: `Liveness: ${result.notRecovered}.` });
  for (const error of result.environmentErrors) reasons.push({ verdict: 'environment', reason: error });
  const runId = runIdOf(Date.now(), seed, process.pid);
  const folder = createRunFolder(resultsDir, runId);
  writeWhole(folder.schedule, `${formatSchedule(result.schedule)}\n`);
  await writeLedger(result, {
    path: folder.ledger,
    runId,
    settings: settingsOf(seed, options, pins),
    host: currentHost(),
    build: 'this working tree',
    reasons,
    contract: zaris.contract({
      clusterId: 'sim',
      nodeCount: options.nodes,
      replicationFactor: options.rf,
      minInSync: options.minInSync,
      partitionCount: options.partitions,
    }),
    canarySeenLive: result.canariesSeen,
  });
  const judged = judgeFolder(folder.path, colour);
  writeVerdict(folder, { runId, verdict: judged.verdict, exitCode: judged.exitCode, headline: judged.headline });
  for (const line of judged.lines) print(line);
  print(`Again: ${replayCommand(seed, pins)}   (${join(folder.path, 'report.html')})`);
  return judged.exitCode;
}

function settingsOf(seed: number, options: SimOptions, pins: Pins): Record<string, unknown> {
  const { rf, nodes, partitions, chaos, mix, maxOperations: _unbounded, ...rest } = options;
  return {
    ...rest,
    seed,
    replicationFactor: rf,
    nodeCount: nodes,
    partitionCount: partitions,
    chaosLevel: chaos,
    workload: mix,
    cluster: 'sim',
    system: 'zaris',
    contract: 'durable',
    replay: replayCommand(seed, pins),
    nodeEntry: null,
  };
}

port.postMessage({ kind: 'end', exitCode: await simRun(workerData as SimRunTask) } satisfies SimRunReply);
