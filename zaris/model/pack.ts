/**
 * MessagePack with the one set of options that every wire and file of ours uses: plain data, maps as objects, no records, no shared
 * structures, no extensions. A frame holds a list of messages, so that a turn's worth of them costs one write.
 */
import { Packr, RESERVE_START_SPACE } from 'msgpackr';
import { maxFrameBytes } from '../../lib/frame.ts';
import { maxFrameMessages } from './limits.ts';
import { scanMessagePack } from './msgpack-scan.ts';
import { CodecError } from './wire-check.ts';

const packr = new Packr({ useRecords: false, mapsAsObjects: true, variableMapSize: true, int64AsType: 'number' });
const headerBytes = 4;
/** A frame is closed once its estimate is over this, so that one batch never approaches the frame bound. */
const batchBytes = 512 * 1024;

/** Plain data → bytes. */
export function packValue(value: unknown): Uint8Array {
  return packr.pack(value);
}

/** Bytes → plain data, scanned first. Throws {@link CodecError}. */
export function unpackValue(payload: Uint8Array): unknown {
  const fault = scanMessagePack(payload);
  if (fault !== null) throw new CodecError(fault);
  try {
    return packr.unpack(payload);
  } catch (cause) {
    throw new CodecError('no MessagePack', { cause });
  }
}

/** One complete frame (length included) that holds `value`. Throws {@link CodecError} when over `limitBytes`. */
export function packFrame(value: unknown, limitBytes = maxFrameBytes): Uint8Array {
  const frame = packr.pack(value, RESERVE_START_SPACE | headerBytes);
  const length = frame.byteLength - headerBytes;
  if (length > limitBytes) throw new CodecError(`message of ${length} bytes is over the frame limit of ${limitBytes}`);
  frame[0] = length >>> 24;
  frame[1] = length >>> 16;
  frame[2] = length >>> 8;
  frame[3] = length;
  return frame;
}

/** How {@link packBatches} handles one kind of message. `estimateBytes` may be too high, never far too low. */
export interface BatchRules<T> {
  readonly encode: (message: T) => unknown;
  readonly estimateBytes: (message: T) => number;
  readonly limitBytes: number;
}

/** As few frames as the bounds allow, in order. */
export function packBatches<T>(messages: readonly T[], rules: BatchRules<T>): Uint8Array[] {
  const frames: Uint8Array[] = [];
  let batch: unknown[] = [];
  let bytes = 0;
  for (const message of messages) {
    const size = rules.estimateBytes(message);
    if (batch.length > 0 && (bytes + size > batchBytes || batch.length >= maxFrameMessages)) {
      frames.push(packFrame(batch, rules.limitBytes));
      batch = [];
      bytes = 0;
    }
    batch.push(rules.encode(message));
    bytes += size;
  }
  if (batch.length > 0) frames.push(packFrame(batch, rules.limitBytes));
  return frames;
}

/** The list in a payload. Throws {@link CodecError} when it is no list or too long. */
export function unpackBatch(payload: Uint8Array): readonly unknown[] {
  const value = unpackValue(payload);
  if (!Array.isArray(value) || value.length > maxFrameMessages)
    throw new CodecError('a frame holds one list of messages');
  return value;
}
