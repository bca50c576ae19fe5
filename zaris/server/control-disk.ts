/**
 * The control disk: an append-only file of CRC-checked records, folded into a {@link DiskState} at start. One record holds one
 * batch of writes, so that a crash tears at most the last record, which is cut: nobody was told of it. A bad record with sound ones
 * behind it was once vouched for and refuses to start; starting without it could vote twice in a term or forget a committed entry.
 */
import { type FileHandle, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { assert } from '../../lib/assert.ts';
import { foldDiskWrite } from '../control/raft-disk.ts';
import { packValue, unpackValue } from '../model/pack.ts';
import { type DiskState, type DiskWrite, emptyDisk } from '../model/raft-wire.ts';

const fileName = 'control.log';
const fileMagic = Buffer.from('ZARISCTL1\n');
/** Starts every record: magic, payload length, CRC of length and payload. */
const recordMagic = 0x5a_52_43_31;
const recordHeaderBytes = 12;

/** The file cannot be trusted; the message says what to do. */
export class ControlDiskError extends Error {
  override readonly name = 'ControlDiskError';
}

/** A control disk as opened: what it holds, and how many bytes of a torn last record were cut. */
export interface OpenedDisk {
  readonly disk: ControlDisk;
  readonly state: DiskState;
  readonly cutBytes: number;
}

function encodeRecord(writes: readonly DiskWrite[]): Buffer {
  const payload = packValue(writes);
  const record = Buffer.alloc(recordHeaderBytes + payload.byteLength);
  record.writeUInt32BE(recordMagic, 0);
  record.writeUInt32BE(payload.byteLength, 4);
  record.set(payload, recordHeaderBytes);
  record.writeUInt32BE(checksum(record, 0, payload.byteLength), 8);
  return record;
}

function checksum(file: Buffer, offset: number, length: number): number {
  const ofLength = crc32(file.subarray(offset + 4, offset + 8));
  return crc32(file.subarray(offset + recordHeaderBytes, offset + recordHeaderBytes + length), ofLength);
}

/** Length of the sound record at `offset`, header included, or null. */
function soundRecordAt(file: Buffer, offset: number): number | null {
  if (offset + recordHeaderBytes > file.byteLength || file.readUInt32BE(offset) !== recordMagic) return null;
  const length = file.readUInt32BE(offset + 4);
  if (offset + recordHeaderBytes + length > file.byteLength) return null;
  if (checksum(file, offset, length) !== file.readUInt32BE(offset + 8)) return null;
  return recordHeaderBytes + length;
}

function hasSoundRecordAfter(file: Buffer, offset: number): boolean {
  const magic = Buffer.alloc(4);
  magic.writeUInt32BE(recordMagic, 0);
  for (let at = file.indexOf(magic, offset + 1); at >= 0; at = file.indexOf(magic, at + 1)) {
    if (soundRecordAt(file, at) !== null) return true;
  }
  return false;
}

/** What a file's bytes mean. Throws {@link ControlDiskError} when they cannot be trusted. Pure. */
export function readControlLog(file: Buffer, path: string): { readonly state: DiskState; readonly soundBytes: number } {
  const advice = 'restore it, or remove the data directory: the node then joins as a new voter';
  if (!file.subarray(0, fileMagic.byteLength).equals(fileMagic)) {
    if (file.byteLength < fileMagic.byteLength && fileMagic.subarray(0, file.byteLength).equals(file)) {
      return { state: emptyDisk, soundBytes: 0 };
    }
    throw new ControlDiskError(`${path} is no control log of this version; ${advice}`);
  }
  let state = emptyDisk;
  let offset = fileMagic.byteLength;
  while (offset < file.byteLength) {
    const bytes = soundRecordAt(file, offset);
    if (bytes === null) {
      if (!hasSoundRecordAfter(file, offset)) break;
      throw new ControlDiskError(`${path} is corrupt at byte ${offset}, with sound records behind it; ${advice}`);
    }
    const writes = unpackValue(file.subarray(offset + recordHeaderBytes, offset + bytes)) as readonly DiskWrite[];
    for (const write of writes) state = foldDiskWrite(state, write);
    offset += bytes;
  }
  return { state, soundBytes: offset };
}

/** All of a state as one batch of writes. */
function writesOf(state: DiskState): DiskWrite[] {
  const writes: DiskWrite[] = [];
  if (state.diskId !== null) writes.push({ kind: 'identity', diskId: state.diskId });
  writes.push({ kind: 'vote', raftTerm: state.raftTerm, votedFor: state.votedFor });
  if (state.snapshot !== null) writes.push({ kind: 'snapshot', snapshot: state.snapshot });
  if (state.entries.length > 0) writes.push({ kind: 'entries', entries: state.entries });
  return writes;
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The file behind a node's control plane. One write at a time. */
export class ControlDisk {
  private readonly directory: string;
  private handle: FileHandle;
  private state: DiskState;
  private isWriting = false;

  private constructor(directory: string, handle: FileHandle, state: DiskState) {
    this.directory = directory;
    this.handle = handle;
    this.state = state;
  }

  /** Opens or makes the file in `directory`, cuts a torn tail. Throws {@link ControlDiskError}, or what the file system throws. */
  static async open(directory: string): Promise<OpenedDisk> {
    await mkdir(directory, { recursive: true });
    const path = join(directory, fileName);
    await rm(`${path}.new`, { force: true });
    const file = await readFile(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    const { state, soundBytes } = file === null ? { state: emptyDisk, soundBytes: 0 } : readControlLog(file, path);
    const handle = await open(path, 'a');
    if (file === null || soundBytes !== file.byteLength || soundBytes === 0) {
      await handle.truncate(soundBytes);
      if (soundBytes === 0) await handle.appendFile(fileMagic);
      await handle.sync();
      await syncDirectory(directory);
    }
    const cutBytes = file === null ? 0 : file.byteLength - soundBytes;
    return { disk: new ControlDisk(directory, handle, state), state, cutBytes };
  }

  /**
   * Makes the writes durable, in order, as one record. After a rejection the disk must not be used again: what an fsync that failed
   * has kept is unknown.
   */
  async write(writes: readonly DiskWrite[]): Promise<void> {
    assert(!this.isWriting, 'one write of the control disk at a time');
    this.isWriting = true;
    for (const write of writes) this.state = foldDiskWrite(this.state, write);
    if (writes.some((write) => write.kind === 'snapshot')) await this.compact();
    else {
      await this.handle.appendFile(encodeRecord(writes));
      await this.handle.datasync();
    }
    this.isWriting = false;
  }

  /** Replaces the file by one that holds only the state: new file, fsync, rename, fsync of the directory. */
  private async compact(): Promise<void> {
    const path = join(this.directory, fileName);
    const fresh = await open(`${path}.new`, 'w');
    try {
      await fresh.appendFile(Buffer.concat([fileMagic, encodeRecord(writesOf(this.state))]));
      await fresh.sync();
    } finally {
      await fresh.close();
    }
    await rename(`${path}.new`, path);
    await syncDirectory(this.directory);
    await this.handle.close();
    this.handle = await open(path, 'a');
  }

  async close(): Promise<void> {
    await this.handle.close();
  }
}
