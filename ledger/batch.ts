/**
 * What travels from the ledger's front to its writer thread: rows of the tables that have many as numbers in one typed array, which
 * changes hands without a copy, and their texts in a list; the few other rows beside it, each an array that is cloned. One batch
 * becomes one transaction, in this order: the other rows, then the records as they were appended.
 *
 * Invariant: rows of one table all go the same way. If some went as records and some beside them, they would not stand in the file
 * in the order in which they were told, and a key's read-backs would be judged out of turn.
 */
import type { SideTable } from './schema.ts';

/** Numbers per record: its kind, which of its columns are texts (a bit each), then the columns. NaN stands for NULL. */
export const recordStride = 23;
/** Of each record, before its columns. */
export const recordHead = 2;
/** Tables whose rows travel as records; a text's column holds its place in the batch's list. */
export const recordKinds = {
  open_operations: 0,
  operations: 1,
  keys: 2,
  final_reads: 3,
  replica_reads: 4,
  digests: 5,
  retirements: 6,
  released_keys: 7,
} as const;

export type RecordTable = keyof typeof recordKinds;
/** Tables whose rows travel beside the records. */
export type PlainTable = Exclude<SideTable, RecordTable>;
export type SideValue = string | number | null;
export type SideRow = readonly [table: PlainTable, ...values: SideValue[]];

/** Records of one batch; `texts` are those that their columns point to. */
export interface Records {
  readonly numbers: Float64Array<ArrayBuffer>;
  readonly texts: readonly string[];
}

export type ToWriter =
  | { readonly kind: 'batch'; readonly records: Records; readonly rows: readonly SideRow[] }
  | { readonly kind: 'close' };

export type FromWriter =
  | { readonly kind: 'open'; readonly resumed: ResumedState; readonly freeBytes: number }
  | { readonly kind: 'committed'; readonly freeBytes: number; readonly fileBytes: number }
  | { readonly kind: 'closed' }
  | { readonly kind: 'failed'; readonly reason: string; readonly diskFull: boolean };

/** What an existing file says to the front when a run goes on; empty lists for a new one. */
export interface ResumedState {
  readonly keys: readonly (readonly [keyId: number, name: string])[];
  readonly nodes: readonly (readonly [nodeId: number, name: string])[];
  readonly errors: readonly (readonly [errorId: number, text: string])[];
  readonly nextKeyId: number;
  readonly nextOperationId: number;
  /** Operations that were open when the file was last written; they are `info` now. */
  readonly openOperations: number;
  readonly lastNs: number;
  readonly origin: string | null;
  readonly runTag: string | null;
}

export interface WriterOptions {
  readonly path: string;
  readonly sync: 'normal' | 'full';
  readonly resume: boolean;
}

/** Growable records of the batch that is being filled. */
export class RecordBuffer {
  private numbers = new Float64Array(256 * recordStride);
  private texts: string[] = [];
  /** Places of texts that are said again and again. */
  private readonly words = new Map<string, number>();
  count = 0;

  /**
   * Offset of a fresh record; its kind is set. Every column of its table must be set next, with nothing between that can throw: half
   * a record would be written.
   */
  append(kind: number): number {
    const offset = this.count * recordStride;
    if (offset + recordStride > this.numbers.length) {
      const larger = new Float64Array(this.numbers.length * 2);
      larger.set(this.numbers);
      this.numbers = larger;
    }
    this.numbers[offset] = kind;
    this.numbers[offset + 1] = 0;
    this.count++;
    return offset;
  }

  set(offset: number, column: number, value: number): void {
    this.numbers[offset + recordHead + column] = value;
  }

  setText(offset: number, column: number, text: string | null): void {
    if (text === null) this.set(offset, column, NaN);
    else this.point(offset, column, this.texts.push(text) - 1);
  }

  /** A text that is one of few, such as a role: it travels once a batch. */
  setWord(offset: number, column: number, word: string): void {
    let place = this.words.get(word);
    if (place === undefined) {
      place = this.texts.push(word) - 1;
      this.words.set(word, place);
    }
    this.point(offset, column, place);
  }

  /** Copies the records out and starts over. */
  take(): Records {
    const taken = { numbers: this.numbers.slice(0, this.count * recordStride), texts: this.texts };
    this.count = 0;
    this.texts = [];
    this.words.clear();
    return taken;
  }

  private point(offset: number, column: number, place: number): void {
    const isText = this.numbers[offset + 1] as number;
    this.numbers[offset + 1] = isText | (1 << column);
    this.set(offset, column, place);
  }
}
