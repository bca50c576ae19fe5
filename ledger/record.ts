/**
 * A row as the bytes that SQLite keeps of it: a header of serial types, then the values. Whole numbers and NULL (NaN here) are
 * told; text and blobs are passed over.
 *
 * Invariant: what is decoded is what SQLite itself would return. If a column slipped, the verifier would judge a history that did
 * not happen; so a sample of every table that is read this way is compared with SQLite's own answer (table-pages.ts). Source:
 * "Database File Format", sqlite.org, §2.1.
 */
import { assert } from '../lib/assert.ts';

/** Bytes of a value by serial type, for those below 12. */
const sizes = new Uint8Array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0]);
const typeNull = 0;
const typeByte = 1;
const typeInt = 4;
const typeLong = 6;
const typeZero = 8;
const typeOne = 9;
const firstTextType = 12;
const intLimit = 2 ** 32;

/** Bytes of the longest record that {@link encodeRecord} makes of `columns` values. */
export const maxEncodedBytes = (columns: number): number => 1 + columns * 9;

/**
 * Decodes the record at `at` into `cells`, one per column; NULL, text and columns that an older row lacks become NaN. Only as many
 * columns are looked at as `cells` holds.
 */
export function decodeRecord(bytes: Uint8Array, at: number, cells: Float64Array): void {
  const headerEnd = at + (bytes[at] as number);
  let header = at + 1;
  let body = headerEnd;
  let column = 0;
  while (header < headerEnd && column < cells.length) {
    let type = bytes[header++] as number;
    if (type > 127) {
      let low = type;
      type &= 127;
      while (low > 127) {
        low = bytes[header++] as number;
        type = type * 128 + (low & 127);
      }
    }
    cells[column++] = type < firstTextType ? numberAt(bytes, body, type) : NaN;
    body += type < firstTextType ? (sizes[type] as number) : (type - firstTextType) >> 1;
  }
  while (column < cells.length) cells[column++] = NaN;
}

/** One whole number of the record at `at`; only numbers and NULL may stand before its column. */
export function columnOf(bytes: Uint8Array, at: number, column: number): number {
  const header = at + 1;
  let body = at + (bytes[at] as number);
  for (let before = 0; before < column; before++) {
    const type = bytes[header + before] as number;
    assert(type < firstTextType, 'only numbers stand before this column');
    body += sizes[type] as number;
  }
  const type = bytes[header + column] as number;
  assert(type !== typeNull && type < firstTextType, 'a column that holds a number');
  return numberAt(bytes, body, type);
}

/** The number of this serial type, below those of texts; NaN for NULL. */
function numberAt(bytes: Uint8Array, at: number, type: number): number {
  switch (type) {
    case typeNull:
      return NaN;
    case typeByte:
      return ((bytes[at] as number) << 24) >> 24;
    case 2:
      return (((bytes[at] as number) << 24) >> 16) | (bytes[at + 1] as number);
    case 3:
      return (((bytes[at] as number) << 24) >> 8) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
    case typeInt:
      return int(bytes, at);
    case 5:
      return (
        ((((bytes[at] as number) << 24) >> 16) | (bytes[at + 1] as number)) * intLimit + (int(bytes, at + 2) >>> 0)
      );
    case typeLong:
      return int(bytes, at) * intLimit + (int(bytes, at + 4) >>> 0);
    case typeZero:
      return 0;
    case typeOne:
      return 1;
    default:
      throw new RangeError('the columns of a ledger hold no fractions');
  }
}

/** Writes a record of whole numbers and NULLs at `at`; returns its length. Texts are left out as NULL. */
export function encodeRecord(values: readonly (number | string | null)[], bytes: Uint8Array, at: number): number {
  const headerBytes = 1 + values.length;
  assert(headerBytes < 128, 'a short header');
  bytes[at] = headerBytes;
  let body = at + headerBytes;
  for (let column = 0; column < values.length; column++) {
    const value = values[column];
    if (typeof value !== 'number') {
      bytes[at + 1 + column] = typeNull;
    } else if (value >= -128 && value <= 127) {
      bytes[at + 1 + column] = typeByte;
      bytes[body++] = value;
    } else if (value === (value | 0)) {
      bytes[at + 1 + column] = typeInt;
      putInt(bytes, body, value);
      body += 4;
    } else {
      bytes[at + 1 + column] = typeLong;
      const high = Math.floor(value / intLimit);
      putInt(bytes, body, high);
      putInt(bytes, body + 4, value - high * intLimit);
      body += 8;
    }
  }
  return body - at;
}

const int = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) << 24) |
  ((bytes[at + 1] as number) << 16) |
  ((bytes[at + 2] as number) << 8) |
  (bytes[at + 3] as number);

function putInt(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = (value >>> 24) & 255;
  bytes[at + 1] = (value >>> 16) & 255;
  bytes[at + 2] = (value >>> 8) & 255;
  bytes[at + 3] = value & 255;
}
