/**
 * The client's half of exactly-once: one sequence per mutation and partition, repeated unchanged by every attempt, and the low
 * watermark below which nothing will ever be sent again. Letting the watermark pass a mutation that may still be repeated would get
 * that repeat refused; giving one sequence to two mutations would answer the second with the first one's result.
 */
import { assert } from '../../lib/assert.ts';
import type { Once } from '../model/client-wire.ts';
import type { PartitionId } from '../model/ids.ts';

interface PartitionSequences {
  next: number;
  /** Not settled, ascending. */
  readonly open: number[];
}

/** Sequences of one client. */
export class OnceSequences {
  readonly clientId: string;
  private readonly partitions = new Map<PartitionId, PartitionSequences>();

  constructor(clientId: string) {
    this.clientId = clientId;
  }

  /** A new sequence of this partition; open until {@link settle}. */
  open(partition: PartitionId): number {
    let sequences = this.partitions.get(partition);
    if (sequences === undefined) {
      sequences = { next: 1, open: [] };
      this.partitions.set(partition, sequences);
    }
    const sequence = sequences.next++;
    sequences.open.push(sequence);
    return sequence;
  }

  /** The envelope of one attempt of an open sequence, with the watermark as it stands now. */
  envelope(partition: PartitionId, sequence: number): Once {
    const open = this.partitions.get(partition)?.open;
    assert(open?.includes(sequence) === true, 'a settled sequence is never sent again');
    return { clientId: this.clientId, sequence, lowWatermark: open[0] as number };
  }

  /** The sequence is settled or given up: the caller never sends it again, so the watermark may pass it. */
  settle(partition: PartitionId, sequence: number): void {
    const open = this.partitions.get(partition)?.open ?? [];
    const index = open.indexOf(sequence);
    assert(index >= 0, 'a sequence is settled once');
    open.splice(index, 1);
  }
}
