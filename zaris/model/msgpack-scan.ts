/**
 * Looks at a MessagePack payload before a decoder does: only nil, booleans, numbers, strings, arrays and maps with text keys, every
 * length backed by bytes that are really there, bounded depth, nothing behind the value. A decoder trusted with unchecked lengths
 * would let five bytes allocate hundreds of megabytes, and extensions would let a stranger choose what objects are made.
 */

/** Deepest nesting that any of our messages needs, with room. */
export const maxDepth = 24;

/** What {@link scanMessagePack} says of a payload: null when sound, else one phrase. */
export type ScanFault = string | null;

let bytes: Uint8Array = new Uint8Array(0);
let position = 0;

/** Null when `payload` is exactly one sound value, else what is wrong with it. */
export function scanMessagePack(payload: Uint8Array): ScanFault {
  bytes = payload;
  position = 0;
  const fault = scanValue(0);
  const end = position;
  bytes = emptyBytes;
  if (fault !== null) return fault;
  return end === payload.byteLength ? null : `${payload.byteLength - end} bytes behind the value`;
}

const emptyBytes = new Uint8Array(0);
const truncated = 'truncated value';

function scanValue(depth: number): ScanFault {
  if (position >= bytes.byteLength) return truncated;
  const token = bytes[position++] as number;
  if (token < 0x80 || token >= 0xe0) return null;
  if (token < 0x90) return scanMap(token & 0x0f, depth);
  if (token < 0xa0) return scanArray(token & 0x0f, depth);
  if (token < 0xc0) return skip(token & 0x1f);
  return scanLong(token, depth);
}

function scanLong(token: number, depth: number): ScanFault {
  switch (token) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
      return null;
    case 0xcc:
    case 0xd0:
      return skip(1);
    case 0xcd:
    case 0xd1:
      return skip(2);
    case 0xca:
    case 0xce:
    case 0xd2:
      return skip(4);
    case 0xcb:
    case 0xcf:
    case 0xd3:
      return skip(8);
    case 0xd4:
      return scanUndefined();
    case 0xd9:
      return skip(length(1));
    case 0xda:
      return skip(length(2));
    case 0xdb:
      return skip(length(4));
    case 0xdc:
      return scanArray(length(2), depth);
    case 0xdd:
      return scanArray(length(4), depth);
    case 0xde:
      return scanMap(length(2), depth);
    case 0xdf:
      return scanMap(length(4), depth);
    default:
      return `token 0x${token.toString(16)} is not ours`;
  }
}

/** The one extension that the packer writes for plain data: `undefined`. */
function scanUndefined(): ScanFault {
  if (position + 2 > bytes.byteLength) return truncated;
  const sound = bytes[position] === 0 && bytes[position + 1] === 0;
  position += 2;
  return sound ? null : 'extensions are not ours';
}

/** Reads a big-endian length; -1 when it is not all there. */
function length(width: 1 | 2 | 4): number {
  if (position + width > bytes.byteLength) return -1;
  let value = 0;
  for (let index = 0; index < width; index++) value = value * 256 + (bytes[position++] as number);
  return value;
}

function skip(count: number): ScanFault {
  if (count < 0 || count > bytes.byteLength - position) return truncated;
  position += count;
  return null;
}

function scanArray(count: number, depth: number): ScanFault {
  if (count < 0 || count > bytes.byteLength - position) return truncated;
  if (depth >= maxDepth) return 'nested too deep';
  for (let index = 0; index < count; index++) {
    const fault = scanValue(depth + 1);
    if (fault !== null) return fault;
  }
  return null;
}

function scanMap(count: number, depth: number): ScanFault {
  if (count < 0 || count * 2 > bytes.byteLength - position) return truncated;
  if (depth >= maxDepth) return 'nested too deep';
  for (let index = 0; index < count; index++) {
    const token = bytes[position];
    const text = token !== undefined && ((token >= 0xa0 && token < 0xc0) || (token >= 0xd9 && token <= 0xdb));
    if (!text) return 'a map key is no text';
    const fault = scanValue(depth + 1) ?? scanValue(depth + 1);
    if (fault !== null) return fault;
  }
  return null;
}
