/** A run's history exported, and judged again from the export by the checker of foreign histories. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLedgerReader } from '../../ledger/reader.ts';
import { runCheck } from '../../ledger/verify/foreign/check-command.ts';
import { exportCommand } from '../commands/export-command.ts';
import type { ExportWish } from '../commands/export-wish.ts';
import { UsageError } from '../errors.ts';
import { runAndReport, runRig, shortSettings } from '../testing/run-rig.ts';
import { historyEvents } from './history-events.ts';
import { text } from './jepsen-edn.ts';

let folder = '';
let run = '';
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'certify-export-'));
  const rig = runRig();
  rig.cluster.lostAnswers = 0.02;
  run = (await runAndReport(await shortSettings(folder), rig.world)).folder.path;
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function exported(wish: Partial<ExportWish>): Promise<string> {
  const out = join(folder, `out-${Math.random()}`);
  const whole = { resultsDir: dirname(run), run, format: 'jepsen-edn', key: null, workload: null, out } as const;
  expect(await exportCommand({ ...whole, ...wish })).toBe(0);
  return out;
}

describe('an export', () => {
  it.each(['registers', 'cas', 'lists', 'create'])(
    'of %s in EDN is a linearizable history of registers',
    async (workload) => {
      const file = await exported({ workload });
      const { json } = await runCheck({ file, format: 'jepsen-edn', model: 'cas-register' });
      expect(json).toMatchObject({ verdict: 'valid' });
      expect((json as unknown as { operations: number }).operations).toBeGreaterThan(100);
    },
  );

  it('with one value changed is not', async () => {
    const file = await exported({ workload: 'registers' });
    const lines = readFileSync(file, 'utf8').split('\n');
    // A read back of a value that another key's operation wrote.
    const at = lines.findLastIndex((line) => /:type :ok :f :read :value \["r\d+" \d+\]/.test(line));
    expect(at).toBeGreaterThan(0);
    const changed = lines.with(at, (lines[at] as string).replace(/(:value \["r\d+") \d+\]/, '$1 99999999]'));
    writeFileSync(file, changed.join('\n'));
    expect((await runCheck({ file, format: 'jepsen-edn', model: 'cas-register' })).exitCode).toBe(1);
  });

  it('tells events in the order of time, each completion after its invocation, a process one at a time', async () => {
    using reader = openLedgerReader(run);
    let lastNs = 0;
    let count = 0;
    const open = new Set<number>();
    for (const event of historyEvents(reader, () => true)) {
      expect(event.atNs).toBeGreaterThanOrEqual(lastNs);
      lastNs = event.atNs;
      count++;
      const { operationId } = event.operation;
      expect(open.has(operationId)).toBe(event.kind === 'complete');
      if (event.kind === 'invoke') open.add(operationId);
      else open.delete(operationId);
    }
    expect(count).toBe(
      2 * ([...reader.finishedOperations()].length + [...reader.finalReads()].length) + reader.openOperations().length,
    );
  });

  it('never uses a process again whose operation ended unknown', async () => {
    const lines = readFileSync(await exported({}), 'utf8')
      .trim()
      .split('\n');
    const ended = new Set<string>();
    let unknown = 0;
    for (const line of lines) {
      const [, process = '', type = ''] = /:process (-?\d+) :type :(\w+)/.exec(line) ?? [];
      expect(ended.has(process), line).toBe(false);
      if (type === 'info') {
        ended.add(process);
        unknown++;
      }
    }
    expect(unknown).toBeGreaterThan(5);
  });

  it('of one key has plain values; as JSON lines it holds every row', async () => {
    const key = readFileSync(await exported({ key: 'r0' }), 'utf8');
    expect(key).toMatch(/:f :write :value \d+ /);
    const rows = readFileSync(await exported({ format: 'jsonl' }), 'utf8')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { row: string }).row);
    expect(new Set(rows)).toEqual(
      new Set(['meta', 'operation', 'read-back', 'fault', 'epoch', 'incarnation', 'digest']),
    );
  });

  it('of a workload or into a folder that is not there is a usage error', async () => {
    await expect(exported({ workload: 'nope' })).rejects.toBeInstanceOf(UsageError);
    await expect(exported({ out: join(folder, 'no', 'such') })).rejects.toBeInstanceOf(UsageError);
  });

  it('writes text as EDN does', () => {
    expect(text('a "b" \\ \n')).toBe('"a \\"b\\" \\\\ \\n"');
  });
});
