/**
 * Bounds that clients and nodes must agree on. A client that believed in larger ones would send what every node refuses; one
 * that believed in a longer life of exactly-once records could run a mutation twice.
 */

/** Longest key, bytes of UTF-8. */
export const maxKeyBytes = 1024;
/** Largest value, bytes of UTF-8. */
export const maxValueBytes = 1024 * 1024;
/** Longest client id, node id, token and the like, bytes. */
export const maxNameBytes = 256;
/** Most items that one scan request may ask of one partition. */
export const maxScanItems = 10_000;
/** Most keys in one peek request. */
export const maxPeekKeys = 10_000;
/** Largest payload of a frame that a client may send; holds any one request. */
export const maxRequestFrameBytes = 4 * 1024 * 1024;
/** Most messages in one frame. */
export const maxFrameMessages = 4096;

/** Exactly-once records of a client that was silent for this long may go (by a logged entry), ms. */
export const onceIdleExpiryMs = 900_000;
/**
 * A server closes, unread, a connection that was silent for longer than this: what was parked in its socket may be a repeat whose
 * record is about to go. A client sends no mutation again later than this after its first send.
 */
export const silentConnectionMs = onceIdleExpiryMs / 2;

/** Bytes of `text` in UTF-8 (a lone surrogate counts 3), without encoding it. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(index + 1))) {
      bytes += 2;
      index++;
    } else bytes += 2;
  }
  return bytes;
}

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** True when `text` has at most `limitBytes` bytes of UTF-8; looks at every character only when the length leaves doubt. */
export const fitsUtf8 = (text: string, limitBytes: number): boolean =>
  text.length * 3 <= limitBytes || (text.length <= limitBytes && utf8Bytes(text) <= limitBytes);
