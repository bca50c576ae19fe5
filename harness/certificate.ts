/**
 * `certificate.json`: what a run claims, how strongly, and the SHA-256 of everything that the claim rests on, so that it can be
 * checked later, by somebody else, from the run's folder alone.
 *
 * Invariant: a certificate that says "holds" was checked against every file it names and against a new judgement of the ledger. If
 * one byte of ledger, schedule, settings or of the certificate itself could change unnoticed, it would certify another run.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Judgement } from '../ledger/verify/judge.ts';
import type { LedgerReader } from '../ledger/reader.ts';
import { UsageError } from './errors.ts';
import type { RunReport } from './report/model.ts';
import { writeWhole } from './results.ts';

export const certificateFile = 'certificate.json';
const formatVersion = 1;
const chunkBytes = 1 << 20;
/** A ledger that was not closed keeps its newest rows beside itself. */
const walSuffix = '-wal';

const bound = z.number().positive().nullable();
const hash = z.string().regex(/^[0-9a-f]{64}$/);

const certificateShape = z.strictObject({
  formatVersion: z.literal(formatVersion),
  runId: z.string(),
  verdict: z.string(),
  exitCode: z.int(),
  headline: z.string(),
  missing: z.array(z.string()),
  /** What ran, as read from the cluster. */
  system: z.strictObject({ name: z.string(), build: z.string(), replicationFactor: z.int(), minInSync: z.int() }),
  cluster: z.string(),
  contract: z.string(),
  permittedLosses: z.int(),
  startedAt: z.string(),
  durationMs: z.number(),
  seed: z.string(),
  counts: z.strictObject({
    acknowledgedWrites: z.int(),
    judged: z.int(),
    exposed: z.int(),
    superseded: z.int(),
    failovers: z.int(),
    /** Failovers that came together count once: what may be called independent. */
    incidents: z.int(),
    faultsConfirmed: z.int(),
    findings: z.int(),
    liveKeysCap: z.int(),
  }),
  /** Upper bounds at 95 %, 3/n; null where nothing is claimed. The headline is per failover; per write is optimistic. */
  strength: z.strictObject({ perFailover95: bound, perIncident95: bound, perWrite95: bound }),
  sha256: z.strictObject({
    ledger: hash,
    /** Null where the ledger was closed in order. */
    ledgerWal: hash.nullable(),
    /** Null where the run had none. */
    schedule: hash.nullable(),
    settings: hash,
    /** Of the image's name and identity as the cluster told them. */
    image: hash,
  }),
  /** Of this document without this field. */
  checksum: hash,
});

export type Certificate = z.infer<typeof certificateShape>;

/** SHA-256 of a file, read in pieces; null when there is none. */
export function sha256OfFile(path: string): string | null {
  if (!existsSync(path)) return null;
  const sum = createHash('sha256');
  const buffer = Buffer.alloc(chunkBytes);
  const file = openSync(path, 'r');
  try {
    for (let length = readSync(file, buffer); length > 0; length = readSync(file, buffer))
      sum.update(buffer.subarray(0, length));
  } finally {
    closeSync(file);
  }
  return sum.digest('hex');
}

/** SHA-256 of a value as JSON with its keys in order. */
export function sha256OfJson(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(sorted(value)) ?? 'undefined')
    .digest('hex');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
}

/** The certificate of a run that was just judged. The ledger must not be written any more. */
export function certificateOf(
  folder: string,
  report: RunReport,
  judgement: Judgement,
  reader: Pick<LedgerReader, 'meta'>,
): Certificate {
  const { verdict, strength, system } = report;
  const facts = reader.meta('facts') as { build?: unknown; versions?: unknown } | undefined;
  const settings = reader.meta('settings') as { maxLiveKeys?: number } | undefined;
  const unsigned = {
    formatVersion: formatVersion as typeof formatVersion,
    runId: report.run.runId,
    verdict: verdict.kind,
    exitCode: verdict.exitCode,
    headline: verdict.headline,
    missing: [...verdict.missing],
    system: {
      name: system.name,
      build: system.build,
      replicationFactor: system.replicationFactor,
      minInSync: system.minInSync,
    },
    cluster: report.run.cluster,
    contract: verdict.contract,
    permittedLosses: verdict.permittedLosses,
    startedAt: report.run.startedAt,
    durationMs: report.run.durationMs,
    seed: report.run.seed,
    counts: {
      acknowledgedWrites: report.counts.acknowledgedWrites,
      judged: strength.judged,
      exposed: strength.exposed,
      superseded: strength.superseded,
      failovers: strength.failovers,
      incidents: strength.incidents,
      faultsConfirmed: report.faults.filter((fault) => fault.outcome === 'confirmed').length,
      findings: report.findings.total,
      liveKeysCap: settings?.maxLiveKeys ?? 0,
    },
    strength: {
      perFailover95: strength.perFailoverBound95,
      perIncident95: strength.perIncidentBound95,
      perWrite95: strength.perWriteBound95,
    },
    sha256: hashesOf(folder, settings, facts),
  };
  return { ...unsigned, checksum: sha256OfJson(unsigned) };
}

function hashesOf(
  folder: string,
  settings: unknown,
  facts: { build?: unknown; versions?: unknown } | undefined,
): Certificate['sha256'] {
  const ledger = join(folder, 'ledger.sqlite');
  return {
    ledger: sha256OfFile(ledger) ?? sha256OfJson(null),
    ledgerWal: sha256OfFile(`${ledger}${walSuffix}`),
    schedule: sha256OfFile(join(folder, 'schedule.json')),
    settings: sha256OfJson(settings ?? null),
    image: sha256OfJson([facts?.build ?? null, facts?.versions ?? null]),
  };
}

export function writeCertificate(folder: string, certificate: Certificate): void {
  writeWhole(join(folder, certificateFile), `${JSON.stringify(certificate, null, 2)}\n`);
}

/** Reads a certificate. Throws UsageError when the file is none. */
export function readCertificate(path: string): Certificate {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : null;
    if (code !== null) throw new UsageError(`${path} cannot be read (${code}); name the certificate.json of a run.`);
    throw new UsageError(`${path} is not a certificate: it cannot be read as JSON.`);
  }
  const parsed = certificateShape.safeParse(value);
  if (!parsed.success)
    throw new UsageError(`${path} is not a certificate of this format (${parsed.error.issues[0]?.message ?? ''}).`);
  return parsed.data;
}

/**
 * The files in a run's folder that are not those that it was certified with, one sentence each, without judging anything; empty also
 * where there is no certificate that can be read.
 */
export function changedSinceCertified(folder: string): string[] {
  const path = join(folder, certificateFile);
  const certificate = existsSync(path) ? certificateShape.safeParse(jsonOrNull(readFileSync(path, 'utf8'))).data : null;
  if (certificate === undefined || certificate === null) return [];
  const { ledger, ledgerWal, schedule } = certificate.sha256;
  // Looking at a ledger with another tool may leave an empty log beside it.
  const isSame = (file: string, hash: string | null): boolean =>
    withoutEmpty(sha256OfFile(join(folder, file))) === withoutEmpty(hash);
  const found: string[] = [];
  if (!isSame('ledger.sqlite', ledger) || !isSame(`ledger.sqlite${walSuffix}`, ledgerWal))
    found.push(notTheOne('ledger'));
  if (!isSame('schedule.json', schedule)) found.push(notTheOne('schedule'));
  return found;
}

const notTheOne = (name: string): string => `The ${name} is not the one that was certified (SHA-256).`;
const emptyHash = createHash('sha256').digest('hex');
const withoutEmpty = (hash: string | null): string | null => (hash === emptyHash ? null : hash);

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What a certificate tells beside its counts. Its checksum is no signature: whoever edits a field can write a new one. */
const facts = {
  runId: 'run',
  exitCode: 'exit code',
  headline: 'headline',
  missing: 'list of what is missing',
  system: 'system',
  cluster: 'cluster',
  contract: 'contract',
  permittedLosses: 'number of permitted losses',
  startedAt: 'start',
  durationMs: 'duration',
  seed: 'seed',
} as const;

/** What does not agree between a certificate and a new judgement of its folder, one sentence each; empty when it holds. */
export function disagreements(old: Certificate, now: Certificate): string[] {
  const { checksum, ...unsigned } = old;
  const found: string[] = [];
  if (sha256OfJson(unsigned) !== checksum) found.push('The certificate itself was changed after it was written.');
  const names = { ledger: 'ledger', ledgerWal: 'ledger', schedule: 'schedule', settings: 'settings', image: 'image' };
  for (const [key, name] of Object.entries(names) as [keyof typeof names, string][])
    if (old.sha256[key] !== now.sha256[key]) found.push(notTheOne(name));
  for (const [key, words] of Object.entries(facts) as [keyof typeof facts, string][])
    if (sha256OfJson(old[key]) !== sha256OfJson(now[key])) found.push(`Its ${words} is not what the ledger says.`);
  if (old.verdict !== now.verdict)
    found.push(`It says ${old.verdict}, but judging the ledger again says ${now.verdict}.`);
  else if (sha256OfJson([old.counts, old.strength]) !== sha256OfJson([now.counts, now.strength]))
    found.push('Its counts are not those that judging the ledger again gives.');
  return [...new Set(found)];
}
