/**
 * The small numbers that stand for names in a ledger's rows: keys, nodes and texts of errors, each stored once.
 *
 * Invariant: the row that tells a number's name goes into the same batch as the first row that uses it, or an earlier one. If it
 * went later, a crash between the two would leave rows that nobody can tell the key of. So a name is asked for before the record
 * that uses it is begun, and in the same turn. What is forgotten keeps its number in the file only.
 */
import { recordKinds, type ResumedState } from './batch.ts';
import type { GroupCommit } from './group-commit.ts';
import { Interner } from './interner.ts';

/** Distinct error texts kept; later ones are stored as "other". */
const maxErrorTexts = 2_000;
const maxErrorChars = 400;

/** Names of one open ledger. */
export class Names {
  private readonly queue: GroupCommit;
  private readonly keys: Interner;
  private readonly nodes: Interner;
  private readonly errors: Interner;

  constructor(queue: GroupCommit, resumed: ResumedState) {
    this.queue = queue;
    this.keys = new Interner(resumed.keys, resumed.nextKeyId);
    this.nodes = new Interner(resumed.nodes);
    this.errors = new Interner(resumed.errors);
  }

  /** Keys that were not forgotten. */
  get keyCount(): number {
    return this.keys.size;
  }

  /** `canary` is kept from the first time that the key is named. */
  key(name: string, canary = false): number {
    return this.keys.id(name, (id) => {
      const { records } = this.queue;
      const at = records.append(recordKinds.keys);
      records.set(at, 0, id);
      records.setText(at, 1, name);
      records.set(at, 2, canary ? 1 : 0);
    });
  }

  forgetKey(name: string): void {
    this.keys.forget(name);
  }

  node(name: string): number {
    return this.nodes.id(name, (id) => this.queue.name(['nodes', id, name]));
  }

  error(text: string): number {
    const kept = this.errors.size < maxErrorTexts ? text.slice(0, maxErrorChars) : 'other';
    return this.errors.id(kept, (id) => this.queue.name(['errors', id, kept]));
  }
}
