/**
 * Large sound ledgers, made fast: rows as a run of registers would leave them, inserted in thousand-row transactions.
 *
 * Each key is a register with versions (writes, compare-and-set, reads); sessions overlap; 1 in 500 operations is unknown.
 * For measurements; the writer under test is ledger.ts, not this.
 */
import Database from 'better-sqlite3';
import { Prng } from '../../lib/prng.ts';
import { migrate, operationColumns } from '../schema.ts';

export interface SyntheticOptions {
  readonly operations: number;
  readonly keys: number;
  readonly sessions: number;
  readonly seed: number;
}

const rowsPerTransaction = 5_000;
const partitions = 64;
/** Mean distance between two sends, ns: about 50,000 a second. */
const stepNs = 20_000;

export function writeSyntheticLedger(path: string, options: SyntheticOptions): void {
  const db = new Database(path);
  db.pragma('journal_mode = OFF');
  db.pragma('synchronous = OFF');
  migrate(db, path);
  const insert = db.prepare(
    `INSERT INTO operations (${operationColumns.join(', ')}) VALUES (${operationColumns.map(() => '?').join(', ')})`,
  );
  const prng = new Prng(options.seed);
  const owner = new Float64Array(options.keys);
  const version = new Float64Array(options.keys);
  const touched = new Float64Array(options.keys);
  let seq = 0;
  db.exec('BEGIN');
  const key = db.prepare('INSERT INTO keys VALUES (?, ?, 0)');
  for (let id = 1; id <= options.keys; id++) key.run(id, `r${id.toString(36)}`);
  for (let id = 1; id <= 5; id++) db.prepare('INSERT INTO nodes VALUES (?, ?)').run(id, `n${id}`);
  for (let id = 1; id <= options.operations; id++) {
    const k = prng.below(options.keys);
    // The effect lies inside the interval, after the key's last one, so the history is linearizable.
    const invokeNs = id * stepNs;
    const effectNs = Math.max(invokeNs + prng.below(200_000), (touched[k] as number) + 1);
    touched[k] = effectNs;
    const returnNs = effectNs + prng.below(200_000);
    const choice = prng.float();
    const f = choice < 0.5 ? 0 : choice < 0.85 || owner[k] === 0 ? 1 : 3;
    const unknown = f === 1 && prng.chance(0.002);
    const expected = version[k] as number;
    if (f !== 0) {
      owner[k] = id;
      version[k] = ++seq;
    }
    const absent = owner[k] === 0;
    const partition = k % partitions;
    insert.run(
      id,
      id % options.sessions,
      f,
      k + 1,
      unknown ? 2 : 0,
      null,
      null,
      invokeNs,
      returnNs - invokeNs,
      unknown || absent ? null : 3,
      unknown || absent ? null : version[k],
      unknown ? null : partition,
      unknown ? null : 7,
      unknown ? null : (partition % 5) + 1,
      1,
      f === 0 && !absent ? owner[k] : null,
      null,
      null,
      f === 3 ? 3 : null,
      f === 3 ? expected : null,
      f === 0 ? null : 100,
    );
    if (id % rowsPerTransaction === 0) db.exec('COMMIT; BEGIN');
  }
  db.exec('COMMIT; BEGIN');
  const endNs = options.operations * stepNs + 10e9;
  const final = db.prepare(
    'INSERT INTO final_reads (key_id, phase, outcome, invoke_ns, duration_ns, major, minor, partition, epoch, node_id, observed) VALUES (?, 0, 0, ?, 500000, ?, ?, ?, 7, ?, ?)',
  );
  const replica = db.prepare(
    "INSERT INTO replica_reads (key_id, phase, node_id, incarnation, role, at_ns, answered, observed, major, minor, applied_seq, commit_seq) VALUES (?, 0, ?, 1, 'replica', ?, 1, ?, ?, ?, 9, 9)",
  );
  for (let k = 0; k < options.keys; k++) {
    if (owner[k] === 0) continue;
    final.run(k + 1, endNs, 3, version[k], k % partitions, ((k % partitions) % 5) + 1, owner[k]);
    for (let node = 1; node <= 3; node++) replica.run(k + 1, node, endNs + 1e9, owner[k], 3, version[k]);
  }
  db.exec('COMMIT');
  db.close();
}
