/** `certify doctor` and `certify clean`: what this machine can do, and what runs left on it, as containers or as processes. */
import { existsSync, statfsSync } from 'node:fs';
import { cpus, freemem, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Table from 'cli-table3';
import { ensureBaseImage } from '../../docker/base-image.ts';
import { examineHost, unsupportedFaults } from '../../docker/doctor.ts';
import { connectEngine, ensureEngine } from '../../docker/engine.ts';
import { EnvironmentError, messageOf } from '../../docker/errors.ts';
import { cleanRun, sweep } from '../../docker/sweep.ts';
import { endRecorded, sweepProcesses } from '../clusters/process-record.ts';

import { plainTable } from '../report/list-runs.ts';
import { formatBytes } from '../report/text.ts';

const projectDir = fileURLToPath(new URL('../..', import.meta.url));
const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Tries everything that faults need in a throw-away container, and prints tables: this machine, and what it can do to a node. */
export async function doctorCommand(resultsDir: string): Promise<number> {
  process.stdout.write(`${plainTable(['this machine', ''], hostRows(resultsDir))}\n\n`);
  const engine = await ensureEngine({ say });
  const base = await ensureBaseImage({ docker: engine.docker, projectDir, say });
  const capabilities = await examineHost(engine, base);
  const table = new Table({
    head: ['what', 'able', 'faults that need it', 'evidence'],
    style: { head: [], border: [] },
    wordWrap: true,
    colWidths: [22, 6, 30, 60],
  });
  for (const each of capabilities)
    table.push([each.name, each.able ? 'yes' : 'NO', each.faults.join(', '), each.evidence]);
  process.stdout.write(`${table.toString()}\n`);
  const impossible = [...unsupportedFaults(capabilities).keys()];
  process.stdout.write(
    impossible.length === 0
      ? 'Every kind of fault can be injected here.\n'
      : `Not to be had here, and left out of runs (the report says so): ${impossible.join(', ')}.\n`,
  );
  return 0;
}

/** Free space below which a night's ledger may not fit, bytes. */
const nightBytes = 6e9;

function hostRows(resultsDir: string): string[][] {
  const at = existsSync(resultsDir) ? resultsDir : '.';
  const space = statfsSync(at);
  const freeBytes = space.bavail * space.bsize;
  return [
    ['node.js', process.version],
    ['processors', String(cpus().length)],
    ['memory', `${formatBytes(freemem())} free of ${formatBytes(totalmem())}`],
    [
      'disk',
      `${formatBytes(freeBytes)} free for ${resultsDir}${freeBytes < nightBytes ? ', too little for a night' : ''}`,
    ],
    [
      'user',
      process.getuid?.() === 0
        ? 'root: packets are filtered from the host'
        : 'not root: packets are filtered by exec, slower',
    ],
  ];
}

/** Removes one run by name, or everything whose owner is provably dead. */
export async function cleanCommand(run: string | null, resultsDir: string): Promise<number> {
  const cleanedProcesses = cleanProcesses(run, resultsDir);
  let engine: Awaited<ReturnType<typeof connect>>;
  try {
    engine = await connect();
  } catch (error) {
    // Without an engine there are no containers either; what there was has been said.
    if (cleanedProcesses) return 0;
    throw error;
  }
  if (run !== null) {
    if (cleanedProcesses) return 0;
    const removed = await cleanRun(engine.docker, run);
    const count = removed.containers + removed.networks + removed.volumes;
    process.stdout.write(
      count === 0
        ? `There is nothing of run ${run} on the engine.\n`
        : `Removed ${removed.containers} containers, ${removed.networks} networks and ${removed.volumes} volumes of run ${run}.\n`,
    );
    if (removed.problems.length > 0)
      throw new EnvironmentError(`Not everything could be removed: ${removed.problems.join('; ')}.`);
    return 0;
  }
  const report = await sweep(engine.docker);
  for (const each of report.swept) process.stdout.write(`Removed run ${each.runId} (${each.proof ?? 'by name'}).\n`);
  for (const each of report.spared) process.stdout.write(`Left run ${each.runId} alone: ${each.why}.\n`);
  if (report.swept.length + report.spared.length === 0 && !cleanedProcesses)
    process.stdout.write('There is nothing to clean.\n');
  return 0;
}

/** True when there was something of the kind. */
function cleanProcesses(run: string | null, resultsDir: string): boolean {
  const named = run === null ? null : endRecorded(join(resultsDir, run));
  const cleaned = run === null ? sweepProcesses(resultsDir) : named === null ? [] : [named];
  for (const { runId, ended, proof } of cleaned)
    process.stdout.write(`Ended ${ended} local processes of run ${runId} (${proof ?? 'by name'}).\n`);
  return cleaned.length > 0;
}

async function connect(): ReturnType<typeof connectEngine> {
  try {
    return await connectEngine();
  } catch (error) {
    throw new EnvironmentError(
      `No Docker engine answers (${messageOf(error)}): there is nothing to clean until it runs.`,
    );
  }
}
