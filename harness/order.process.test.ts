/** One schedule file on the simulator and on local processes: the same plan in the same order; what differs is told. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FaultRecord } from '../chaos/journal.ts';
import { orderDifferences, type OrderedEvent, orderOf, overtaken, planLines } from '../chaos/order.ts';
import { parseSchedule } from '../chaos/schedule-file.ts';
import { openLedgerReader } from '../ledger/reader.ts';
import type { FaultRow } from '../ledger/rows.ts';
import { drawOptions } from '../sim/options.ts';
import { runSim } from '../sim/run-seed.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-order-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = {
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

const recordsOf = (rows: Iterable<FaultRow>): FaultRecord[] =>
  [...rows].map((row): FaultRecord => ({ ...(row.evidence as FaultRecord), atMs: row.atNs / 1e6 }));

async function onProcesses(schedule: string): Promise<readonly OrderedEvent[]> {
  const words = `--cluster process --nodes 5 --partitions 16 --sessions 16 --rate 400 --duration 34s --schedule ${schedule} --results ${folder}`;
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), ...words.split(' ')], {
    stdio: 'ignore',
  });
  await once(child, 'exit');
  using reader = openLedgerReader(join(folder, 'latest'));
  return orderOf(recordsOf(reader.faults()));
}

async function onSimulator(schedule: string): Promise<readonly OrderedEvent[]> {
  const pins = { nodes: '5', rf: '3', partitions: '16', durationMs: '34000', chaos: 'none' };
  const options = drawOptions(11, pins);
  const { history } = await runSim({ seed: 11, options, schedule: parseSchedule(readFileSync(schedule, 'utf8')) });
  return orderOf(recordsOf(history.faults()));
}

describe('one file, two worlds', { timeout: 150_000 }, () => {
  it('plans the same events in the same order', async () => {
    const schedule = join(folder, 'file.json');
    writeFileSync(schedule, JSON.stringify(file));
    const [processes, simulator] = [await onProcesses(schedule), await onSimulator(schedule)];
    expect(planLines(processes)).toHaveLength(file.events.length);
    expect(planLines(simulator)).toEqual(planLines(processes));
    expect(processes.map((event) => event.faultId)).toEqual(file.events.map((event) => event.id));
    for (const events of [processes, simulator]) {
      const byId = new Map(events.map((event) => [event.faultId, event]));
      // Nothing that has a time came out of its turn; a trigger came after what it waits for.
      expect(overtaken(events)).toEqual([]);
      expect(byId.get('cut')).toMatchObject({ nodeIds: ['n2'], changes: [] });
      expect(byId.get('lame')?.executed as number).toBeGreaterThan(byId.get('cut')?.executed as number);
      expect(byId.get('nobody')?.executed).toBeNull();
      // The budget never let all be killed: fewer, or nothing.
      expect(byId.get('all')?.changes[0]).toMatch(/^(changed: kill n1, n2, n3, n4, n5 → |skipped: )/);
      expect(byId.get('all')?.nodeIds.length).toBeLessThan(3);
    }
    const differences = orderDifferences({ name: 'process', events: processes }, { name: 'sim', events: simulator });
    expect(differences.filter((line) => line.startsWith('plan'))).toEqual([]);
  });
});
