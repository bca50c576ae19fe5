/** One schedule file for every world, and what each made of it. For the tests that compare them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FaultRecord } from '../../chaos/journal.ts';
import { type OrderedEvent, orderOf } from '../../chaos/order.ts';
import { parseSchedule } from '../../chaos/schedule-file.ts';
import { openLedgerReader } from '../../ledger/reader.ts';
import type { FaultRow } from '../../ledger/rows.ts';
import { drawOptions } from '../../sim/options.ts';
import { runSim } from '../../sim/run-seed.ts';

/** Times, stages, moments of the cluster, a moment that never comes, and one that the budget cannot allow. */
export const orderSchedule = {
  name: 'a bit of everything',
  durationMs: '34s',
  healFromMs: '28s',
  events: [
    { id: 'cut', at: '2s', fault: 'isolate', target: 'n2', durationMs: '3s' },
    { id: 'lame', after: { fault: 'cut', stage: 'healed' }, fault: { kind: 'pause' }, target: 'n4', durationMs: '1s' },
    { id: 'deaf', at: '9s', fault: 'one-way-in', target: 'n3', durationMs: '2s' },
    { id: 'burst', after: { event: 'ack', count: 300 }, fault: 'kill', target: 'control-leader', durationMs: '2s' },
    { id: 'all', at: '17s', fault: 'kill', target: 'all', durationMs: '2s' },
    { id: 'nobody', after: { event: 'nobody-says-this' }, fault: 'kill', target: 'n1' },
    { id: 'early', at: '6s', fault: 'client-partition', target: 'n5', durationMs: '1s' },
  ],
};

/** Writes {@link orderSchedule} into a folder; returns its path. */
export function writeOrderSchedule(folder: string): string {
  const path = join(folder, 'file.json');
  writeFileSync(path, JSON.stringify(orderSchedule));
  return path;
}

const recordsOf = (rows: Iterable<FaultRow>): FaultRecord[] =>
  [...rows].map((row): FaultRecord => ({ ...(row.evidence as FaultRecord), atMs: row.atNs / 1e6 }));

/** Plays the file as a run of the command line, with its results in `folder`. */
export async function orderOn(cluster: 'docker' | 'process', folder: string): Promise<readonly OrderedEvent[]> {
  const schedule = writeOrderSchedule(folder);
  const words = `--cluster ${cluster} --nodes 5 --partitions 16 --sessions 16 --rate 400 --duration 34s --schedule ${schedule} --results ${folder}`;
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'main.ts'), ...words.split(' ')], {
    stdio: 'ignore',
  });
  await once(child, 'exit');
  using reader = openLedgerReader(join(folder, 'latest'));
  return orderOf(recordsOf(reader.faults()));
}

/** Plays the file on virtual time. */
export async function orderOnSimulator(folder: string): Promise<readonly OrderedEvent[]> {
  const pins = { nodes: '5', rf: '3', partitions: '16', durationMs: '34000', chaos: 'none' };
  const schedule = parseSchedule(readFileSync(writeOrderSchedule(folder), 'utf8'));
  const { history } = await runSim({ seed: 11, options: drawOptions(11, pins), schedule });
  return orderOf(recordsOf(history.faults()));
}
