/** Where a key lives: key → segment (CRC16, as Redis Cluster computes it) → partition. Clients and nodes must agree. */
import keySlot from 'cluster-key-slot';
import { type PartitionId, partitionId } from './ids.ts';
import { segmentCount } from './view.ts';

/** The segment of a key, 0 … 16,383. Braces in a key have no meaning here beyond cluster-key-slot's hash tags. */
export function segmentOf(key: string): number {
  if (key !== lastKey) {
    lastSegment = keySlot(key);
    lastKey = key;
  }
  return lastSegment;
}

/** Whoever asks for a key asks again while it handles the same call. */
let lastKey = '';
let lastSegment = keySlot(lastKey);

/** The partition of a segment: contiguous ranges of equal size. `partitionCount` must divide 16,384. */
export function partitionOfSegment(segment: number, partitionCount: number): PartitionId {
  return partitionId(Math.floor((segment * partitionCount) / segmentCount));
}

export function partitionOf(key: string, partitionCount: number): PartitionId {
  return partitionOfSegment(segmentOf(key), partitionCount);
}
