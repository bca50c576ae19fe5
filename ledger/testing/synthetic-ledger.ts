/**
 * Large ledgers, made fast: the rows that a run of hours would leave, inserted in thousand-row transactions into the real schema.
 *
 * Overwritten registers, compare-and-set chains, unique keys, create-and-delete churn and counters; unknown and refused operations;
 * a node killed every 20 s, with the failovers, handoffs and epochs that follow; canaries; read-backs and every replica's answer.
 * The history is linearizable by construction, unless `losesOne` is set: then one acknowledged write is missing at the end. For
 * measurements; the writer under test is ledger.ts, not this.
 */
import Database, { type Database as Db, type Statement } from 'better-sqlite3';
import { assert } from '../../lib/assert.ts';
import { Prng } from '../../lib/prng.ts';
import { faultStages } from '../rows.ts';
import { migrate, operationColumns, sideTables, type SideTable } from '../schema.ts';
import { kindCode, outcomeCode, whyCondition } from '../verify/history.ts';
import { SyntheticCluster } from './synthetic-cluster.ts';

export interface SyntheticOptions {
  readonly operations: number;
  readonly keys: number;
  readonly sessions: number;
  readonly seed: number;
  readonly losesOne?: boolean;
  /** Rows of `meta`, made when the rest is known. */
  readonly meta?: (made: SyntheticLedger) => Readonly<Record<string, unknown>>;
}

/** What stands in a ledger that was made. */
export interface SyntheticLedger {
  readonly operations: number;
  readonly finalReads: number;
  readonly replicaReads: number;
  readonly faults: number;
  readonly epochChanges: number;
  readonly acknowledgedWrites: number;
  readonly unknown: number;
  readonly refused: number;
  readonly loadNs: number;
  readonly endNs: number;
  readonly canaries: readonly string[];
}

const rowsPerTransaction = 5_000;
export const syntheticPartitions = 64;
export const syntheticNodes = 5;
export const syntheticCopies = 3;
const canaryCount = 8;
/** Mean distance between two sends, ns: about 14,000 a second, so that 50 million operations are an hour. */
const stepNs = 72_000;
const loadFromNs = 2e9;
const valueBytes = 64;
const unknownShare = 0.002;
const refusedShare = 0.001;

const kinds = [
  'register',
  'register',
  'register',
  'register',
  'cas',
  'cas',
  'unique',
  'unique',
  'churn',
  'counter',
] as const;
const prefixes = { register: 'r', cas: 'x', unique: 's', churn: 'h', counter: 'n' } as const;

/** Makes a ledger at `path`, which must not exist. */
export function writeSyntheticLedger(path: string, options: SyntheticOptions): SyntheticLedger {
  const db = new Database(path);
  db.pragma('journal_mode = OFF');
  db.pragma('synchronous = OFF');
  migrate(db, path);
  db.exec('BEGIN');
  const made = new SyntheticRun(db, options).write();
  for (const [key, value] of Object.entries(options.meta?.(made) ?? {}))
    db.prepare('INSERT INTO meta VALUES (?, ?)').run(key, JSON.stringify(value));
  db.exec('COMMIT');
  db.close();
  return made;
}

/** What one operation comes to, before it is a row. */
interface Step {
  f: number;
  outcome: number;
  why: number | null;
  takesEffect: boolean;
  observed: number | null;
  number: number | null;
  argument: number | null;
  expectedMajor: number | null;
  expectedMinor: number | null;
}

class SyntheticRun {
  private readonly db: Db;
  private readonly options: SyntheticOptions;
  private readonly prng: Prng;
  private readonly cluster: SyntheticCluster;
  private readonly operation: Statement;
  private readonly side = new Map<SideTable, Statement>();
  /** Operation whose value stands; 0: absent. */
  private readonly owner: Float64Array;
  private readonly sum: Float64Array;
  private readonly major: Float64Array;
  private readonly minor: Float64Array;
  private readonly touchedNs: Float64Array;
  private readonly freeNs: Float64Array;
  private inTransaction = 0;
  private readonly counts = { acknowledgedWrites: 0, unknown: 0, refused: 0 };
  private readonly values: (number | null)[] = new Array(operationColumns.length).fill(null);

  constructor(db: Db, options: SyntheticOptions) {
    this.db = db;
    this.options = options;
    this.prng = new Prng(options.seed);
    this.cluster = new SyntheticCluster(syntheticPartitions, syntheticNodes, syntheticCopies);
    this.operation = db.prepare(insertInto('operations', operationColumns));
    const { keys } = options;
    this.owner = new Float64Array(keys);
    this.sum = new Float64Array(keys);
    this.major = new Float64Array(keys);
    this.minor = new Float64Array(keys);
    this.touchedNs = new Float64Array(keys);
    this.freeNs = new Float64Array(options.sessions);
  }

  write(): SyntheticLedger {
    const { keys, operations, sessions } = this.options;
    for (let k = 0; k < keys; k++) this.insert('keys', k + 1, `${prefixes[kindOf(k)]}${k.toString(36)}`, 0);
    for (let n = 1; n <= syntheticNodes; n++) this.insert('nodes', n, `n${n}`);
    for (const [index, text] of ['Conflict', 'NotFound', 'timeout', 'Unavailable'].entries())
      this.insert('errors', index + 1, text);
    const loadNs = operations * stepNs;
    this.cluster.plan(loadFromNs, loadFromNs + loadNs);
    const canaries = this.plantCanaries(operations);
    for (let id = 1; id <= operations; id++) this.one(id, (id - 1) % sessions);
    this.cluster.advance(Infinity);
    const endNs = loadFromNs + loadNs + 30e9;
    const read = this.readBack(endNs);
    this.readCanaries(canaries, endNs);
    this.chaos();
    return {
      operations: operations + canaries.length,
      finalReads: read + canaries.length,
      replicaReads: (read + canaries.length) * syntheticCopies,
      faults: this.cluster.faults.length * faultStagesOfKill.length,
      epochChanges: this.cluster.edges.length,
      ...this.counts,
      loadNs,
      endNs: endNs + 2e9,
      canaries,
    };
  }

  private one(id: number, session: number): void {
    const { prng } = this;
    const invokeNs = Math.max(loadFromNs + id * stepNs + prng.below(stepNs), (this.freeNs[session] as number) + 1);
    this.cluster.advance(invokeNs);
    let k = prng.below(this.options.keys);
    // A partition between two primaries answers nobody: the session turns to another key.
    while (!this.cluster.serves(k % syntheticPartitions)) k = prng.below(this.options.keys);
    const partition = k % syntheticPartitions;
    // The effect lies inside the interval, after the key's last one: in this order the history is linear.
    const effectNs = Math.max(invokeNs + 100_000 + prng.below(400_000), (this.touchedNs[k] as number) + 1);
    const returnNs = effectNs + 50_000 + prng.below(500_000);
    this.touchedNs[k] = effectNs;
    this.freeNs[session] = returnNs;
    const step = this.step(k, id);
    if (step.takesEffect) {
      [this.major[k], this.minor[k]] = this.cluster.nextVersion(partition);
    }
    const answered = step.outcome !== outcomeCode.info && step.why !== 1;
    const isError = step.outcome !== outcomeCode.ok;
    const hasVersion = answered && this.major[k] !== 0;
    const row: readonly (number | null)[] = [
      id,
      session,
      step.f,
      k + 1,
      step.outcome,
      step.why,
      isError
        ? step.outcome === outcomeCode.info
          ? 3
          : step.why === 1
            ? 4
            : step.f === kindCode.delete
              ? 2
              : 1
        : null,
      invokeNs,
      returnNs - invokeNs,
      hasVersion ? (this.major[k] as number) : null,
      hasVersion ? (this.minor[k] as number) : null,
      answered ? partition : null,
      answered ? this.cluster.epochOf(partition) : null,
      answered ? this.cluster.primaryOf(partition) : null,
      1,
      step.observed,
      step.number,
      step.argument,
      step.expectedMajor,
      step.expectedMinor,
      step.f === kindCode.read || step.f === kindCode.delete || step.f === kindCode.add ? null : valueBytes,
    ];
    this.insertOperation(row);
    if (step.outcome === outcomeCode.info) this.counts.unknown++;
    else if (step.outcome === outcomeCode.fail) this.counts.refused++;
    else if (step.f !== kindCode.read) this.counts.acknowledgedWrites++;
  }

  /** Decides what the operation is and how it ends, and applies it to the key. */
  private step(k: number, id: number): Step {
    const { prng, owner } = this;
    const step: Step = {
      f: kindCode.read,
      outcome: outcomeCode.ok,
      why: null,
      takesEffect: false,
      observed: null,
      number: null,
      argument: null,
      expectedMajor: null,
      expectedMinor: null,
    };
    const present = owner[k] !== 0;
    this.chooseKind(step, k, present);
    if (step.f === kindCode.read) {
      if (present && kindOf(k) === 'counter') step.number = this.sum[k] as number;
      else if (present) step.observed = owner[k] as number;
      return step;
    }
    const fails =
      step.outcome === outcomeCode.ok &&
      ((step.f === kindCode.create && present) || (step.f === kindCode.delete && !present));
    if (fails) [step.outcome, step.why] = [outcomeCode.fail, whyCondition];
    if (step.outcome === outcomeCode.fail) return step;
    // A counter's unknown additions would leave its sums undecided for good: they stay known.
    const fate = kindOf(k) === 'counter' ? 1 : prng.float();
    if (fate < refusedShare) [step.outcome, step.why] = [outcomeCode.fail, 1];
    else if (fate < refusedShare + unknownShare) {
      step.outcome = outcomeCode.info;
      step.takesEffect = prng.chance(0.5);
    } else step.takesEffect = true;
    if (step.takesEffect) owner[k] = step.f === kindCode.delete ? 0 : id;
    if (step.f === kindCode.add) {
      this.sum[k] = (this.sum[k] as number) + (step.argument as number);
      step.number = this.sum[k];
    }
    return step;
  }

  private chooseKind(step: Step, k: number, present: boolean): void {
    const choice = this.prng.float();
    switch (kindOf(k)) {
      case 'register':
        if (choice < 0.53) step.f = kindCode.write;
        else if (choice < 0.55 && present) step.f = kindCode.delete;
        return;
      case 'cas':
        if (!present) step.f = kindCode.create;
        else if (choice < 0.5) {
          step.f = kindCode.cas;
          step.expectedMajor = this.major[k] as number;
          step.expectedMinor = this.minor[k] as number;
          // Some expect what was long ago.
          if (choice < 0.05 && step.expectedMinor > 1) {
            step.expectedMinor--;
            [step.outcome, step.why] = [outcomeCode.fail, whyCondition];
          }
        }
        return;
      case 'unique':
        // Written once, but for a first write that never took effect.
        if (!present) step.f = kindCode.write;
        return;
      case 'churn':
        if (choice < 0.3) step.f = kindCode.create;
        else if (choice < 0.6) step.f = kindCode.delete;
        return;
      case 'counter':
        if (choice < 0.6 || !present) {
          step.f = kindCode.add;
          step.argument = 1 + this.prng.below(9);
        }
    }
  }

  private plantCanaries(after: number): string[] {
    const { keys } = this.options;
    return Array.from({ length: canaryCount }, (_, index) => {
      const [id, keyId] = [after + 1 + index, keys + 1 + index];
      this.insert('keys', keyId, `c${index}`, 1);
      const [major, minor] = this.cluster.nextVersion(0);
      const { sessions } = this.options;
      const row = [id, sessions, kindCode.write, keyId, 0, null, null, loadFromNs - 1e9 + index, 1, major, minor, 0];
      this.insertOperation([...row, 1, 1, 1, null, null, null, null, null, valueBytes]);
      this.counts.acknowledgedWrites++;
      return `c${index}`;
    });
  }

  private readBack(atNs: number): number {
    let read = 0;
    let toLose = this.options.losesOne === true;
    for (let k = 0; k < this.options.keys; k++) {
      if (this.touchedNs[k] === 0) continue;
      read++;
      const isLost = toLose && kindOf(k) === 'unique' && this.owner[k] !== 0;
      if (isLost) toLose = false;
      const isCounter = kindOf(k) === 'counter';
      const present = this.owner[k] !== 0 && !isLost;
      const hasVersion = this.major[k] !== 0 && !isLost;
      const version: Cells = hasVersion ? [this.major[k] as number, this.minor[k] as number] : [null, null];
      const shows: Cells = !present
        ? [null, null]
        : isCounter
          ? [null, this.sum[k] as number]
          : [this.owner[k] as number, null];
      this.readKey(k + 1, k % syntheticPartitions, atNs, version, shows);
    }
    assert(!toLose, 'there was no write to lose');
    return read;
  }

  private readCanaries(canaries: readonly string[], atNs: number): void {
    for (const index of canaries.keys())
      this.readKey(this.options.keys + 1 + index, 0, atNs, [null, null], [null, null]);
  }

  private readKey(keyId: number, partition: number, atNs: number, version: Cells, shows: Cells): void {
    const [epoch, node] = [this.cluster.epochOf(partition), this.cluster.primaryOf(partition)];
    this.insert('final_reads', keyId, 0, 0, null, atNs, 500_000, ...version, partition, epoch, node, ...shows, null);
    for (const replica of this.cluster.replicasOf(partition)) {
      const role = replica === node ? 'primary' : 'replica';
      this.insert('replica_reads', keyId, 0, replica, 1, role, atNs + 1e9, 1, ...shows, ...version, 9, 9, null);
    }
  }

  private chaos(): void {
    for (const edge of this.cluster.edges) {
      const { partition, epoch, term, node, kind, health, atNs } = edge;
      this.insert('epoch_changes', partition, epoch, term, node, 1, kind, health, atNs);
    }
    for (const [index, fault] of this.cluster.faults.entries()) {
      const faultId = `e${index + 1}`;
      for (const stage of faultStagesOfKill) {
        const atNs = fault.atNs + (stage.startsWith('heal') ? fault.openNs : 0) + faultStages.indexOf(stage) * 1e6;
        const record = { faultId, atMs: atNs / 1e6, step: stage, ...evidenceOf(stage, `n${fault.node}`) };
        const targets = stage === 'planned' ? '[]' : JSON.stringify([`n${fault.node}`]);
        this.insert('faults', faultId, 'kill', stage, atNs, 0, targets, null, JSON.stringify(record));
      }
    }
  }

  private insertOperation(row: readonly (number | null)[]): void {
    assert(row.length === this.values.length, 'columns of operations');
    this.operation.run(row);
    this.stepTransaction();
  }

  private insert(table: SideTable, ...values: (string | number | null)[]): void {
    let statement = this.side.get(table);
    if (statement === undefined) {
      statement = this.db.prepare(insertInto(table, sideTables[table]));
      this.side.set(table, statement);
    }
    statement.run(values);
    this.stepTransaction();
  }

  private stepTransaction(): void {
    if (++this.inTransaction % rowsPerTransaction === 0) this.db.exec('COMMIT; BEGIN');
  }
}

type Cells = readonly [number | null, number | null];

const kindOf = (k: number): (typeof kinds)[number] => kinds[k % kinds.length] as (typeof kinds)[number];

const insertInto = (table: string, columns: readonly string[]): string =>
  `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;

const faultStagesOfKill = [
  'planned',
  'injecting',
  'injected',
  'confirmed',
  'healing',
  'healed',
  'heal-verified',
] as const;

/** What the journal would say of a stage. */
function evidenceOf(stage: (typeof faultStagesOfKill)[number], node: string): object {
  const fault = { kind: 'kill' };
  switch (stage) {
    case 'planned':
      return { fault, target: { kind: 'primary', partition: 'random' }, due: 'at its time' };
    case 'injecting':
      return {
        fault,
        nodeIds: [node],
        partition: null,
        cuts: [],
        surroundings: { openFaults: [], unhealthyPartitions: 0, epoch: 1, roles: [] },
      };
    case 'healing':
      return { why: 'its time is over' };
    default:
      return { evidence: `${node}: ${stage}` };
  }
}
