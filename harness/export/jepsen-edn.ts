/**
 * A history in Jepsen's EDN: one map per line, `:process :type :f :value :time :index`, keys as `[key value]` pairs.
 *
 * Values are the ids of the operations that wrote them (unique in a run), so every value says where it comes from. What Jepsen has
 * no word for is said in its words: a create is a `:cas` from nil, a delete a write of nil. A compare-and-set by version becomes one by
 * value, where the value of that version was seen; else it is a write with `:if-version` beside it: that asks less of the store, so no
 * sound history becomes unsound. A process that ended unknown is never used again.
 */
import type { ExportedOperation, HistoryEvent } from './history-events.ts';

/** Versions remembered per key, and keys remembered; a compare-and-set names a version seen a moment before. */
const versionsPerKey = 64;
const rememberedKeys = 100_000;
/** Processes of one session lie this far apart. */
const processStride = 10_000_000;

export interface EdnOptions {
  /** Plain values instead of [key value] pairs: for one key alone. */
  readonly bare: boolean;
}

interface Called {
  readonly f: string;
  readonly value: string;
  /** A version that the store compared, and that no value is known of. */
  readonly condition?: readonly [number, number] | null;
}

export class JepsenEdnWriter {
  private readonly options: EdnOptions;
  private readonly versions = new Map<string, Map<string, number>>();
  /** How often each session has been succeeded. */
  private readonly successions = new Map<number, number>();
  private index = 0;

  constructor(options: EdnOptions) {
    this.options = options;
  }

  /** One line. */
  line(event: HistoryEvent): string {
    const { operation } = event;
    const succession = this.successions.get(operation.session) ?? 0;
    const process = operation.session + succession * processStride;
    const type = event.kind === 'invoke' ? 'invoke' : operation.outcome;
    if (event.kind === 'complete') {
      this.learn(operation);
      if (operation.outcome === 'info') this.successions.set(operation.session, succession + 1);
    }
    const { f, value, condition = null } = this.called(operation, event.kind === 'complete');
    const given = condition === null ? '' : ` :if-version [${condition.join(' ')}]`;
    const error = event.kind === 'complete' && operation.error !== null ? ` :error ${text(operation.error)}` : '';
    const shown = this.options.bare ? value : `[${text(operation.key)} ${value}]`;
    return `{:index ${this.index++} :process ${process} :type :${type} :f :${f} :value ${shown} :time ${Math.round(event.atNs)}${given}${error}}`;
  }

  private called(operation: ExportedOperation, completed: boolean): Called {
    const own = String(operation.operationId);
    const from = operation.expected === null ? undefined : this.valueAt(operation.key, operation.expected);
    switch (operation.f) {
      case 'read':
        return { f: 'read', value: completed && operation.outcome === 'ok' ? readValue(operation) : 'nil' };
      case 'write':
        return { f: 'write', value: own };
      case 'create':
        return { f: 'cas', value: `[nil ${own}]` };
      case 'cas':
        if (from !== undefined) return { f: 'cas', value: `[${from} ${own}]` };
        return { f: 'write', value: own, condition: operation.expected };
      case 'delete':
        if (operation.expected === null) return { f: 'write', value: 'nil' };
        return from === undefined
          ? { f: 'write', value: 'nil', condition: operation.expected }
          : { f: 'cas', value: `[${from} nil]` };
      case 'add':
        return { f: 'add', value: String(operation.argument ?? 0) };
    }
  }

  private learn(operation: ExportedOperation): void {
    const { key, version, outcome, f } = operation;
    if (version === null || outcome !== 'ok') return;
    const value = f === 'read' ? operation.observed : f === 'delete' || f === 'add' ? null : operation.operationId;
    if (value === null || value < 0) return;
    let known = this.versions.get(key);
    if (known === undefined) {
      this.versions.set(key, (known = new Map()));
      if (this.versions.size > rememberedKeys) this.versions.delete(this.versions.keys().next().value as string);
    }
    known.set(version.join('.'), value);
    if (known.size > versionsPerKey) known.delete(known.keys().next().value as string);
  }

  private valueAt(key: string, version: readonly [number, number]): number | undefined {
    return this.versions.get(key)?.get(version.join('.'));
  }
}

/** What a read saw: the id of the write, a counter's sum, or nil. What no operation of the run wrote is a keyword. */
function readValue({ observed, number }: ExportedOperation): string {
  if (observed === -1) return ':foreign';
  if (observed === -2) return ':corrupt';
  return observed === null ? (number === null ? 'nil' : String(number)) : String(observed);
}

/** An EDN string. */
export const text = (value: string): string =>
  `"${value.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}"`;
