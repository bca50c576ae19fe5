/**
 * Quorum-confirmed reads (ReadIndex): what is committed now is the latest anybody was told of, provided that a majority still
 * follows this leader in a round of messages begun after the read came in.
 *
 * Invariant: a read is released only after such a round, with the commit index as of the round's start, and only where an entry of
 * the leader's own raftTerm was committed by then. Worst outcome if wrong: a deposed leader answers with the past.
 * Source: Ongaro (2014), §6.4.
 */

/** Reads that may wait at a time; more are refused. */
export const maxWaitingReads = 100_000;

/** A read released: everything up to `index` must be applied before it is answered. */
export interface ConfirmedRead {
  readonly context: number;
  readonly index: number;
}

interface Round {
  readonly round: number;
  readonly index: number;
  readonly contexts: readonly number[];
}

export class ReadQueue {
  /** Not in a round yet. */
  private fresh: number[] = [];
  private rounds: Round[] = [];
  private count = 0;

  /** False when too many wait. */
  add(context: number): boolean {
    if (this.count >= maxWaitingReads) return false;
    this.count++;
    this.fresh.push(context);
    return true;
  }

  get hasFresh(): boolean {
    return this.fresh.length > 0;
  }

  /** All that came in so far wait for `round`, whose messages must not have been sent yet. */
  begin(round: number, commitIndex: number): void {
    this.rounds.push({ round, index: commitIndex, contexts: this.fresh });
    this.fresh = [];
  }

  /** Takes the reads whose round is confirmed. */
  takeConfirmed(isConfirmed: (round: number) => boolean): ConfirmedRead[] {
    const confirmed: ConfirmedRead[] = [];
    for (let head = this.rounds[0]; head !== undefined && isConfirmed(head.round); head = this.rounds[0]) {
      for (const context of head.contexts) confirmed.push({ context, index: head.index });
      this.rounds.shift();
    }
    this.count -= confirmed.length;
    return confirmed;
  }

  /** Takes all that wait, when leadership is lost. */
  takeAll(): number[] {
    const all = [...this.rounds.flatMap((round) => round.contexts), ...this.fresh];
    this.fresh = [];
    this.rounds = [];
    this.count = 0;
    return all;
  }
}
