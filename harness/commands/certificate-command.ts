/** `certify verify --certificate FILE`: does a certificate still hold for the run in its folder? */
import { dirname, join } from 'node:path';
import { changedSinceCertified, disagreements, readCertificate } from '../certificate.ts';
import { messageOf, UsageError } from '../errors.ts';
import { judgeRun } from '../judge-run.ts';
import { openRunFolder } from '../results.ts';
import { exitCodeOf } from '../verdict.ts';

/**
 * Judges the ledger beside the certificate again, in a copy of nothing: no file of the run is changed. Returns 0 when the certificate
 * holds and says certified, the exit code of its verdict when it holds and says something else, 1 when the ledger shows a violation
 * now, and 3 when anything does not agree.
 */
export async function verifyCertificateCommand(path: string): Promise<number> {
  const old = readCertificate(path);
  const folder = openRunFolder(dirname(path), '.');
  let judged;
  try {
    judged = await judgeRun(folder, new AbortController().signal, { write: false });
  } catch (error) {
    const changed = changedSinceCertified(folder.path);
    if (changed.length === 0) throw error;
    process.stdout.write(`The certificate of run ${old.runId} does not hold:\n`);
    for (const sentence of changed) process.stdout.write(`  ${sentence}\n`);
    process.stdout.write(`  It cannot be judged any more: ${messageOf(error).replace(/\.$/, '')}.\n`);
    return exitCodeOf('inconclusive');
  }
  if (judged.certificate === undefined)
    throw new UsageError(`There is no ledger beside ${join(path)} to check it against.`);
  const found = disagreements(old, judged.certificate);
  if (found.length === 0) {
    process.stdout.write(`The certificate of run ${old.runId} holds: ${old.headline.replace(/\.$/, '')}.\n`);
    return old.exitCode;
  }
  process.stdout.write(`The certificate of run ${old.runId} does not hold:\n`);
  for (const sentence of found) process.stdout.write(`  ${sentence}\n`);
  if (judged.verdict === 'violated') process.stdout.write(`  ${judged.headline}.\n`);
  return exitCodeOf(judged.verdict === 'violated' ? 'violated' : 'inconclusive');
}
