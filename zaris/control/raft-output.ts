/**
 * What one voter wants done: writes, messages and news since the last look, and how far its own log is durable.
 *
 * Invariant: everything that vouches for a write leaves in the same or a later {@link RaftReady} than the write. With the
 * caller's duty below this makes votes and acknowledgements durable before anybody hears of them.
 * Worst outcome if wrong: a second vote in a raftTerm after a crash.
 */
import { assert } from '../../lib/assert.ts';
import type { NodeId } from '../model/ids.ts';
import type { DiskWrite, RaftEntry, RaftMessage, RaftSnapshot } from '../model/raft-wire.ts';
import type { ConfirmedRead } from './raft-reads.ts';

/**
 * Duty of the caller: carry out `persist`, and only when it is durable release `messages` and anything else that follows from
 * this ready; then feed `persisted(ticket)`. Strictly first in, first out across readies too, also for those without `persist`.
 */
export interface RaftReady {
  readonly persist: { readonly ticket: number; readonly writes: readonly DiskWrite[] } | null;
  readonly messages: readonly { readonly to: NodeId; readonly message: RaftMessage }[];
  /** To be installed into the state machine before `committed` is applied. */
  readonly snapshot: RaftSnapshot | null;
  /** In order, each once, right after those given before (or after `snapshot`). */
  readonly committed: readonly RaftEntry[];
  readonly reads: readonly ConfirmedRead[];
  /** Contexts of reads that failed because leadership was lost. */
  readonly lostReads: readonly number[];
  /** `role`, `leader` or `isReadyLeader` is another than at the last look. */
  readonly roleChange: boolean;
}

/** A message before it is addressed. */
export type Unaddressed<T> = T extends unknown ? Omit<T, 'sender' | 'receiver' | 'raftTerm'> : never;

/** The writes and messages of a voter until they are taken, and which of its log is known to be durable. */
export class RaftOutput {
  private writes: DiskWrite[] = [];
  private messages: { to: NodeId; message: RaftMessage }[] = [];
  /** Tickets under way, oldest first, with the end of the log as each of them leaves it. */
  private underWay: { readonly ticket: number; lastIndex: number }[] = [];
  private lastTicket = 0;
  private durable: number;

  constructor(durableIndex: number) {
    this.durable = durableIndex;
  }

  /** Last index up to which the log in memory stands on disk. */
  get durableIndex(): number {
    return this.durable;
  }

  write(write: DiskWrite): void {
    this.writes.push(write);
  }

  send(message: RaftMessage): void {
    this.messages.push({ to: message.receiver.nodeId, message });
  }

  /** The log in memory was cut from `index` on: what older tickets left above it no longer counts. */
  cutFrom(index: number): void {
    this.durable = Math.min(this.durable, index - 1);
    for (const ticket of this.underWay) ticket.lastIndex = Math.min(ticket.lastIndex, index - 1);
  }

  /** `lastIndex` is the end of the log as the writes taken leave it. */
  take(lastIndex: number): Pick<RaftReady, 'persist' | 'messages'> {
    const { writes, messages } = this;
    this.writes = [];
    this.messages = [];
    if (writes.length === 0) return { persist: null, messages };
    const ticket = ++this.lastTicket;
    this.underWay.push({ ticket, lastIndex });
    return { persist: { ticket, writes }, messages };
  }

  persisted(ticket: number): void {
    const oldest = this.underWay.shift();
    assert(oldest?.ticket === ticket, 'writes become durable in the order in which they were given');
    this.durable = Math.max(this.durable, oldest.lastIndex);
  }
}
