/**
 * Values that name the operation that wrote them and carry a checksum.
 *
 * Invariant: a text is decoded as operation N of this run only if it is byte for byte a value that operation N wrote. If a
 * damaged value passed for a sound one, corruption would be certified. A list value is sound values joined by one space.
 */
import { crc32 } from 'node:zlib';
import { assert } from '../lib/assert.ts';

/** Starts every value; changes when the format does. */
const prefix = 'z1';
const separator = '.';
const listSeparator = ' ';
const hexDigits = '0123456789abcdef';
const filler = 'abcdefghijklmnopqrstuvwxyz0123456789';
const numberPattern = /^-?\d{1,15}$/;
const tagPattern = /^[A-Za-z0-9_-]+$/;

/** The last tag that was found sound. */
let soundTag = '';

/** What a value says. `items` > 1: a list whose last element was written by `operationId`; `digest` covers all of it. */
export type DecodedValue =
  | { readonly kind: 'operation'; readonly operationId: number; readonly items: number; readonly digest: number }
  | { readonly kind: 'number'; readonly number: number }
  /** Well-formed, from another run. */
  | { readonly kind: 'foreign'; readonly text: string }
  /** Not a value of this format, or its checksum fails. */
  | { readonly kind: 'corrupt'; readonly text: string };

/** The value that operation `operationId` writes: `sizeBytes` long, or as short as its name and checksum allow. */
export function encodeValue(runTag: string, operationId: number, sizeBytes: number): string {
  // One tag for the whole of a run, mostly.
  if (runTag !== soundTag) {
    assert(tagPattern.test(runTag), `run tag ${JSON.stringify(runTag)} must be letters, digits, _ or -`);
    soundTag = runTag;
  }
  assert(Number.isSafeInteger(operationId) && operationId >= 0, 'operation id must be a non-negative integer');
  const head = `${prefix}${separator}${runTag}${separator}${operationId.toString(36)}${separator}`;
  const bodyBytes = Math.max(0, sizeBytes - head.length - 8);
  let body = '';
  if (bodyBytes > 0) {
    const start = operationId % filler.length;
    body = (filler.slice(start) + filler.repeat(Math.ceil(bodyBytes / filler.length))).slice(0, bodyBytes);
  }
  return `${head}${checksum(head, body)}${body}`;
}

/** What was decoded last: a key's read-back and its copies on every replica come one after the other, mostly alike. */
let latest: { readonly runTag: string; readonly text: string; readonly value: DecodedValue } | null = null;

/** Reads a value back. Never throws. */
export function decodeValue(runTag: string, text: string): DecodedValue {
  if (latest !== null && latest.text === text && latest.runTag === runTag) return latest.value;
  const value = Object.freeze(decode(runTag, text));
  latest = { runTag, text, value };
  return value;
}

function decode(runTag: string, text: string): DecodedValue {
  const last = text.lastIndexOf(listSeparator);
  if (last < 0) {
    if (numberPattern.test(text)) return { kind: 'number', number: Number(text) };
    const element = decodeElement(runTag, text);
    return typeof element === 'string'
      ? { kind: element, text }
      : { kind: 'operation', operationId: element, items: 1, digest: 0 };
  }
  const elements = text.split(listSeparator);
  let operationId = -1;
  for (const part of elements) {
    const element = decodeElement(runTag, part);
    if (typeof element === 'string') return { kind: element, text };
    operationId = element;
  }
  return { kind: 'operation', operationId, items: elements.length, digest: crc32(text) };
}

function decodeElement(runTag: string, text: string): number | 'foreign' | 'corrupt' {
  const tagEnd = text.indexOf(separator, prefix.length + 1);
  const idEnd = tagEnd < 0 ? -1 : text.indexOf(separator, tagEnd + 1);
  if (idEnd < 0 || !text.startsWith(prefix + separator)) return 'corrupt';
  const head = text.slice(0, idEnd + 1);
  if (!hasChecksum(text, idEnd + 1, crc32(text.slice(idEnd + 9), crc32(head)))) return 'corrupt';
  const operationId = Number.parseInt(text.slice(tagEnd + 1, idEnd), 36);
  if (!Number.isSafeInteger(operationId)) return 'corrupt';
  return text.slice(prefix.length + 1, tagEnd) === runTag ? operationId : 'foreign';
}

const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Eight digits, byte by byte: a number as large as most sums is slowly made a text. */
function checksum(head: string, body: string): string {
  const sum = crc32(body, crc32(head));
  return `${hexBytes[sum >>> 24]}${hexBytes[(sum >>> 16) & 255]}${hexBytes[(sum >>> 8) & 255]}${hexBytes[sum & 255]}`;
}

/** Whether {@link checksum} stands at `at`. */
function hasChecksum(text: string, at: number, sum: number): boolean {
  for (let digit = 0; digit < 8; digit++) {
    const expected = hexDigits.charCodeAt((sum >>> (28 - 4 * digit)) & 15);
    if (text.charCodeAt(at + digit) !== expected) return false;
  }
  return true;
}
