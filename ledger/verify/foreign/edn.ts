/**
 * A reader of EDN text (edn-format.org), one top-level form at a time, with line numbers.
 *
 * Owns what a form is and where it stands. It is our own because the reader on npm that we looked at (edn-data 1.2)
 * accepts brackets that do not match or never close (a truncated file would pass), rounds integers beyond 2^53, glues tokens
 * around a comment, and knows no lines. If this one were wrong, a verdict would be about another history.
 */

import { UserError } from './user-error.ts';
import type { Value } from './value.ts';
import { Keyword, Sym, Tagged, ValueMap, ValueSet, valueText } from './value.ts';

/** Nesting beyond this is refused, so that a hostile file cannot exhaust the stack. */
const maxDepth = 512;

const charNames: Readonly<Record<string, string>> = { newline: '\n', return: '\r', space: ' ', tab: '\t' };
const escapes: Readonly<Record<string, string>> = {
  t: '\t',
  r: '\r',
  n: '\n',
  b: '\b',
  f: '\f',
  '\\': '\\',
  '"': '"',
  "'": "'",
};
/** Digits up to which two different decimals are two different doubles. */
const exactDigits = 15;
const integer = /^[+-]?\d+N?$/;
const decimal = /^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?M?$/;

/** Reads forms from a text. */
export class EdnReader {
  private readonly text: string;
  private at = 0;
  /** Line of the position at which it was last asked. */
  private line: number;
  /** Where the next line starts; 0 when there is none. */
  private nextLineAt: number;
  private depth = 0;
  private readonly keywords = new Map<string, Keyword>();

  /** `firstLine` is the number of the text's first line. */
  constructor(text: string, firstLine = 1) {
    this.text = text;
    this.nextLineAt = text.indexOf('\n') + 1;
    this.line = firstLine;
    if (text.charCodeAt(0) === 0xfeff) this.at = 1;
  }

  /**
   * If the next form is a vector or list, enters it and returns true: then `next` yields its elements one by one and ends
   * where it closes. Otherwise false.
   */
  enterSequence(): boolean {
    this.skipBlank();
    const open = this.text[this.at];
    if (open !== '[' && open !== '(') return false;
    this.at++;
    this.openSequence = { close: open === '[' ? ']' : ')', line: this.lineHere() };
    return true;
  }

  private openSequence: { readonly close: string; readonly line: number } | null = null;

  /** The next form and its line; undefined at the end of the entered sequence or of the text. Throws {@link UserError}. */
  next(): { readonly value: Value; readonly line: number } | undefined {
    this.skipBlank();
    const line = this.lineHere();
    const sequence = this.openSequence;
    if (this.at >= this.text.length) {
      if (sequence !== null) throw new UserError('the vector or list of operations is never closed', sequence.line);
      return undefined;
    }
    if (sequence !== null && this.text[this.at] === sequence.close) {
      this.at++;
      this.openSequence = null;
      return undefined;
    }
    return { value: this.form(), line };
  }

  /** True when nothing but blanks, comments and discarded forms is left. */
  isAtEnd(): boolean {
    this.skipBlank();
    return this.at >= this.text.length;
  }

  /** Line of the reader's position. */
  lineHere(): number {
    while (this.nextLineAt <= this.at && this.nextLineAt !== 0) {
      this.line++;
      this.nextLineAt = this.text.indexOf('\n', this.nextLineAt) + 1;
    }
    return this.line;
  }

  private fail(reason: string): never {
    throw new UserError(reason, this.lineHere());
  }

  private skipBlank(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code === 32 || code === 44 || (code >= 9 && code <= 13)) this.at++;
      else if (code === 59) {
        const end = this.text.indexOf('\n', this.at);
        this.at = end < 0 ? this.text.length : end + 1;
      } else if (code === 35 && this.text[this.at + 1] === '_') {
        this.at += 2;
        this.required('a form to discard');
      } else return;
    }
  }

  /** Reads the form that starts here. */
  private form(): Value {
    if (++this.depth > maxDepth) this.fail(`forms are nested more than ${maxDepth} deep`);
    try {
      const char = this.text[this.at];
      switch (char) {
        case '"':
          return this.string();
        case '[':
          return this.collection(']');
        case '(':
          return this.collection(')');
        case '{':
          return this.map();
        case '#':
          return this.dispatch();
        case '^':
          this.at++;
          this.required('metadata');
          return this.required('a form after metadata');
        case ']':
        case ')':
        case '}':
          return this.fail(`"${char}" closes nothing that is open`);
        default:
          return this.token();
      }
    } finally {
      this.depth--;
    }
  }

  /** Reads a form that must be there. */
  private required(what: string): Value {
    if (++this.depth > maxDepth) this.fail(`forms are nested more than ${maxDepth} deep`);
    this.skipBlank();
    if (this.at >= this.text.length) this.fail(`the file ends where ${what} is due`);
    const value = this.form();
    this.depth--;
    return value;
  }

  private collection(close: string): Value[] {
    const line = this.lineHere();
    this.at++;
    const items: Value[] = [];
    for (;;) {
      this.skipBlank();
      if (this.at >= this.text.length) throw new UserError('a form that starts here is never closed', line);
      if (this.text[this.at] === close) {
        this.at++;
        return items;
      }
      items.push(this.form());
    }
  }

  private map(): ValueMap {
    const line = this.lineHere();
    const items = this.collection('}');
    if (items.length % 2 !== 0) throw new UserError('a map has a key without a value', line);
    const entries: [Value, Value][] = [];
    for (let index = 0; index < items.length; index += 2) entries.push([items[index]!, items[index + 1]!]);
    refuseRepeatedKeys(entries, line);
    return new ValueMap(entries);
  }

  private dispatch(): Value {
    const char = this.text[this.at + 1];
    if (char === '{') {
      this.at++;
      return new ValueSet(this.collection('}'));
    }
    if (char === '"') {
      this.at++;
      return this.string(true);
    }
    this.at++;
    const tag = this.symbolText();
    if (tag === '') this.fail('"#" stands before nothing');
    if (tag.startsWith('#')) return new Sym(`#${tag}`);
    return new Tagged(tag, this.required(`the value of tag #${tag}`));
  }

  private string(isRaw = false): string {
    const line = this.lineHere();
    let start = ++this.at;
    let text = '';
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (this.at >= this.text.length) throw new UserError('a string that starts here is never closed', line);
      if (code === 34) {
        text += this.text.slice(start, this.at++);
        return text;
      }
      if (code !== 92) {
        this.at++;
        continue;
      }
      if (isRaw) {
        this.at += 2;
        continue;
      }
      text += this.text.slice(start, this.at) + this.escape();
      start = this.at;
    }
  }

  private escape(): string {
    const char = this.text[this.at + 1] ?? '';
    if (char === 'u') {
      const digits = this.text.slice(this.at + 2, this.at + 6);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.fail('a string has an escape \\u without four hexadecimal digits');
      this.at += 6;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const octal = /^[0-7]{1,3}/.exec(this.text.slice(this.at + 1, this.at + 4));
    if (octal !== null) {
      this.at += 1 + octal[0].length;
      return String.fromCharCode(Number.parseInt(octal[0], 8));
    }
    const plain = escapes[char];
    if (plain === undefined) this.fail(`a string has the unknown escape \\${char}`);
    this.at += 2;
    return plain;
  }

  /** Characters up to the next delimiter. */
  private symbolText(): string {
    const start = this.at;
    for (; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at);
      // Blank, comma, " ; ( ) [ ] { }
      if (code <= 32 || code === 44 || code === 34 || code === 59 || code === 40 || code === 41) break;
      if (code === 91 || code === 93 || code === 123 || code === 125) break;
    }
    return this.text.slice(start, this.at);
  }

  private token(): Value {
    if (this.text[this.at] === '\\') return this.char();
    const text = this.symbolText();
    if (text === '') this.fail(`unexpected character ${JSON.stringify(this.text[this.at])}`);
    if (text[0] === ':') {
      if (text.length === 1) this.fail('a keyword has no name');
      return this.keyword(text.slice(1));
    }
    if (text === 'nil') return null;
    if (text === 'true') return true;
    if (text === 'false') return false;
    if (integer.test(text)) {
      const digits = text.replace(/N$/, '').replace(/^\+/, '');
      const number = Number(digits);
      return Number.isSafeInteger(number) ? number + 0 : BigInt(digits);
    }
    if (decimal.test(text)) {
      const plain = text.replace(/M$/, '');
      const number = Number(plain);
      // Rounded, two different decimals would be one: such a one stays as it is written.
      const isExact = String(number) === plain || plain.replace(/\D/g, '').length <= exactDigits;
      if (Number.isFinite(number) && isExact) return number;
    }
    return new Sym(text);
  }

  private char(): string {
    this.at++;
    if (this.at >= this.text.length) this.fail('the file ends after "\\"');
    const first = this.text[this.at++]!;
    const name = first + this.symbolText();
    if (name.length === 1) return name;
    const named = charNames[name];
    if (named !== undefined) return named;
    if (/^u[0-9a-fA-F]{4}$/.test(name)) return String.fromCharCode(Number.parseInt(name.slice(1), 16));
    return name;
  }

  private keyword(name: string): Keyword {
    let known = this.keywords.get(name);
    if (known === undefined) this.keywords.set(name, (known = new Keyword(name)));
    return known;
  }
}

/** Keywords of one reader are the same object, so identity finds what a hostile map repeats among plain keys. */
function refuseRepeatedKeys(entries: readonly (readonly [Value, Value])[], line: number): void {
  const seen = new Set<Value>();
  for (const [key] of entries) {
    if (seen.has(key)) throw new UserError(`a map has the key ${valueText(key)} twice`, line);
    seen.add(key);
  }
}
