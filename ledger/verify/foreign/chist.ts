/**
 * Reader of `chist` (CHIST01): fixed records into columns, in chunks, with no object per operation.
 *
 * Owns the record's layout and its plausibility; a truncated or damaged file must be refused, never judged in part.
 */

import type { RegisterHistory } from '../search/register-history.ts';
import { allocateHistory, casKind, failedStatus, readKind, unknownStatus } from '../search/register-history.ts';
import { UserError } from './user-error.ts';

const magic = 'CHIST01\0';
const headerBytes = 32;
const recordBytes = 48;
const recordWords = recordBytes / 4;
const recordsPerChunk = 65_536;

/** Bytes that the columns take for each operation, its place in the order by key included. */
export const chistBytesPerOperation = 2 + 4 * 8 + 3 * 4;

/** Something to read from at a place; a file, or bytes in memory. */
export interface ByteSource {
  readonly size: number;
  /** Fills `into` from `position`; the range lies inside. */
  read(into: Uint8Array, position: number): void;
}

/** A bulk history. */
export interface ChistHistory {
  readonly history: RegisterHistory;
  readonly key: Uint32Array;
  readonly process: Uint32Array;
  readonly keyCount: number;
}

/** The number of operations that the header promises. Throws {@link UserError} for anything but a complete CHIST01 file. */
export function readChistHeader(source: ByteSource): { readonly operations: number; readonly keys: number } {
  if (source.size < headerBytes) throw new UserError(`${source.size} bytes are fewer than the header of a CHIST01 file`);
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
    throw new UserError(`the file ${what}: its header says ${operations} operations, it holds ${held} (${source.size} bytes)`);
  }
  return { operations, keys: view.getUint32(8, true) };
}

/** Reads all records. Values and times are below 2^53, so numbers hold them. */
export function readChist(source: ByteSource): ChistHistory {
  const { operations, keys } = readChistHeader(source);
  const history = allocateHistory(operations);
  const key = new Uint32Array(operations);
  const process = new Uint32Array(operations);
  const chunk = new Uint8Array(recordsPerChunk * recordBytes);
  const words = new Uint32Array(chunk.buffer);
  const highs = new Int32Array(chunk.buffer);
  for (let first = 0; first < operations; first += recordsPerChunk) {
    const count = Math.min(recordsPerChunk, operations - first);
    source.read(chunk.subarray(0, count * recordBytes), headerBytes + first * recordBytes);
    for (let index = 0; index < count; index++) {
      const at = index * recordWords;
      const operation = first + index;
      key[operation] = words[at]!;
      process[operation] = words[at + 1]!;
      history.kind[operation] = words[at + 2]! & 0xff;
      history.status[operation] = (words[at + 2]! >>> 8) & 0xff;
      history.a[operation] = highs[at + 5]! * 4294967296 + words[at + 4]!;
      history.b[operation] = highs[at + 7]! * 4294967296 + words[at + 6]!;
      history.invoke[operation] = highs[at + 9]! * 4294967296 + words[at + 8]!;
      history.complete[operation] = highs[at + 11]! * 4294967296 + words[at + 10]!;
      checkRecord(history, operation, words[at]!, keys);
    }
  }
  return { history, key, process, keyCount: keys };
}

function checkRecord(history: RegisterHistory, operation: number, key: number, keys: number): void {
  const kind = history.kind[operation]!;
  const status = history.status[operation]!;
  const invoke = history.invoke[operation]!;
  const complete = history.complete[operation]!;
  // The record's number stands in for the line.
  const refuse = (reason: string): never => {
    throw new UserError(`record ${operation + 1}: ${reason}`);
  };
  if (key >= keys) refuse(`key ${key} is not below the header's ${keys}`);
  if (kind > casKind) refuse(`kind ${kind} is none of 0 (read), 1 (write), 2 (compare-and-set)`);
  if (status > unknownStatus) refuse(`status ${status} is none of 0 (ok), 1 (failed), 2 (unknown)`);
  if (status === failedStatus && kind !== casKind) refuse('only a compare-and-set can have failed');
  if (status === unknownStatus) history.complete[operation] = Infinity;
  else if (complete < invoke) refuse(complete < 0 ? 'it has an outcome but no return' : 'it returns before it is invoked');
  if (invoke < 0) refuse('its invocation time is negative');
  if (kind === readKind && status === unknownStatus) history.b[operation] = -1;
}
