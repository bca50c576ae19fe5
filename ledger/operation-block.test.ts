import Database from 'better-sqlite3';
import { afterAll, describe, expect, it } from 'vitest';
import { blockColumns, openBlockColumns, OperationBlock } from './operation-block.ts';
import { operationCodes, outcomeCodes } from './rows.ts';
import { migrate } from './schema.ts';
import { KeyHistory } from './verify/history.ts';

const db = new Database(':memory:');
migrate(db, ':memory:');
afterAll(() => {
  db.close();
});

/** One operation of every kind and outcome, each on a key of its own. */
const pairs = operationCodes.flatMap((f, fCode) => outcomeCodes.map((outcome, code) => ({ f, fCode, outcome, code })));

function historiesOf(sql: string): KeyHistory[] {
  const block = new OperationBlock(1);
  for (const row of db.prepare(sql).raw().all() as (number | null)[][]) block.add(row);
  block.group();
  return pairs.map((_, keyId) => {
    const history = new KeyHistory();
    history.reset(keyId, `k${keyId}`, false);
    block.copyTo(history);
    return history;
  });
}

describe('kind and outcome, packed into one number by SQL', () => {
  it('come out as they went in, for every pair', () => {
    const insert = db.prepare(
      'INSERT INTO operations (op_id, session, f, key_id, outcome, invoke_ns, duration_ns) VALUES (?, 0, ?, ?, ?, 10, 5)',
    );
    for (const [keyId, { fCode, code }] of pairs.entries()) insert.run(keyId + 1, fCode, keyId, code);
    const histories = historiesOf(`SELECT ${blockColumns} FROM operations ORDER BY op_id`);
    const read = histories.map((history) => ({
      size: history.size,
      f: operationCodes[history.f[0] as number],
      outcome: outcomeCodes[history.outcome[0] as number],
    }));
    // Without its brackets the sum reads (f | outcome) << 3, and a failed write becomes something else.
    expect(read).toEqual(pairs.map(({ f, outcome }) => ({ size: 1, f, outcome })));
  });

  it('are info for what is still open', () => {
    const insert = db.prepare(
      'INSERT INTO open_operations (session, op_id, f, key_id, invoke_ns) VALUES (?, ?, ?, ?, 10)',
    );
    for (const [keyId, { fCode }] of pairs.entries()) insert.run(keyId, keyId + 1, fCode, keyId);
    const histories = historiesOf(`SELECT ${openBlockColumns} FROM open_operations ORDER BY op_id`);
    expect(histories.map((history) => outcomeCodes[history.outcome[0] as number])).toEqual(pairs.map(() => 'info'));
    expect(histories.map((history) => operationCodes[history.f[0] as number])).toEqual(pairs.map(({ f }) => f));
  });
});
