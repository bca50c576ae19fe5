import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, describe, expect, it } from 'vitest';
import { DiskGuardError } from './group-commit.ts';
import { openLedger } from './ledger.ts';
import { openLedgerReader } from './reader.ts';
import { applicationId, LedgerFileError, migrate, migrations, schemaVersion } from './schema.ts';
import { encodeValue } from './values.ts';
import { type Judgement, type JudgeOptions, judgeRun } from './verify/judge.ts';

const folder = mkdtempSync(join(tmpdir(), 'ledger-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const newPath = (): string => join(folder, `${++files}.sqlite`);
const value = (id: number): string => encodeValue('run', id, 50);
const options: JudgeOptions = {
  ttlLateBoundNs: 1e9,
  minAckedInFaultWindows: 0,
  replicasPerKey: 1,
  promises: { maxAttempts: 3, deadlineNs: 60e9 },
  recoveryBoundNs: 60e9,
  mayExceedBudget: false,
  mayLosePartitions: false,
  searchBudget: null,
};

function judgementOf(path: string, changes: Partial<JudgeOptions> = {}): Judgement {
  using reader = openLedgerReader(path);
  return judgeRun(reader, { ...options, ...changes });
}

/** A small complete run: two keys, a failover between write and read-back. `lose` makes the second key vanish. */
async function writeRun(path: string, lose: boolean): Promise<void> {
  const ledger = await openLedger({ path, runTag: 'run', minFreeBytes: 0 });
  const served = { partition: 3, epoch: 7, node: 'n2', attempts: 1 };
  for (const [id, key] of [
    [1, 'a'],
    [2, 'b'],
  ] as const) {
    await ledger.intent({
      operationId: id,
      session: id,
      operation: { f: 'write', key, value: value(id) },
      atNs: id * 100,
    });
    await ledger.outcome({
      session: id,
      completion: { kind: 'ok', version: [7, id], ...served },
      invokeNs: id * 100 + 1,
      returnNs: id * 100 + 50,
    });
  }
  for (const [stage, atNs] of [
    ['planned', 0],
    ['injected', 300],
    ['confirmed', 310],
    ['healed', 500],
    ['heal-verified', 510],
  ] as const) {
    void ledger.fault({
      faultId: 'F1',
      kind: 'kill',
      stage,
      atNs,
      wallMs: 1,
      targets: ['n2'],
      evidence: { seen: stage },
    });
  }
  void ledger.epochChange({
    partition: 3,
    epoch: 8,
    term: 8,
    node: 'n1',
    incarnation: 1,
    kind: 'failover',
    health: 'Degraded',
    atNs: 350,
  });
  void ledger.epochChange({
    partition: 3,
    epoch: 9,
    term: 8,
    node: 'n1',
    incarnation: 1,
    kind: 'edge',
    health: 'Healthy',
    atNs: 450,
  });
  for (const [id, key] of [
    [1, 'a'],
    [2, 'b'],
  ] as const) {
    const gone = lose && id === 2;
    const shown = gone ? { value: null, version: null } : { value: value(id), version: [7, id] as const };
    void ledger.finalRead({
      key,
      phase: 'final',
      invokeNs: 1_000,
      returnNs: 1_010,
      completion: { kind: 'ok', ...shown, partition: 3, epoch: 9, node: 'n1' },
    });
    void ledger.replicaRead({
      key,
      phase: 'final',
      node: 'n1',
      incarnation: 1,
      role: 'primary',
      atNs: 1_100,
      kind: 'answered',
      ...shown,
      appliedSeq: 9,
      commitSeq: 9,
    });
  }
  await ledger.meta('settings', { rf: 3 });
  await ledger.close();
}

describe('a ledger', () => {
  it('gives back what was written, and certifies a sound run', async () => {
    const path = newPath();
    await writeRun(path, false);
    using reader = openLedgerReader(path);
    expect(reader.meta('settings')).toEqual({ rf: 3 });
    expect([...reader.operations()]).toMatchObject([
      {
        operationId: 1,
        f: 'write',
        key: 'a',
        outcome: 'ok',
        invokeNs: 101,
        returnNs: 150,
        version: [7, 1],
        node: 'n2',
        partition: 3,
        epoch: 7,
      },
      { operationId: 2, key: 'b' },
    ]);
    expect([...reader.faults()].map((fault) => fault.stage)).toEqual([
      'planned',
      'injected',
      'confirmed',
      'healed',
      'heal-verified',
    ]);
    const judgement = judgementOf(path);
    expect(judgement).toMatchObject({
      verdict: 'certified',
      exitCode: 0,
      missingEvidence: [],
      strength: { failovers: 1, exposed: 2, judged: 2, perFailoverBound95: 1 },
    });
    expect(judgement.recovery).toEqual([
      { faultId: 'F1', kind: 'kill', partition: 3, firstAckNs: null, healthyNs: 150 },
    ]);
    expect(judgement.canary.outcome).toBe('caught');
  });

  it('reports a lost write with its circumstances', async () => {
    const path = newPath();
    await writeRun(path, true);
    const judgement = judgementOf(path);
    expect(judgement).toMatchObject({ verdict: 'violated', exitCode: 1 });
    expect(judgement.findings).toMatchObject([
      {
        kind: 'lost',
        key: 'b',
        partition: 3,
        operation: { operationId: 2, session: 2, epoch: 7, node: 'n2', returnNs: 250 },
        firstMissed: { source: 'final', observed: null },
        replicas: [{ node: 'n1', answer: 'absent' }],
        openFaults: [],
      },
    ]);
  });

  it('takes operations without an outcome as unknown, before and after a resume', async () => {
    const path = newPath();
    const ledger = await openLedger({ path, runTag: 'run', minFreeBytes: 0 });
    await ledger.intent({ operationId: 1, session: 0, operation: { f: 'write', key: 'a', value: value(1) }, atNs: 5 });
    await ledger.close();
    const outcomes = (): string[] => {
      using reader = openLedgerReader(path);
      return [...reader.operations()].map(
        (operation) => `${operation.outcome} ${operation.returnNs === null ? 'open' : 'closed'}`,
      );
    };
    expect(outcomes()).toEqual(['info open']);
    const resumed = await openLedger({ path, runTag: 'run', resume: true, minFreeBytes: 0 });
    expect(resumed.resumed.openOperations).toBe(1);
    await resumed.close();
    expect(outcomes()).toEqual(['info closed']);
  });

  it('judges a value that an open operation wrote as allowed, not as a phantom', async () => {
    const path = newPath();
    const ledger = await openLedger({ path, runTag: 'run', minFreeBytes: 0 });
    await ledger.intent({ operationId: 1, session: 0, operation: { f: 'write', key: 'a', value: value(1) }, atNs: 5 });
    await ledger.finalRead({
      key: 'a',
      phase: 'final',
      invokeNs: 1_000,
      returnNs: 1_010,
      completion: { kind: 'ok', value: value(1) },
    });
    await ledger.close();
    const judgement = judgementOf(path, { replicasPerKey: null });
    expect(judgement.findings).toEqual([]);
    expect(judgement.missingEvidence.map((missing) => missing.gate)).toEqual(['no-acknowledged-writes']);
  });

  it('refuses new operations when the disk runs low, and still records the rest', async () => {
    const ledger = await openLedger({ path: newPath(), runTag: 'run', minFreeBytes: Number.MAX_SAFE_INTEGER });
    await expect(
      ledger.intent({ operationId: 1, session: 0, operation: { f: 'read', key: 'a' }, atNs: 0 }),
    ).rejects.toBeInstanceOf(DiskGuardError);
    await expect(ledger.meta('stopped', 'the disk is nearly full')).resolves.toBeUndefined();
    await ledger.close();
  });

  it('fails the next intent when the writer failed', async () => {
    const ledger = await openLedger({ path: newPath(), runTag: 'run', minFreeBytes: 0 });
    const intent = (operationId: number): Promise<void> =>
      ledger.intent({ operationId, session: operationId, operation: { f: 'read', key: 'a' }, atNs: 0 });
    await intent(1);
    void ledger.outcome({ session: 1, completion: { kind: 'ok' }, invokeNs: 1, returnNs: 2 });
    await intent(2);
    // An id that stands already: the outcome's row cannot be inserted.
    await ledger.intent({ operationId: 1, session: 3, operation: { f: 'read', key: 'a' }, atNs: 0 });
    void ledger.outcome({ session: 3, completion: { kind: 'ok' }, invokeNs: 1, returnNs: 2 });
    await expect(intent(4)).rejects.toThrow('the ledger cannot be written');
    await expect(ledger.close()).rejects.toThrow('the ledger cannot be written');
  });
});

describe('files that are no ledger of ours', () => {
  const reasonOf = (path: string): string => {
    try {
      openLedgerReader(path).close();
      return 'opened';
    } catch (error) {
      expect(error).toBeInstanceOf(LedgerFileError);
      expect((error as Error).message).not.toContain('\n');
      return (error as LedgerFileError).reason;
    }
  };

  it('are refused with a reason', async () => {
    expect(reasonOf(join(folder, 'nowhere'))).toBe('missing');
    const text = newPath();
    writeFileSync(text, 'not a database at all');
    expect(reasonOf(text)).toBe('not-a-ledger');
    const empty = newPath();
    writeFileSync(empty, '');
    expect(reasonOf(empty)).toBe('damaged');
    const foreign = newPath();
    new Database(foreign).exec('CREATE TABLE t (x)').close();
    expect(reasonOf(foreign)).toBe('not-a-ledger');
    const newer = newPath();
    const db = new Database(newer).exec('CREATE TABLE t (x)');
    db.pragma(`application_id = ${applicationId}`);
    db.pragma(`user_version = ${schemaVersion + 1}`);
    db.close();
    expect(reasonOf(newer)).toBe('newer');
    await expect(openLedger({ path: newer, runTag: 'run', resume: true })).rejects.toBeInstanceOf(LedgerFileError);
    await expect(openLedger({ path: newer, runTag: 'run' })).rejects.toMatchObject({ reason: 'exists' });
  });
});

describe('migrations', () => {
  it('bring a file up step by step and stop where the file is newer', () => {
    const path = newPath();
    const db = new Database(path);
    migrate(db, path);
    const next = [...migrations, (older: typeof db) => void older.exec('ALTER TABLE gaps ADD COLUMN note TEXT')];
    migrate(db, path, next);
    expect(db.pragma('user_version', { simple: true })).toBe(schemaVersion + 1);
    expect(db.prepare('SELECT note FROM gaps').all()).toEqual([]);
    expect(() => migrate(db, path)).toThrow(LedgerFileError);
    db.close();
  });

  it('leave the file as it was when a step fails', () => {
    const path = newPath();
    const db = new Database(path);
    const broken = [
      ...migrations,
      (older: typeof db) => void older.exec('CREATE TABLE extra (x); SELECT no_such_function()'),
    ];
    expect(() => migrate(db, path, broken)).toThrow('no_such_function');
    expect(db.pragma('user_version', { simple: true })).toBe(schemaVersion);
    expect(db.prepare("SELECT count(*) FROM sqlite_master WHERE name = 'extra'").pluck().get()).toBe(0);
    db.close();
  });
});
