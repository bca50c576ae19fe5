/**
 * Reader of `chist` (CHIST01): fixed records into columns, in chunks, with no object per operation.
 *
 * Owns the record's layout and its plausibility; a truncated or damaged file must be refused, never judged in part.
 */

import { startsOf } from '../search/judge-keys.ts';
import type { RegisterHistory } from '../search/register-history.ts';
import { allocateHistory, casKind, failedStatus, readKind, unknownStatus } from '../search/register-history.ts';
import { UserError } from './user-error.ts';

const magic = 'CHIST01\0';
const headerBytes = 32;
const recordBytes = 48;
const recordWords = recordBytes / 4;
const recordsPerChunk = 16_384;

/** Bytes that the columns take for each operation, its place in the order by key included. */
export const chistBytesPerOperation = 2 + 4 * 8 + 3 * 4;

/** Bytes for each key of the header, also one without operations: its count, its start and its place. */
export const chistBytesPerKey = 3 * 4;

/** Something to read from at a place; a file, or bytes in memory. */
export interface ByteSource {
  readonly size: number;
  /** Fills `into` from `position`; the range lies inside. */
  read(into: Uint8Array, position: number): void;
}

/** A bulk history. Operations stand key after key, so that a key is read from one place in memory. */
export interface ChistHistory {
  readonly history: RegisterHistory;
  /** Operations of key k: from `starts[k]` up to `starts[k + 1]`. */
  readonly starts: Uint32Array;
  /** Per operation. */
  readonly process: Uint32Array;
  /** Per operation: its record in the file, from 0. */
  readonly record: Uint32Array;
}

/** The number of operations that the header promises. Throws {@link UserError} for anything but a complete CHIST01 file. */
export function readChistHeader(source: ByteSource): { readonly operations: number; readonly keys: number } {
  if (source.size < headerBytes)
    throw new UserError(`${source.size} bytes are fewer than the header of a CHIST01 file`);
  const header = new Uint8Array(headerBytes);
  source.read(header, 0);
  if (Buffer.from(header.buffer, 0, magic.length).toString('latin1') !== magic) {
    throw new UserError('the file does not begin with CHIST01');
  }
  const view = new DataView(header.buffer);
  const operations = Number(view.getBigUint64(16, true));
  const expected = headerBytes + operations * recordBytes;
  if (source.size !== expected) {
    const held = Math.floor((source.size - headerBytes) / recordBytes);
    const what = source.size < expected ? 'is cut short' : 'goes on after its end';
    throw new UserError(
      `the file ${what}: its header says ${operations} operations, it holds ${held} (${source.size} bytes)`,
    );
  }
  return { operations, keys: view.getUint32(8, true) };
}

/** Reads all records, in two passes: one counts the operations of each key. Values and times are below 2^53. */
export function readChist(source: ByteSource): ChistHistory {
  const { operations, keys } = readChistHeader(source);
  const counts = new Uint32Array(keys);
  forEachChunk(source, operations, (words, _highs, first, count) => {
    for (let index = 0; index < count; index++) {
      const key = words[index * recordWords]!;
      if (key >= keys) throw new UserError(`record ${first + index + 1}: key ${key} is not below the header's ${keys}`);
      counts[key]!++;
    }
  });
  const starts = startsOf(counts);
  const place = starts.slice();
  const history = allocateHistory(operations);
  const { kind, status, a, b, invoke, complete } = history;
  const process = new Uint32Array(operations);
  const record = new Uint32Array(operations);
  forEachChunk(source, operations, (words, highs, first, count) => {
    for (let index = 0; index < count; index++) {
      const at = index * recordWords;
      const operation = place[words[at]!]!++;
      record[operation] = first + index;
      process[operation] = words[at + 1]!;
      kind[operation] = words[at + 2]! & 0xff;
      status[operation] = (words[at + 2]! >>> 8) & 0xff;
      a[operation] = highs[at + 5]! * 4294967296 + words[at + 4]!;
      b[operation] = highs[at + 7]! * 4294967296 + words[at + 6]!;
      invoke[operation] = highs[at + 9]! * 4294967296 + words[at + 8]!;
      complete[operation] = highs[at + 11]! * 4294967296 + words[at + 10]!;
      checkRecord(history, operation, first + index);
    }
  });
  return { history, starts, process, record };
}

/** Hands the records over chunk by chunk, as unsigned and as signed words; both are the same memory, used again. */
function forEachChunk(
  source: ByteSource,
  operations: number,
  visit: (words: Uint32Array, highs: Int32Array, first: number, count: number) => void,
): void {
  const chunk = new Uint8Array(recordsPerChunk * recordBytes);
  const words = new Uint32Array(chunk.buffer);
  const highs = new Int32Array(chunk.buffer);
  for (let first = 0; first < operations; first += recordsPerChunk) {
    const count = Math.min(recordsPerChunk, operations - first);
    source.read(chunk.subarray(0, count * recordBytes), headerBytes + first * recordBytes);
    visit(words, highs, first, count);
  }
}

function checkRecord(history: RegisterHistory, operation: number, record: number): void {
  const kind = history.kind[operation]!;
  const status = history.status[operation]!;
  const invoke = history.invoke[operation]!;
  const complete = history.complete[operation]!;
  const a = history.a[operation]!;
  const b = history.b[operation]!;
  // The record's number stands in for the line.
  const refuse = (reason: string): never => {
    throw new UserError(`record ${record + 1}: ${reason}`);
  };
  if (kind > casKind) refuse(`kind ${kind} is none of 0 (read), 1 (write), 2 (compare-and-set)`);
  if (status > unknownStatus) refuse(`status ${status} is none of 0 (ok), 1 (failed), 2 (unknown)`);
  if (status === failedStatus && kind !== casKind) refuse('only a compare-and-set can have failed');
  // Rounded, two different values would be one.
  if (!Number.isSafeInteger(a) || !Number.isSafeInteger(b)) refuse('a value is not below 2^53');
  if (!Number.isSafeInteger(invoke) || !Number.isSafeInteger(complete)) refuse('a time is not below 2^53');
  if (status === unknownStatus) history.complete[operation] = Infinity;
  else if (complete < invoke)
    refuse(complete < 0 ? 'it has an outcome but no return' : 'it returns before it is invoked');
  if (invoke < 0) refuse('its invocation time is negative');
  if (kind === readKind && status === unknownStatus) history.b[operation] = -1;
}
