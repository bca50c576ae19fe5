/**
 * Lets a read out only when nobody else can have committed something newer: under a lease of every promotable member,
 * else after a quorum-confirmed control read, begun after the read, that the term is still current.
 *
 * The value is taken first and the evidence checked after it, in one turn. The other order would let a pause between the
 * two hand out a value that a new primary has overwritten.
 */
/** A read that waits. `answer` takes the value at the moment it is called and replies; `refuse` replies a refusal. */
export interface GatedRead {
  readonly sinceMs: number;
  /** Evaluates now; the returned function sends what was evaluated. */
  readonly evaluate: () => () => void;
  readonly refuse: (why: string) => void;
}

interface Confirming {
  readonly queryId: number;
  readonly release: () => void;
  readonly read: GatedRead;
}

export class ReadGate {
  private waiting: GatedRead[] = [];
  private confirming: Confirming[] = [];

  get size(): number {
    return this.waiting.length + this.confirming.length;
  }

  add(read: GatedRead): void {
    this.waiting.push(read);
  }

  /** The lease holds at this very moment: everything that waits is evaluated and answered. */
  open(): void {
    const ready = this.waiting;
    this.waiting = [];
    for (const read of ready) read.evaluate()();
  }

  /** Any read that has waited since before `beforeMs`? */
  waitsSince(beforeMs: number): boolean {
    const first = this.waiting[0];
    return first !== undefined && first.sinceMs <= beforeMs;
  }

  /** Evaluates every waiting read; they are released when the control read `queryId`, begun after this, confirms the term. */
  beginConfirm(queryId: number): void {
    for (const read of this.waiting) this.confirming.push({ queryId, release: read.evaluate(), read });
    this.waiting = [];
  }

  /** The control read's answer. */
  confirmed(queryId: number, isCurrent: boolean): void {
    const mine = this.confirming.filter((entry) => entry.queryId === queryId);
    this.confirming = this.confirming.filter((entry) => entry.queryId !== queryId);
    for (const entry of mine) {
      if (isCurrent) entry.release();
      else entry.read.refuse('the term is no longer current');
    }
  }

  /** The control read never answered: its reads wait again. */
  abandonConfirm(queryId: number): void {
    const mine = this.confirming.filter((entry) => entry.queryId === queryId);
    this.confirming = this.confirming.filter((entry) => entry.queryId !== queryId);
    this.waiting = [...mine.map((entry) => entry.read), ...this.waiting];
  }

  refuseOlderThan(beforeMs: number, why: string): void {
    if (this.waiting.length === 0) return;
    const keep: GatedRead[] = [];
    for (const read of this.waiting) {
      if (read.sinceMs <= beforeMs) read.refuse(why);
      else keep.push(read);
    }
    this.waiting = keep;
  }

  refuseAll(why: string): void {
    const all = [...this.waiting, ...this.confirming.map((entry) => entry.read)];
    this.waiting = [];
    this.confirming = [];
    for (const read of all) read.refuse(why);
  }
}
