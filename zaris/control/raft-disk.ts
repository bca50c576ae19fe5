/**
 * A control disk as the fold of its writes: the meaning of every record, for the shell that reads a file back at start, the
 * simulator's disk and the tests.
 *
 * Invariant: folding a prefix of the writes gives a state that a voter may start from. Worst outcome if wrong: a voter that
 * forgets a vote or an entry it has vouched for.
 */
import { assert, unreachable } from '../../lib/assert.ts';
import type { DiskState, DiskWrite, RaftEntry, RaftSnapshot } from '../model/raft-wire.ts';

const lastIndexOf = (disk: DiskState): number => (disk.snapshot?.index ?? 0) + disk.entries.length;

function withEntries(disk: DiskState, entries: readonly RaftEntry[]): DiskState {
  const first = entries[0];
  if (first === undefined) return disk;
  const baseIndex = disk.snapshot?.index ?? 0;
  assert(first.index > baseIndex, 'entries written below the snapshot');
  assert(first.index <= lastIndexOf(disk) + 1, 'entries written with a gap');
  const kept = first.index - baseIndex - 1;
  const before = kept === disk.entries.length ? disk.entries : disk.entries.slice(0, kept);
  // Copied in one piece: the simulator's disks do this with every write.
  return { ...disk, entries: before.concat(entries) };
}

function withSnapshot(disk: DiskState, snapshot: RaftSnapshot): DiskState {
  const baseIndex = disk.snapshot?.index ?? 0;
  if (snapshot.index <= baseIndex) return disk;
  const same = disk.entries[snapshot.index - baseIndex - 1];
  const agrees = same !== undefined && same.raftTerm === snapshot.raftTerm;
  return { ...disk, snapshot, entries: agrees ? disk.entries.slice(snapshot.index - baseIndex) : [] };
}

/** The disk after one more write. */
export function foldDiskWrite(disk: DiskState, write: DiskWrite): DiskState {
  switch (write.kind) {
    case 'identity':
      return { ...disk, diskId: write.diskId };
    case 'vote':
      return { ...disk, raftTerm: write.raftTerm, votedFor: write.votedFor };
    case 'entries':
      return withEntries(disk, write.entries);
    case 'snapshot':
      return withSnapshot(disk, write.snapshot);
    default:
      return unreachable(write);
  }
}
