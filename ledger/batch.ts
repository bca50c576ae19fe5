/**
 * What travels from the ledger's front to its writer thread: numbers of the hot two tables in one typed array, all other
 * rows beside it. One batch becomes one transaction, in this order: keys and other rows, then operations.
 */
import type { SideTable } from './schema.ts';

/** Numbers per record: its kind, then the columns of its table. NaN stands for NULL. */
export const recordStride = 22;
export const recordKinds = { intent: 0, outcome: 1 } as const;

export type SideValue = string | number | null;
export type SideRow = readonly [table: SideTable, ...values: SideValue[]];

export type ToWriter =
  | { readonly kind: 'batch'; readonly records: Float64Array; readonly rows: readonly SideRow[] }
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

/** Growable numbers of the batch that is being filled. */
export class RecordBuffer {
  private words = new Float64Array(256 * recordStride);
  count = 0;

  /** Offset of a fresh record; its kind is set. */
  append(kind: number): number {
    const offset = this.count * recordStride;
    if (offset + recordStride > this.words.length) {
      const larger = new Float64Array(this.words.length * 2);
      larger.set(this.words);
      this.words = larger;
    }
    this.words[offset] = kind;
    this.count++;
    return offset;
  }

  set(offset: number, column: number, value: number): void {
    this.words[offset + 1 + column] = value;
  }

  /** Copies the records out and starts over. */
  take(): Float64Array {
    const taken = this.words.slice(0, this.count * recordStride);
    this.count = 0;
    return taken;
  }
}
