/**
 * Values as Jepsen histories hold them, EDN or JSON, and their canonical text, which is their identity: two values are
 * equal iff their texts are. Owns that equality; if it were wrong, a stale read could look fresh.
 */

/** An EDN keyword, `:name`; `name` is without the colon. Made by {@link keyword} only. */
export class Keyword {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** An EDN symbol, or any other token that is neither number, keyword nor string; kept as it stands. */
export class Sym {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A set, in the order of the file. */
export class ValueSet {
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** A map, in the order of the file. JSON objects have strings as keys. */
export class ValueMap {
  readonly entries: readonly (readonly [Value, Value])[];
  constructor(entries: readonly (readonly [Value, Value])[]) {
    this.entries = entries;
  }

  /** The value under `:name` or `"name"`; undefined where there is none. */
  get(name: string): Value | undefined {
    for (const [key, value] of this.entries) {
      if (key === name || (key instanceof Keyword && key.name === name)) return value;
    }
    return undefined;
  }
}

/** `#tag value`. */
export class Tagged {
  readonly tag: string;
  readonly value: Value;
  constructor(tag: string, value: Value) {
    this.tag = tag;
    this.value = value;
  }
}

/** Vectors and lists are arrays. Integers beyond 2^53 are bigints. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Keyword
  | Sym
  | ValueSet
  | ValueMap
  | Tagged
  | readonly Value[];

/** Canonical text, EDN; sets and maps in order of their elements' texts. */
export function valueText(value: Value): string {
  if (value === null) return 'nil';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') return String(value);
  if (value instanceof Keyword) return `:${value.name}`;
  if (value instanceof Sym) return value.text;
  if (value instanceof ValueSet) return `#{${value.items.map(valueText).sort().join(' ')}}`;
  if (value instanceof ValueMap) {
    return `{${value.entries
      .map(([key, held]) => `${valueText(key)} ${valueText(held)}`)
      .sort()
      .join(', ')}}`;
  }
  if (value instanceof Tagged) return `#${value.tag} ${valueText(value.value)}`;
  return `[${value.map(valueText).join(' ')}]`;
}

/** The elements of a vector, list or set; undefined for anything else. */
export function elementsOf(value: Value | undefined): readonly Value[] | undefined {
  if (Array.isArray(value)) return value as readonly Value[];
  return value instanceof ValueSet ? value.items : undefined;
}

/** The text of a keyword or a string without its colon; undefined for anything else. */
export function nameOf(value: Value | undefined): string | undefined {
  if (value instanceof Keyword) return value.name;
  return typeof value === 'string' ? value.replace(/^:/, '') : undefined;
}
