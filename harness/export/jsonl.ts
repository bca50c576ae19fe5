/** Everything that a ledger holds, one JSON object per line, for tools of one's own; `row` says what each line is. */
import type { LedgerReader } from '../../ledger/reader.ts';

const metaKeys = ['runId', 'origin', 'settings', 'plan', 'facts', 'host', 'schedule', 'unsupported', 'end', 'canary'];

/** Lines without their newline: settings, operations (by id, then the open ones), read-backs, faults, epochs, gaps. */
export function* jsonLines(reader: LedgerReader, wanted: (key: string) => boolean): Generator<string, void, undefined> {
  for (const key of metaKeys) {
    const value = reader.meta(key);
    if (value !== undefined) yield JSON.stringify({ row: 'meta', key, value });
  }
  for (const operation of reader.operations())
    if (wanted(operation.key)) yield JSON.stringify({ row: 'operation', ...operation });
  for (const read of reader.finalReads()) if (wanted(read.key)) yield JSON.stringify({ row: 'read-back', ...read });
  for (const fault of reader.faults()) yield JSON.stringify({ row: 'fault', ...fault });
  for (const change of reader.epochChanges()) yield JSON.stringify({ row: 'epoch', ...change });
  for (const incarnation of reader.incarnations()) yield JSON.stringify({ row: 'incarnation', ...incarnation });
  for (const digest of reader.digests()) yield JSON.stringify({ row: 'digest', ...digest });
  for (const gap of reader.gaps()) yield JSON.stringify({ row: 'gap', ...gap });
}
