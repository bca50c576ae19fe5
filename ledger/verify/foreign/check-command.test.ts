import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { CheckArguments, CheckOutput } from './check-command.ts';
import { runCheck } from './check-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'check-command-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function check(content: string | Uint8Array, args: Omit<CheckArguments, 'file'>): Promise<CheckOutput> {
  const file = join(folder, `history-${files++}`);
  writeFileSync(file, content);
  return runCheck({ file, ...args });
}

type Row = readonly [key: number, kind: number, status: number, a: number, b: number, invoke: number, complete: number];

function chist(rows: readonly Row[], keys = 4): Buffer {
  const bytes = Buffer.alloc(32 + 48 * rows.length);
  bytes.write('CHIST01\0', 0, 'latin1');
  bytes.writeUInt32LE(keys, 8);
  bytes.writeUInt32LE(1, 12);
  bytes.writeBigUInt64LE(BigInt(rows.length), 16);
  rows.forEach(([key, kind, status, a, b, invoke, complete], index) => {
    const at = 32 + 48 * index;
    bytes.writeUInt32LE(key, at);
    bytes.writeUInt32LE(index, at + 4);
    bytes[at + 8] = kind;
    bytes[at + 9] = status;
    [a, b, invoke, complete].forEach((value, place) => bytes.writeBigInt64LE(BigInt(value), at + 16 + 8 * place));
  });
  return bytes;
}

const bulk = { format: 'chist', model: 'cas-register' };
const far = 2 ** 52;

describe('runCheck', () => {
  it('exits 0, 1, 3 or 64', async () => {
    const edn = { format: 'jepsen-edn', model: 'cas-register' };
    const read = '[{:process 0 :type :invoke :f :read :value nil} {:process 0 :type :ok :f :read :value 5}]';
    expect(await check(read, { ...edn, initial: 5 })).toMatchObject({
      exitCode: 0,
      json: { verdict: 'valid', model: 'cas-register', format: 'jepsen-edn', operations: 1, keys: 1, evidence: null },
    });
    expect(await check(read, edn)).toMatchObject({
      exitCode: 1,
      json: { verdict: 'invalid', evidence: { operation: { line: 1 } } },
    });
    expect(await check('{:process 0 :type :invoke :f :add :value 1}', { ...edn, model: 'set' })).toMatchObject({
      exitCode: 3,
      json: { verdict: 'unknown', reason: expect.stringContaining('never read') },
    });
    expect(await check(`${read.slice(0, -1)}\n`, edn)).toMatchObject({
      exitCode: 64,
      json: { line: 1, error: expect.stringMatching(/history-\d+: line 1: .* never closed/) },
    });
  });

  it('refuses options that cannot be used, in one sentence', async () => {
    const refused = async (args: Omit<CheckArguments, 'file'>): Promise<string> => {
      const { exitCode, json } = await check('[]', args);
      expect(exitCode).toBe(64);
      return 'error' in json ? json.error : '';
    };
    expect(await refused({ format: 'xml', model: 'set' })).toContain('--format xml is none of');
    expect(await refused({ format: 'chist', model: 'queue' })).toContain('--model queue is none of');
    expect(await refused({ format: 'chist', model: 'kv' })).toContain('not model kv');
    expect(await refused({ format: 'jepsen-edn', model: 'cas-register', initial: '1 2' })).toContain('--initial');
    expect(await refused({ format: 'jepsen-edn', model: 'set', initial: '1' })).toContain('--initial goes with');
    expect(await refused({ format: 'jepsen-edn', model: 'set', budgetMs: 0 })).toContain('must be above 0');
    expect(await runCheck({ file: join(folder, 'absent'), format: 'kv-log', model: 'kv' })).toMatchObject({
      exitCode: 64,
      json: { error: expect.stringContaining('cannot be read: ENOENT') },
    });
  });

  it('refuses JSON that no other reader would take', async () => {
    const json = { format: 'jepsen-json', model: 'cas-register' };
    const event = '{"process":0,"type":"invoke","f":"write","value":3}';
    expect(await check(`[${event}]`, json)).toMatchObject({ exitCode: 0 });
    expect(await check(`[${event},\n]`, json)).toMatchObject({
      exitCode: 64,
      json: { error: expect.stringContaining('line 2: a comma stands before the end of the array') },
    });
    const deep = `[${event.replace('3', '['.repeat(100_000) + ']'.repeat(100_000))}]`;
    expect(await check(deep, json)).toMatchObject({
      exitCode: 64,
      json: { error: expect.stringContaining('nested more than 512 deep') },
    });
  });

  it('refuses bytes that are no text', async () => {
    const output = await check(Uint8Array.from([0xff, 0xfe, 0x00]), { format: 'kv-log', model: 'kv' });
    expect(output).toMatchObject({ exitCode: 64, json: { error: expect.stringContaining('UTF-8') } });
  });
});

describe('chist', () => {
  const rows: Row[] = [
    [3, 1, 0, far, -1, 0, 10],
    [1, 2, 0, -1, 7, 1, 9],
    [3, 2, 1, far + 1, 8, 20, 30],
    [3, 0, 0, -1, far, 40, 50],
    [1, 1, 2, 9, -1, 41, -1],
    [1, 0, 0, -1, 7, 60, 70],
  ];

  it('reads values and times beyond 32 bits, keys apart, nil at the start', async () => {
    expect(await check(chist(rows), bulk)).toMatchObject({ exitCode: 0, json: { operations: 6, keys: 2 } });
    expect(await check(chist([]), bulk)).toMatchObject({ exitCode: 0, json: { operations: 0 } });
  });

  it('names key, record and possible values of a violation', async () => {
    const bad = await check(chist([...rows, [1, 0, 0, -1, -1, 80, 90]]), bulk);
    expect(bad).toMatchObject({
      exitCode: 1,
      json: {
        evidence: { key: '1', operation: { line: 7, text: 'read → nil [80, 90] ns' }, statesPossible: ['9', '7'] },
      },
    });
  });

  it('does not need records in order of invocation', async () => {
    expect(await check(chist(rows.toReversed()), bulk)).toMatchObject({ exitCode: 0 });
  });

  it.each([
    [chist(rows).subarray(0, -1), 'is cut short: its header says 6 operations, it holds 5'],
    [Buffer.concat([chist(rows), Buffer.alloc(48)]), 'goes on after its end'],
    [chist(rows).subarray(0, 20), 'fewer than the header'],
    [Buffer.alloc(64), 'does not begin with CHIST01'],
    [chist(rows, 2), 'record 1: key 3'],
    [chist([[0, 3, 0, 0, 0, 0, 1]]), 'record 1: kind 3'],
    [chist([[0, 0, 5, 0, 0, 0, 1]]), 'record 1: status 5'],
    [chist([[0, 1, 1, 0, 0, 0, 1]]), 'only a compare-and-set can have failed'],
    [chist([[0, 1, 0, 5, -1, 9, 8]]), 'returns before it is invoked'],
    [chist([[0, 1, 0, 5, -1, 9, -1]]), 'an outcome but no return'],
  ])('refuses a damaged file (%#)', async (bytes, reason) => {
    expect(await check(bytes, bulk)).toMatchObject({ exitCode: 64, json: { error: expect.stringContaining(reason) } });
  });

  it('refuses values and times that would be rounded: two values would be one', async () => {
    const bytes = chist([
      [0, 1, 0, 7, -1, 1, 2],
      [0, 0, 0, -1, 7, 3, 4],
    ]);
    bytes.writeBigInt64LE(2n ** 53n + 1n, 32 + 16);
    bytes.writeBigInt64LE(2n ** 53n, 32 + 48 + 24);
    expect(await check(bytes, bulk)).toMatchObject({
      exitCode: 64,
      json: { error: expect.stringContaining('record 1: a value is not below 2^53') },
    });
    const late = chist([[0, 1, 0, 7, -1, 1, 2]]);
    late.writeBigInt64LE(2n ** 62n, 32 + 40);
    expect(await check(late, bulk)).toMatchObject({ exitCode: 64 });
  });

  it('is unknown when the header names more keys than memory holds, before it takes any', async () => {
    expect(await check(chist([[0, 1, 0, 7, -1, 1, 2]], 2 ** 32 - 1), bulk)).toMatchObject({
      exitCode: 3,
      json: { verdict: 'unknown', reason: expect.stringContaining('4294967295 keys') },
    });
  });

  it('refuses a folder', async () => {
    expect(await runCheck({ file: folder, ...bulk })).toMatchObject({
      exitCode: 64,
      json: { error: `${folder} cannot be read: EISDIR` },
    });
  });

  it('is unknown when the columns would not fit', async () => {
    expect(await check(chist(rows), { ...bulk, memoryMiB: 0.0001 })).toMatchObject({
      exitCode: 3,
      json: { reason: expect.stringContaining('memory') },
    });
  });
});
