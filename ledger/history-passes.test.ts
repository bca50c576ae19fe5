/** Histories out of a file: every row of every key once and in order, however many passes and parts read them, walked or fetched. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLedgerReader } from './reader.ts';
import { operationCodes, outcomeCodes } from './rows.ts';
import { writeSyntheticLedger } from './testing/synthetic-ledger.ts';
import type { KeyHistory } from './verify/history.ts';

let folder = '';
let path = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ledger-passes-'));
  path = join(folder, 'ledger.sqlite');
  writeSyntheticLedger(path, { operations: 20_000, keys: 700, sessions: 16, seed: 3 });
  const db = new Database(path);
  // Operations that were open when their harness died; one of them got its outcome all the same.
  const open = db.prepare('INSERT INTO open_operations (session, op_id, f, key_id, invoke_ns) VALUES (?, ?, 1, ?, 77)');
  for (const [session, operationId] of [500_000, 7, 500_001].entries()) open.run(session, operationId, 400 + session);
  db.prepare('DELETE FROM operations WHERE op_id IN (90, 91)').run();
  open.run(5, 90, 300);
  db.prepare('INSERT INTO retirements VALUES (12, 5, 1)').run();
  db.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const columns = [
  'operationId',
  'f',
  'outcome',
  'why',
  'source',
  'invokeNs',
  'returnNs',
  'major',
  'minor',
  'expectedMajor',
  'expectedMinor',
  'observed',
  'number',
  'argument',
  'partition',
  'epoch',
  'node',
] as const;

function told(histories: Iterable<KeyHistory>): string[] {
  // One object for all: each is told before the next one comes.
  return Array.from(histories, (history) => {
    const { keyId, name, canary, retired, size, operationCount } = history;
    const cells = columns.map((column) => [...history[column].subarray(0, size)].map(String));
    return JSON.stringify({ keyId, name, canary, retired, operationCount, cells });
  });
}

const byKey = (lines: string[]): string[] =>
  lines.toSorted((a, b) => Number(/\d+/.exec(a)?.[0]) - Number(/\d+/.exec(b)?.[0]));

describe('histories of a ledger', () => {
  it('hold what SQL says of each key, in the order of ids', () => {
    using reader = openLedgerReader(path);
    const db = new Database(path, { readonly: true });
    const ids = db
      .prepare(
        'SELECT op_id FROM operations WHERE key_id = ? UNION SELECT op_id FROM open_operations WHERE key_id = ? AND op_id NOT IN (SELECT op_id FROM operations) ORDER BY 1',
      )
      .pluck();
    const final = db.prepare('SELECT count(*) FROM final_reads WHERE key_id = ?').pluck();
    const replica = db.prepare('SELECT count(*) FROM replica_reads WHERE key_id = ?').pluck();
    let count = 0;
    for (const history of reader.histories()) {
      count++;
      const operations = [...history.operationId.subarray(0, history.operationCount)];
      expect(operations).toEqual(ids.all(history.keyId, history.keyId));
      const sources = [...history.source.subarray(history.operationCount, history.size)];
      expect(sources.filter((source) => source === 1)).toHaveLength(final.get(history.keyId) as number);
      expect(sources.filter((source) => source === 3)).toHaveLength(replica.get(history.keyId) as number);
      expect(sources).toEqual(sources.toSorted((a, b) => a - b));
      for (const id of [500_000, 500_001, 90]) {
        const row = history.indexOf(id);
        if (row >= 0) expect([history.outcome[row], history.returnNs[row]]).toEqual([2, Infinity]);
      }
      expect(history.retired).toBe(history.keyId === 12);
    }
    expect(count).toBe(db.prepare('SELECT count(*) FROM keys').pluck().get());
    db.close();
  });

  it('are the same in one pass and in many', () => {
    using reader = openLedgerReader(path);
    const whole = told(reader.histories());
    expect(byKey(told(reader.histories(200_000)))).toEqual(whole);
    expect(byKey(told(reader.histories(50_000)))).toEqual(whole);
  });

  it.each(['(SELECT key_id FROM operations WHERE op_id = 500)', '(SELECT max(key_id) FROM keys)'])(
    'refuse a ledger that has lost the name of key %s: its writes would be judged by nobody',
    (key) => {
      const other = join(folder, `nameless-${key.length}.sqlite`);
      const db = new Database(path, { readonly: true });
      db.prepare('VACUUM INTO ?').run(other);
      db.close();
      const writer = new Database(other);
      expect(writer.prepare(`DELETE FROM keys WHERE key_id = ${key}`).run().changes).toBe(1);
      writer.close();
      using reader = openLedgerReader(other);
      const refusal = /\d+ of its rows name a key that it does not hold/;
      expect(() => told(reader.histories())).toThrow(refusal);
      expect(() => told(reader.histories(50_000))).toThrow(refusal);
    },
  );

  it('are the same while a WAL stands beside the file', () => {
    const other = join(folder, 'wal.sqlite');
    const db = new Database(path, { readonly: true });
    db.prepare('VACUUM INTO ?').run(other);
    db.close();
    using reader = openLedgerReader(path);
    const writer = new Database(other);
    writer.pragma('journal_mode = WAL');
    writer.prepare("INSERT INTO errors (text) VALUES ('in the WAL')").run();
    using again = openLedgerReader(other);
    expect(told(again.histories())).toEqual(told(reader.histories()));
    const outlines = (from: typeof reader): string[] => {
      const lines: string[] = [];
      from.outlines((operation) => lines.push(JSON.stringify(operation)));
      return lines;
    };
    expect(outlines(again)).toEqual(outlines(reader));
    writer.close();
  });

  it('are outlined as they stand in the file', () => {
    using reader = openLedgerReader(path);
    const lines: unknown[] = [];
    reader.outlines((operation) => lines.push({ ...operation }));
    const wanted = [...reader.operations()].map(({ f, outcome, why, error, invokeNs, returnNs, partition }) => ({
      f,
      outcome,
      why,
      error,
      invokeNs,
      returnNs,
      partition,
    }));
    expect(lines).toEqual(wanted);
  });

  it('tell the most attempts and the longest duration once they were read', () => {
    using reader = openLedgerReader(path);
    for (const _ of reader.histories()) void _;
    const db = new Database(path, { readonly: true });
    const [attempts, durationNs] = db.prepare('SELECT max(attempts), max(duration_ns) FROM operations').raw().get() as [
      number,
      number,
    ];
    db.close();
    expect(reader.extremes()).toEqual({ attempts, durationNs });
  });
});

describe('kind and outcome of a row', () => {
  it('come out as they went in, for every pair', () => {
    const other = join(folder, 'pairs.sqlite');
    writeSyntheticLedger(other, { operations: 1, keys: 100, sessions: 1, seed: 3 });
    const db = new Database(other);
    db.exec('DELETE FROM operations');
    const insert = db.prepare(
      'INSERT INTO operations (op_id, session, f, key_id, outcome, invoke_ns, duration_ns) VALUES (?, 0, ?, ?, ?, 10, 5)',
    );
    const pairs = operationCodes.flatMap((f) => outcomeCodes.map((outcome) => ({ f, outcome })));
    for (const [index, { f, outcome }] of pairs.entries())
      insert.run(index + 1, operationCodes.indexOf(f), index + 1, outcomeCodes.indexOf(outcome));
    db.close();
    using reader = openLedgerReader(other);
    const read: unknown[] = [];
    for (const { operationCount, f, outcome } of reader.histories())
      if (operationCount === 1)
        read.push({ f: operationCodes[f[0] as number], outcome: outcomeCodes[outcome[0] as number] });
    expect(read).toEqual(pairs);
  });
});
