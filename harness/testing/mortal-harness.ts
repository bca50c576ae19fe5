/**
 * A harness that a test kills: `node mortal-harness.ts run|resume FOLDER SEED`, with the store in the process that started it.
 * All but the store is real: the run loop, the ledger, the judge in its thread, the look at an abandoned run.
 *
 * Writes `FOLDER/seen.log`: one line per acknowledged mutation, on disk before the run loop hears of it. The last line of its
 * standard output says what became of the run, as JSON.
 */
import { mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openLedger } from '../../ledger/ledger.ts';
import { silentLogger } from '../../lib/logger.ts';
import { parseCommandLine } from '../cli.ts';
import { messageOf } from '../errors.ts';
import { judgeRun, writePreliminary } from '../judge-run.ts';
import { openRunFolder } from '../results.ts';
import { lookAtRun, takeLedger } from '../resume-run.ts';
import { playChaos } from '../run/chaos-control.ts';
import { Interruption } from '../run/interruption.ts';
import { certify, resume } from '../run/run.ts';
import { runTagOf } from '../run/run-state.ts';
import type { World } from '../run/world.ts';
import { hostNowMs, RemoteStore } from './outliving-store.ts';

/** What a child came to. */
export type MortalEnd =
  | { readonly kind: 'judged'; readonly verdict: string; readonly exitCode: number }
  /** The run had reached its end before the harness died; only its verdict was missing. */
  | { readonly kind: 'over'; readonly verdict: string; readonly exitCode: number }
  /** There was nothing to go on with; the sentence that the user reads. */
  | { readonly kind: 'refused'; readonly message: string };

const schedule = {
  version: 1,
  durationMs: 5_000,
  healFromMs: 4_000,
  events: [
    { id: 'F1', at: '250ms', fault: 'kill', target: 'node:n1', durationMs: 400 },
    { id: 'F2', at: '800ms', fault: 'pause', target: 'node:n2', durationMs: 500 },
    { id: 'F3', at: '1800ms', fault: 'kill', target: 'node:n3', durationMs: 300 },
    { id: 'F4', at: '2800ms', fault: 'kill', target: 'node:n4', durationMs: 500 },
  ],
};

async function main([mode = '', folder = '', seed = '1']: readonly string[]): Promise<MortalEnd> {
  const seen = openSync(join(folder, 'seen.log'), 'a');
  const store = new RemoteStore();
  const world: World = {
    system: store.asSystem((session, operation, { ...completion }) => {
      if (operation.f === 'read' || completion.kind !== 'ok') return;
      const version = completion.version?.join('.') ?? '';
      writeSync(seen, `${session} ${operation.f} ${operation.key} ${version}\n`);
    }),
    clock: { nowMs: hostNowMs, wallMs: () => Date.now() },
    logger: silentLogger,
    interruption: new Interruption(),
    out: { write: () => undefined },
    processId: process.pid,
    openLedger: (run) => openLedger({ path: run.ledger, runTag: runTagOf(run.runId) }),
    openCluster: async () => store.asRunCluster(),
    startChaos: playChaos,
    preliminary: writePreliminary,
    judge: judgeRun,
  };
  const results = join(folder, 'results');
  if (mode === 'run') {
    mkdirSync(folder, { recursive: true });
    const file = join(folder, 'schedule.json');
    writeFileSync(file, JSON.stringify(schedule));
    const words = `--duration 5s --partitions 16 --sessions 8 --rate 800 --seed ${seed} --schedule ${file} --results ${results}`;
    const command = await parseCommandLine(words.split(' '), '0');
    if (command.kind !== 'run') throw new Error(`not a run but ${command.kind}`);
    const { judged } = await certify(command.settings, world);
    return { kind: 'judged', verdict: judged.verdict, exitCode: judged.exitCode };
  }
  const found = openRunFolder(results, 'latest');
  const state = lookAtRun(found);
  if (state.kind === 'owned') throw new Error(state.why);
  if (state.kind === 'over') {
    const { verdict, exitCode } = await judgeRun(found, new AbortController().signal);
    return { kind: 'over', verdict, exitCode };
  }
  const { ledger, resumed } = await takeLedger(found, state.settings);
  const { verdict, exitCode } = await resume({ ...found, runId: state.runId }, state.settings, ledger, resumed, world);
  return { kind: 'judged', verdict, exitCode };
}

function refusedOr(error: unknown): MortalEnd {
  if (error instanceof Error && (error.name === 'UsageError' || error.name === 'LedgerFileError'))
    return { kind: 'refused', message: messageOf(error) };
  throw error;
}

const end = await main(process.argv.slice(2)).catch(refusedOr);
process.stdout.write(`${JSON.stringify(end)}\n`, () => process.exit(0));
