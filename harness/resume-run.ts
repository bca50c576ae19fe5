/**
 * Opens a run whose harness died so that it can go on, or says why it cannot.
 *
 * Invariant: a run whose harness is alive, or may be, is left alone: two harnesses on one ledger would write two histories
 * into one.
 */
import { currentHost, judgeOwner, type Owner, type OwnerVerdict } from '../docker/labels.ts';
import { openLedger } from '../ledger/ledger.ts';
import { openLedgerReader } from '../ledger/reader.ts';
import { dirname } from 'node:path';
import { UsageError } from './errors.ts';
import type { RunFolder } from './results.ts';
import type { RunLedger } from './run/ports.ts';
import { readResumption, type Resumption } from './run/resumption.ts';
import type { RunSettings } from './settings.ts';
import { settingsFrom } from './stored-settings.ts';

/** What there is of a run. */
export type Resumable =
  | { readonly kind: 'over' }
  | { readonly kind: 'owned'; readonly why: string }
  | { readonly kind: 'abandoned'; readonly runId: string; readonly settings: RunSettings };

const judgeHere = (owner: Owner): OwnerVerdict => judgeOwner(owner, currentHost());

/** Looks at a run without changing it. Throws LedgerFileError, and UsageError where it ended before it had begun. */
export function lookAtRun(folder: RunFolder, judgeOf: (owner: Owner) => OwnerVerdict = judgeHere): Resumable {
  using reader = openLedgerReader(folder.path);
  if (reader.meta('end') !== undefined) return { kind: 'over' };
  const owner = reader.meta('owner') as Owner | undefined;
  const verdict = owner === undefined ? null : judgeOf(owner);
  if (verdict?.kind === 'alive') return { kind: 'owned', why: `process ${owner?.pid} is still running it` };
  if (verdict?.kind === 'unknown') return { kind: 'owned', why: `its harness may still be running (${verdict.why})` };
  const settings = settingsFrom(reader.meta('settings'), dirname(folder.path));
  const runId = reader.meta('runId');
  if (typeof runId !== 'string') throw new UsageError('The ledger names no run: it ended before it had begun.');
  return { kind: 'abandoned', runId, settings };
}

/** Opens the ledger of an abandoned run for writing; from here on the run is ours. */
export async function takeLedger(
  folder: RunFolder,
  settings: RunSettings,
): Promise<{ readonly ledger: RunLedger; readonly resumed: Resumption }> {
  // Opening for writing turns what was open into `info` and notes the gap.
  const ledger = await openLedger({ path: folder.ledger, sync: settings.ledgerSync, resume: true, runTag: 'kept' });
  await ledger.flush();
  using reader = openLedgerReader(folder.path);
  const { keys, lastNs } = ledger.resumed;
  const resumed = readResumption({
    ledger: reader,
    durationMs: settings.durationMs,
    lastNs,
    keys: keys.map(([, name]) => name),
  });
  return { ledger, resumed };
}
