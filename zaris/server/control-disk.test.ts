import { appendFile, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Prng } from '../../lib/prng.ts';
import { foldDiskWrite } from '../control/raft-disk.ts';
import { nodeId } from '../model/ids.ts';
import { type DiskState, type DiskWrite, emptyDisk } from '../model/raft-wire.ts';
import { ControlDisk, ControlDiskError, readControlLog } from './control-disk.ts';

let directory = '';
let path = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'zaris-disk-'));
  path = join(directory, 'control.log');
});
afterEach(() => rm(directory, { recursive: true }));

const config = { voters: [{ nodeId: nodeId('n1'), diskId: 'd' }], learners: [] };
const command = (index: number, raftTerm = 1): DiskWrite => ({
  kind: 'entries',
  entries: [{ kind: 'command', index, raftTerm, command: { text: 'x'.repeat(index * 7) } }],
});
const batches: DiskWrite[][] = [
  [
    { kind: 'identity', diskId: 'd' },
    { kind: 'vote', raftTerm: 1, votedFor: nodeId('n1') },
  ],
  [command(1), command(2)],
  [{ kind: 'vote', raftTerm: 2, votedFor: null }],
  [command(2, 2), command(3, 2)],
];
const fold = (some: readonly (readonly DiskWrite[])[]): DiskState => some.flat().reduce(foldDiskWrite, emptyDisk);

async function write(some: readonly (readonly DiskWrite[])[]): Promise<void> {
  const { disk } = await ControlDisk.open(directory);
  for (const batch of some) await disk.write(batch);
  await disk.close();
}

async function reopen(): Promise<{ state: DiskState; cutBytes: number }> {
  const { disk, state, cutBytes } = await ControlDisk.open(directory);
  await disk.close();
  return { state, cutBytes };
}

describe('ControlDisk', () => {
  it('gives back what was written, across openings', async () => {
    await write(batches.slice(0, 2));
    await write(batches.slice(2));
    expect(await reopen()).toEqual({ state: fold(batches), cutBytes: 0 });
  });

  it('a new directory is an empty disk, and so is one torn while it was made', async () => {
    expect((await reopen()).state).toEqual(emptyDisk);
    await truncate(path, 4);
    expect((await reopen()).state).toEqual(emptyDisk);
    await write(batches);
    expect((await reopen()).state).toEqual(fold(batches));
  });

  it('cut at any byte, it is the state of some prefix of the batches, and can be written on', async () => {
    await write(batches);
    const whole = await readFile(path);
    const prefixes = batches.map((_, count) => fold(batches.slice(0, count))).concat(fold(batches));
    let reached = 0;
    for (let size = 10; size <= whole.byteLength; size++) {
      const { state, soundBytes } = readControlLog(whole.subarray(0, size), path);
      const prefix = prefixes.findIndex((other) => JSON.stringify(other) === JSON.stringify(state));
      expect(prefix).toBeGreaterThanOrEqual(reached);
      expect(soundBytes).toBeLessThanOrEqual(size);
      reached = prefix;
    }
    expect(reached).toBe(batches.length);
    await truncate(path, whole.byteLength - 3);
    const { state, cutBytes } = await reopen();
    expect(state).toEqual(fold(batches.slice(0, 3)));
    expect(cutBytes).toBeGreaterThan(0);
    await write([batches[3] as DiskWrite[]]);
    expect(await reopen()).toEqual({ state: fold(batches), cutBytes: 0 });
  });

  it('garbage or zeros behind the last record are cut', async () => {
    await write(batches);
    await appendFile(path, Buffer.alloc(4096));
    expect((await reopen()).cutBytes).toBe(4096);
    await appendFile(path, Buffer.from('rubbish that is no record'));
    expect((await reopen()).state).toEqual(fold(batches));
  });

  it('a flipped bit in any record but the last refuses to start; in the last it is cut', async () => {
    await write(batches);
    const whole = await readFile(path);
    const firstThree = await lengthOf(batches.slice(0, 3));
    const random = new Prng(11);
    for (let round = 0; round < 300; round++) {
      const at = random.between(10, whole.byteLength - 1);
      const copy = Buffer.from(whole);
      copy[at] = (copy[at] as number) ^ (1 << random.below(8));
      if (at < firstThree) expect(() => readControlLog(copy, path), `byte ${at}`).toThrow(ControlDiskError);
      else expect(readControlLog(copy, path).state).toEqual(fold(batches.slice(0, 3)));
    }
    const copy = Buffer.from(whole);
    copy[30] = (copy[30] as number) ^ 1;
    await writeFile(path, copy);
    await expect(ControlDisk.open(directory)).rejects.toThrow(/corrupt at byte 10.*join/);
  });

  async function lengthOf(some: readonly (readonly DiskWrite[])[]): Promise<number> {
    const other = await mkdtemp(join(tmpdir(), 'zaris-disk-'));
    const { disk } = await ControlDisk.open(other);
    for (const batch of some) await disk.write(batch);
    await disk.close();
    const { byteLength } = await readFile(join(other, 'control.log'));
    await rm(other, { recursive: true });
    return byteLength;
  }

  it('a snapshot compacts the file; a crash before the rename leaves the old one', async () => {
    await write(batches);
    const before = (await readFile(path)).byteLength;
    const snapshot: DiskWrite = { kind: 'snapshot', snapshot: { index: 2, raftTerm: 2, config, state: { any: 1 } } };
    await write([[snapshot]]);
    const state = fold([...batches, [snapshot]]);
    expect(state.entries).toHaveLength(1);
    expect((await reopen()).state).toEqual(state);
    expect((await readFile(path)).byteLength).toBeLessThan(before + 200);
    await writeFile(`${path}.new`, 'half a file');
    expect((await reopen()).state).toEqual(state);
    await write([[command(4, 2)]]);
    expect((await reopen()).state.entries).toHaveLength(2);
  });

  it('is not fooled by a file of something else', async () => {
    await writeFile(path, 'SQLite format 3');
    await expect(ControlDisk.open(directory)).rejects.toThrow(/no control log/);
  });
});
