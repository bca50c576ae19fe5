/** Rows that travel as records come out of the file as they were told: in their order, with their texts, and with what is not known. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, describe, expect, it } from 'vitest';
import { type Ledger, openLedger } from './ledger.ts';
import { openLedgerReader } from './reader.ts';
import type { DigestRow, FinalReadRow, ReplicaReadRow } from './rows.ts';
import { encodeValue } from './values.ts';

const folder = mkdtempSync(join(tmpdir(), 'ledger-batch-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const newPath = (): string => join(folder, `${++files}.sqlite`);
const value = (id: number): string => encodeValue('run', id, 50);
const open = (path: string, resume = false): Promise<Ledger> =>
  openLedger({ path, runTag: 'run', minFreeBytes: 0, resume });

function stored(path: string, sql: string): unknown[] {
  const db = new Database(path, { readonly: true });
  try {
    return db.prepare(sql).raw().all();
  } finally {
    db.close();
  }
}

/** A read of key `index`: mostly of a value of ours; some are damaged, some of another run, some without an answer. */
function finalRead(index: number): FinalReadRow {
  const row = { key: `k${index}`, phase: 'final', invokeNs: index, returnNs: index + 5 } as const;
  if (index % 7 === 3) return { ...row, completion: { kind: 'ok', value: `damaged ${index}` } };
  if (index % 7 === 4) return { ...row, completion: { kind: 'ok', value: encodeValue('other', index, 50) } };
  if (index % 7 === 5) return { ...row, completion: { kind: 'info', error: `gone ${index % 2}` } };
  const served = { version: [2, index], partition: 1, epoch: 4, node: `n${index % 3}` } as const;
  return { ...row, completion: { kind: 'ok', value: value(index), ...served } };
}

function storedRead(index: number): object {
  const kind = index % 7;
  const isOurs = kind < 3 || kind === 6;
  return {
    key: `k${index}`,
    phase: 'final',
    outcome: kind === 5 ? 'info' : 'ok',
    error: kind === 5 ? `gone ${index % 2}` : null,
    invokeNs: index,
    returnNs: index + 5,
    version: isOurs ? [2, index] : null,
    partition: isOurs ? 1 : null,
    epoch: isOurs ? 4 : null,
    node: isOurs ? `n${index % 3}` : null,
    observed: isOurs ? index : kind === 3 ? -2 : kind === 4 ? -1 : null,
    number: null,
  };
}

describe('rows that travel as records', () => {
  it('stand in the order in which they were told, with odd texts between and over several batches', async () => {
    const path = newPath();
    const ledger = await open(path);
    const indexes = Array.from({ length: 1_000 }, (_, index) => index + 1);
    for (const index of indexes) {
      void ledger.finalRead(finalRead(index));
      if (index % 400 === 0) await ledger.flush();
    }
    await ledger.close();
    using reader = openLedgerReader(path);
    expect([...reader.finalReads()]).toEqual(indexes.map(storedRead));
    const odd = indexes.flatMap((index) => {
      const { completion } = finalRead(index);
      return index % 7 === 3 || index % 7 === 4 ? [[index, completion.kind === 'ok' ? completion.value : null]] : [];
    });
    expect(stored(path, 'SELECT row_id, text FROM final_reads WHERE text IS NOT NULL ORDER BY row_id')).toEqual(odd);
  });

  it('tell of a copy its role, whatever the word, what it holds, and what it does not say', async () => {
    const path = newPath();
    const ledger = await open(path);
    const asked = { key: 'a', phase: 'retire', atNs: 7 } as const;
    const empty = { value: null, version: null, appliedSeq: null, commitSeq: null };
    const copies: ReplicaReadRow[] = [
      { ...asked, node: 'n1', incarnation: 1, role: 'primary', kind: 'answered', ...empty },
      { ...asked, node: 'n2', incarnation: null, role: 'a word of some store', kind: 'missing', reason: 'no answer' },
      { ...asked, node: 'n3', incarnation: 2, role: '', kind: 'answered', ...empty, value: 'damaged' },
      {
        ...asked,
        node: 'n2',
        incarnation: 0,
        role: 'replica',
        kind: 'answered',
        value: value(9),
        version: [3, 4],
        appliedSeq: 5,
        commitSeq: 6,
      },
      { ...asked, node: 'n1', incarnation: 1, role: 'primary', kind: 'answered', ...empty, value: '-12' },
    ];
    for (const copy of copies) void ledger.replicaRead(copy);
    await ledger.flush();
    // In a batch of its own the same words are told anew, in another order.
    for (const copy of copies.toReversed()) void ledger.replicaRead(copy);
    await ledger.close();
    const columns = [
      [1, 1, 1, 1, 'primary', 7, 1, null, null, null, null, null, null, null],
      [1, 1, 2, null, 'a word of some store', 7, 0, null, null, null, null, null, null, 'no answer'],
      [1, 1, 3, 2, '', 7, 1, -2, null, null, null, null, null, 'damaged'],
      [1, 1, 2, 0, 'replica', 7, 1, 9, null, 3, 4, 5, 6, null],
      [1, 1, 1, 1, 'primary', 7, 1, null, -12, null, null, null, null, null],
    ];
    const rows = [...columns, ...columns.toReversed()].map((row, index) => [index + 1, ...row]);
    expect(stored(path, 'SELECT * FROM replica_reads ORDER BY row_id')).toEqual(rows);
    using reader = openLedgerReader(path);
    const [history] = reader.histories();
    const told = [NaN, NaN, -2, 9, NaN];
    expect([...(history?.observed.slice(0, history.size) ?? [])]).toEqual([...told, ...told.toReversed()]);
  });

  it('tell digests as they were taken', async () => {
    const path = newPath();
    const ledger = await open(path);
    const sample = { partition: 3, role: 'replica', atNs: 9, appliedTerm: 2, appliedSeq: 80, keyCount: 12 } as const;
    const taken: DigestRow[] = [
      { ...sample, node: 'n1', incarnation: 1, digest: '0abc' },
      { ...sample, node: 'n2', incarnation: null, digest: '12' },
      { ...sample, node: 'n1', incarnation: 1, role: '12', digest: '0abc' },
    ];
    for (const row of taken) void ledger.digest(row);
    await ledger.close();
    using reader = openLedgerReader(path);
    expect([...reader.digests()]).toEqual(taken);
  });

  it('tell keys, those that were retired, and forget those that were released', async () => {
    const path = newPath();
    const ledger = await open(path);
    for (const key of ['a', 'b', 'c']) void ledger.finalRead({ ...finalRead(1), key });
    void ledger.retire({ key: 'b', atNs: 4, exposed: true });
    void ledger.retire({ key: 'c', atNs: 5, exposed: false });
    void ledger.release('b');
    await ledger.close();
    const told = (): unknown[] => {
      using reader = openLedgerReader(path);
      return Array.from(reader.histories(), ({ name, retired }) => [name, retired]);
    };
    expect(told()).toEqual([
      ['a', false],
      ['b', true],
      ['c', true],
    ]);
    expect(stored(path, 'SELECT * FROM retirements ORDER BY key_id')).toEqual([
      [2, 4, 1],
      [3, 5, 0],
    ]);
    const resumed = await open(path, true);
    expect(resumed.resumed.keys.map(([, name]) => name)).toEqual(['a', 'c']);
    await resumed.close();
  });

  it.each([
    { when: 'the writer failed', reason: 'the ledger cannot be written' },
    { when: 'the ledger was closed', reason: 'the ledger is closed' },
  ])('are refused once $when', async ({ when, reason }) => {
    const ledger = await open(newPath());
    await ledger.retire({ key: 'a', atNs: 1, exposed: false });
    if (when === 'the ledger was closed') await ledger.close();
    // A key is retired once: the table refuses the second row.
    await expect(ledger.retire({ key: 'a', atNs: 2, exposed: false })).rejects.toThrow(reason);
    const copy = { key: 'a', phase: 'final', node: 'n1', incarnation: null, role: 'replica', atNs: 1 } as const;
    await expect(ledger.finalRead(finalRead(1))).rejects.toThrow(reason);
    await expect(ledger.replicaRead({ ...copy, kind: 'missing', reason: 'no answer' })).rejects.toThrow(reason);
    const digest = { partition: 1, appliedTerm: 1, appliedSeq: 1, digest: '', keyCount: 1 };
    await expect(ledger.digest({ ...copy, ...digest })).rejects.toThrow(reason);
    await expect(ledger.retire({ key: 'b', atNs: 1, exposed: false })).rejects.toThrow(reason);
    await expect(ledger.release('a')).rejects.toThrow(reason);
    await ledger.close().catch(() => undefined);
  });
});
