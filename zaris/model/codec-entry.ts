/**
 * Log entries as lists by position, for the cluster wire. What a replica decodes must equal what the primary encoded, field for
 * field: digests are compared across copies.
 */
import { unreachable } from '../../lib/assert.ts';
import type { Entry, EntryEffect, OnceRecord, StoredResult } from './entry.ts';
import { seq, term } from './ids.ts';
import { interned } from './interned.ts';
import { maxKeyBytes, maxValueBytes } from './limits.ts';
import { readArray, readFinite, readInt, readText, readWord } from './wire-check.ts';

const effectKinds = ['term-start', 'put', 'delete', 'completion', 'expire-clients'] as const;
const resultStatuses = ['Ok', 'NotFound', 'Conflict', 'InvalidInput'] as const;

/** About how many bytes the entries take; never far too low. */
export function estimateEntries(entries: readonly Entry[]): number {
  let bytes = 0;
  for (const entry of entries) {
    bytes += 256;
    if (entry.effect.kind === 'put') bytes += 3 * entry.effect.value.length;
    if (entry.once?.result.value !== undefined) bytes += 3 * entry.once.result.value.length;
  }
  return bytes;
}

export const encodeEntries = (entries: readonly Entry[]): unknown[] => entries.map(encodeEntry);

/** Throws {@link CodecError}. */
export const decodeEntries = (raw: unknown): Entry[] => readArray(raw, 'entries', null).map(decodeEntry);

function encodeEntry(entry: Entry): unknown[] {
  const list: unknown[] = [entry.seq, entry.term, effectKinds.indexOf(entry.effect.kind)];
  encodeEffect(entry.effect, list);
  if (entry.once !== undefined) encodeOnce(entry.once, list);
  return list;
}

/** Always three elements: key, value, time to live (or what stands in their place). */
function encodeEffect(effect: EntryEffect, list: unknown[]): void {
  switch (effect.kind) {
    case 'put':
      list.push(effect.key, effect.value, effect.ttlMs ?? null);
      return;
    case 'delete':
      list.push(effect.key, null, null);
      return;
    case 'expire-clients':
      list.push(effect.clientIds, null, null);
      return;
    case 'term-start':
    case 'completion':
      list.push(null, null, null);
      return;
    default:
      unreachable(effect);
  }
}

function encodeOnce(once: OnceRecord, list: unknown[]): void {
  const { result } = once;
  list.push(
    once.clientId,
    once.sequence,
    once.lowWatermark,
    resultStatuses.indexOf(result.status),
    result.value ?? null,
    result.version === undefined ? null : result.version.term,
    result.version === undefined ? null : result.version.seq,
  );
}

const bareLength = 6;
const onceLength = 13;

function decodeEntry(raw: unknown): Entry {
  const bare = Array.isArray(raw) && raw.length === bareLength;
  const list = readArray(raw, 'entry', bare ? bareLength : onceLength);
  const entry = {
    seq: seq(readInt(list[0], 'seq', 1)),
    term: term(readInt(list[1], 'term')),
    effect: decodeEffect(list),
  };
  return bare ? entry : { ...entry, once: decodeOnce(list) };
}

function decodeEffect(list: readonly unknown[]): EntryEffect {
  const kind = readWord(list[2], 'effect', effectKinds);
  switch (kind) {
    case 'put': {
      const key = readText(list[3], 'key', maxKeyBytes);
      const value = readText(list[4], 'value', maxValueBytes);
      return list[5] === null ? { kind, key, value } : { kind, key, value, ttlMs: readFinite(list[5], 'ttl') };
    }
    case 'delete':
      return { kind, key: readText(list[3], 'key', maxKeyBytes) };
    case 'expire-clients':
      return { kind, clientIds: readArray(list[3], 'client ids', null).map((id) => readText(id, 'client id')) };
    case 'term-start':
    case 'completion':
      return { kind };
    default:
      return unreachable(kind);
  }
}

function decodeOnce(list: readonly unknown[]): OnceRecord {
  return {
    clientId: interned(readText(list[6], 'client id')),
    sequence: readInt(list[7], 'sequence', 1),
    lowWatermark: readInt(list[8], 'low watermark'),
    result: decodeResult(list),
  };
}

function decodeResult(list: readonly unknown[]): StoredResult {
  const status = readWord(list[9], 'result', resultStatuses);
  const version =
    list[11] === null ? {} : { version: { term: term(readInt(list[11], 'term')), seq: seq(readInt(list[12], 'seq')) } };
  return list[10] === null
    ? { status, ...version }
    : { status, value: readText(list[10], 'value', maxValueBytes), ...version };
}
