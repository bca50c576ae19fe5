/**
 * One line changed in a copy of a finished ledger: the verdict changes, or the certificate does not hold. Each change is made with
 * plain SQL, as somebody would who wanted a green run.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  certificateFile,
  changedSinceCertified,
  disagreements,
  readCertificate,
  sha256OfJson,
  type Certificate,
} from './certificate.ts';
import { verifyCertificateCommand } from './commands/certificate-command.ts';
import { verifyCommand } from './commands/verify-command.ts';
import { judgeFolder } from './judge-folder.ts';
import { runAndReport, runRig, shortSettings } from './testing/run-rig.ts';

let folder = '';
let original = '';
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'certify-tamper-'));
  const { folder: run, judged } = await runAndReport(await shortSettings(folder), runRig().world);
  expect(judged.verdict).toBe('certified');
  original = run.path;
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let copies = 0;
/** A copy of the run with these statements applied to its ledger; each must change exactly one row. */
function tampered(...statements: readonly string[]): string {
  const copy = join(folder, `copy-${++copies}`);
  cpSync(original, copy, { recursive: true });
  const db = new Database(join(copy, 'ledger.sqlite'));
  try {
    for (const sql of statements) expect(db.prepare(sql).run().changes, sql).toBe(1);
  } finally {
    db.close();
  }
  return copy;
}

const anyWrite = `SELECT op_id FROM operations WHERE f = 1 AND outcome = 0 AND key_id IN (SELECT key_id FROM keys WHERE name LIKE 's%' AND canary = 0) ORDER BY op_id LIMIT 1 OFFSET 40`;
const finalOf = (key: string): string =>
  `SELECT row_id FROM final_reads WHERE key_id = (SELECT key_id FROM operations WHERE op_id = (${key}))`;

/** What to change, and the verdicts that may follow. */
const changes: readonly (readonly [name: string, sql: readonly string[], verdicts: readonly string[]])[] = [
  [
    'the value of a final read dropped',
    [`UPDATE final_reads SET observed = NULL, major = NULL, minor = NULL WHERE row_id = (${finalOf(anyWrite)})`],
    ['violated'],
  ],
  [
    'a final read deleted',
    [`DELETE FROM final_reads WHERE row_id = (${finalOf(anyWrite)})`],
    ['harness-fault', 'inconclusive'],
  ],
  ['a version raised', [`UPDATE operations SET minor = minor + 1000000 WHERE op_id = (${anyWrite})`], ['violated']],
  [
    'an acknowledged write called failed',
    [`UPDATE operations SET outcome = 1, why = 1 WHERE op_id = (${anyWrite})`],
    ['violated'],
  ],
  ['an acknowledged write deleted', [`DELETE FROM operations WHERE op_id = (${anyWrite})`], ['harness-fault']],
  [
    'the confirmation of a fault deleted',
    [`DELETE FROM faults WHERE row_id = (SELECT row_id FROM faults WHERE fault_id = 'F2' AND stage = 'confirmed')`],
    ['harness-fault', 'inconclusive'],
  ],
  [
    'the verified heal of a fault deleted',
    [`DELETE FROM faults WHERE row_id = (SELECT row_id FROM faults WHERE fault_id = 'F2' AND stage = 'heal-verified')`],
    ['harness-fault', 'inconclusive'],
  ],
  [
    'a failover deleted',
    [`DELETE FROM epoch_changes WHERE row_id = (SELECT row_id FROM epoch_changes WHERE kind = 'failover' LIMIT 1)`],
    ['harness-fault'],
  ],
  [
    'a read that saw another value',
    [
      `UPDATE operations SET observed = observed + 1 WHERE op_id = (SELECT op_id FROM operations WHERE f = 0 AND observed > 0 AND outcome = 0 ORDER BY op_id LIMIT 1 OFFSET 20)`,
    ],
    ['violated'],
  ],
  ['a canary that was not deleted', [`UPDATE meta SET json = '[]' WHERE key = 'canary'`], ['inconclusive']],
  [
    'a reason against it removed, where there is none',
    [`UPDATE meta SET json = replace(json, '"reasons":[]', '"reasons": []') WHERE key = 'end'`],
    ['certified'],
  ],
];

describe('a ledger that was changed after the run', { timeout: 60_000 }, () => {
  it.each(changes)('%s', (_, statements, verdicts) => {
    const copy = tampered(...statements);
    const old = readCertificate(join(copy, certificateFile));
    const judged = judgeFolder(copy, false, false);
    expect(verdicts).toContain(judged.verdict);
    if (judged.certificate === undefined) throw new Error('nothing was judged');
    const found = disagreements(old, judged.certificate);
    expect(found.join('\n')).toMatch(/ledger is not the one that was certified/);
  });

  it('and one that was not: the certificate holds, and judging leaves every file as it was', () => {
    const copy = join(folder, 'same');
    cpSync(original, copy, { recursive: true });
    const judged = judgeFolder(copy, false, false);
    if (judged.certificate === undefined) throw new Error('nothing was judged');
    expect(disagreements(readCertificate(join(copy, certificateFile)), judged.certificate)).toEqual([]);
    for (const file of ['report.json', certificateFile, 'ledger.sqlite'])
      expect(readFileSync(join(copy, file)).equals(readFileSync(join(original, file))), file).toBe(true);
  });

  it.each([
    [
      'the certificate',
      certificateFile,
      (text: string) => text.replace('"acknowledgedWrites": ', '"acknowledgedWrites": 9'),
      /certificate itself was changed/,
    ],
    ['the schedule', 'schedule.json', (text: string) => text.replace('5000', '5001'), /schedule is not the one/],
  ] as const)('%s changed is noticed', (_, file, change, expected) => {
    const copy = tampered();
    const text = readFileSync(join(copy, file), 'utf8');
    expect(change(text)).not.toBe(text);
    writeFileSync(join(copy, file), change(text));
    const judged = judgeFolder(copy, false, false);
    if (judged.certificate === undefined) throw new Error('nothing was judged');
    expect(disagreements(readCertificate(join(copy, certificateFile)), judged.certificate).join('\n')).toMatch(
      expected,
    );
  });

  const forgeries: readonly Partial<
    Omit<Certificate, 'sha256' | 'counts' | 'strength' | 'formatVersion' | 'checksum'>
  >[] = [
    { runId: 'another' },
    { headline: 'No acknowledged write can ever be lost' },
    { exitCode: 3 },
    { missing: ['nothing'] },
    { system: { name: 'zaris', build: 'better', replicationFactor: 5, minInSync: 3 } },
    { cluster: 'elsewhere' },
    { contract: 'declared' },
    { permittedLosses: 9 },
    { startedAt: '2020-01-01T00:00:00.000Z' },
    { durationMs: 14_400_000 },
    { seed: '0x7' },
  ];
  it('a forged field is noticed, also under a new checksum', () => {
    const old = readCertificate(join(original, certificateFile));
    const now = judgeFolder(tampered(), false, false).certificate;
    if (now === undefined) throw new Error('nothing was judged');
    for (const forgery of forgeries) {
      const { checksum: _, ...unsigned } = { ...old, ...forgery };
      const forged = { ...unsigned, checksum: sha256OfJson(unsigned) };
      expect(disagreements(forged, now), JSON.stringify(forgery)).toHaveLength(1);
    }
  });

  it('judging it once more does not certify it: nothing passes, nothing is written', async () => {
    const copy = tampered(`UPDATE meta SET json = replace(json, '"reasons":[]', '"reasons": []') WHERE key = 'end'`);
    const files = (): string[] =>
      ['report.json', certificateFile, 'verdict.json'].map((file) => {
        const path = join(copy, file);
        return existsSync(path) ? readFileSync(path, 'utf8') : 'none';
      });
    const before = files();
    expect(await verifyCommand(folder, basename(copy))).toBe(3);
    expect(files()).toEqual(before);
    expect(changedSinceCertified(copy)).toEqual(['The ledger is not the one that was certified (SHA-256).']);
    expect(changedSinceCertified(original)).toEqual([]);
  });

  it('and one that cannot be judged any more breaks its certificate, without a trace', async () => {
    const copy = tampered(`UPDATE meta SET json = '{' WHERE key = 'facts'`);
    expect(await verifyCertificateCommand(join(copy, certificateFile))).toBe(3);
    expect(await verifyCommand(folder, basename(copy))).toBe(3);
  });
});
