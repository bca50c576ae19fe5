/** The thread of `certify sim --seed N`: one simulated run, its ledger, and the judgement and report of any other run. */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { formatSchedule } from '../../chaos/schedule-file.ts';
import { present } from '../../lib/assert.ts';
import { describeOptions, drawOptions, type Pins, type SimOptions } from '../../sim/options.ts';
import { speedLine } from '../../sim/command.ts';
import type { SimPlayed } from '../../sim/job.ts';
import { LedgerFeed } from '../../sim/ledger-feed.ts';
import { playSim, runTagOf } from '../../sim/run-seed.ts';
import { replayCommand } from '../../sim/sweep.ts';
import { currentHost } from '../assemble/head-part.ts';
import { judgeFolder } from '../judge-folder.ts';
import { createRunFolder, runIdOf, writeVerdict, writeWhole } from '../results.ts';
import { zaris } from '../systems/zaris.ts';
import type { VerdictReason } from '../verdict.ts';

export interface SimRunTask {
  readonly seed: number;
  readonly pins: Pins;
  readonly resultsDir: string;
  /** Where the ledger is until the run is told in full; whoever gave it removes it. */
  readonly unfinished: string;
  readonly colour: boolean;
}

export type SimRunReply =
  | { readonly kind: 'line'; readonly line: string }
  | { readonly kind: 'end'; readonly exitCode: number };

const port = present(parentPort, 'a parent thread');
const print = (line: string): void => port.postMessage({ kind: 'line', line } satisfies SimRunReply);

/** Plays one seed, writes its ledger, and judges that as any other run's. */
async function simRun({ seed, pins, resultsDir, unfinished, colour }: SimRunTask): Promise<number> {
  const startedMs = performance.now();
  const options = drawOptions(seed, pins);
  print(`Seed ${seed}: ${describeOptions(options)}`);
  const ledger = join(unfinished, 'ledger.sqlite');
  const runId = runIdOf(Date.now(), seed, process.pid);
  const feed = await LedgerFeed.open(ledger, runTagOf(seed));
  let played: SimPlayed;
  try {
    played = await playSim({ seed, options, checkers: true, sink: feed });
    print(playedLine(played));
    await feed.finish(played, {
      runId,
      settings: settingsOf(seed, options, pins),
      host: currentHost(),
      build: 'this working tree',
      reasons: reasonsOf(played),
      contract: contractOf(options),
    });
  } finally {
    await feed.abandon();
  }
  const folder = createRunFolder(resultsDir, runId);
  writeWhole(folder.schedule, `${formatSchedule(played.schedule)}\n`);
  renameSync(ledger, folder.ledger);
  const judged = judgeFolder(folder.path, colour);
  writeVerdict(folder, { runId, verdict: judged.verdict, exitCode: judged.exitCode, headline: judged.headline });
  for (const line of judged.lines) print(line);
  const { user, system } = process.threadCpuUsage();
  print(speedLine(played.virtualMs, performance.now() - startedMs, (user + system) / 1_000));
  print(`Again: ${replayCommand(seed, pins)}   (${join(folder.path, 'report.html')})`);
  return judged.exitCode;
}

const playedLine = ({ history, virtualMs, wallMs, confirmedFaults, failovers, traceHash }: SimPlayed): string =>
  `${(virtualMs / 60_000).toFixed(1)} min simulated in ${(wallMs / 1_000).toFixed(1)} s: ${history.operationCount} operations, ` +
  `${confirmedFaults} faults, ${failovers} failovers, trace ${traceHash}`;

const contractOf = ({ nodes, rf, minInSync, partitions }: SimOptions): unknown =>
  zaris.contract({
    clusterId: 'sim',
    nodeCount: nodes,
    replicationFactor: rf,
    minInSync,
    partitionCount: partitions,
  });

function reasonsOf({ breaches, notRecovered, environmentErrors }: SimPlayed): VerdictReason[] {
  const reasons: VerdictReason[] = [];
  for (const { atMs, where, why } of breaches)
    reasons.push({ verdict: 'violated', reason: `Invariant broken on ${where} at ${Math.round(atMs)} ms: ${why}` });
  if (notRecovered !== null) reasons.push({ verdict: 'not-recovered', reason: `Liveness: ${notRecovered}.` });
  for (const error of environmentErrors) reasons.push({ verdict: 'environment', reason: error });
  return reasons;
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
