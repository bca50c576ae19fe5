/** The latest notices, numbered, for `/events`: chaos triggers and people poll it. Bounded; the oldest go first. */
import type { Notice } from '../node/contract.ts';

export interface NumberedNotice extends Notice {
  /** 1, 2, 3 … since the process started. */
  readonly number: number;
  readonly atMs: number;
  readonly wallMs: number;
}

/** Keeps the newest `capacity` notices. */
export class EventRing {
  private readonly capacity: number;
  private readonly notices: NumberedNotice[] = [];
  private last = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  add({ name, level, fields }: Notice, atMs: number, wallMs: number): void {
    const number = ++this.last;
    this.notices[(number - 1) % this.capacity] = { number, atMs, wallMs, name, level, fields };
  }

  /** Notices with a number above `after`, oldest first, at most `limit`. */
  after(after: number, limit: number): NumberedNotice[] {
    const first = Math.max(after + 1, this.last - this.capacity + 1, 1);
    const found: NumberedNotice[] = [];
    for (let number = first; number <= this.last && found.length < limit; number++) {
      found.push(this.notices[(number - 1) % this.capacity] as NumberedNotice);
    }
    return found;
  }
}
