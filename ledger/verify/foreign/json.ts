/**
 * A reader of a JSON array of objects, element by element, with line numbers, so that a message can say where. Owns the
 * cutting into elements; each is parsed by `JSON.parse`, integers beyond 2^53 exactly.
 */

import { UserError } from './user-error.ts';
import type { Value } from './value.ts';
import { ValueMap } from './value.ts';

/** Nesting beyond this is refused, so that a hostile file cannot exhaust the stack. */
const maxDepth = 512;

/** The elements of the array, or the objects one after another, each with the line on which it starts. */
export function* readJsonElements(text: string): Generator<{ readonly value: Value; readonly line: number }> {
  const scanner = new Scanner(text);
  scanner.skipBlank();
  const isArray = text[scanner.at] === '[';
  const arrayLine = scanner.lineHere();
  if (isArray) scanner.at++;
  for (let index = 0; ; index++) {
    scanner.skipBlank();
    const char = text[scanner.at];
    if (isArray && index > 0) {
      if (char === ',') {
        scanner.at++;
        scanner.skipBlank();
        if (text[scanner.at] === ']') scanner.fail('a comma stands before the end of the array');
      } else if (char !== ']' && char !== undefined) scanner.fail('a comma is missing between two elements');
    }
    const next = text[scanner.at];
    if (next === undefined) {
      if (isArray) throw new UserError('the array that starts here is never closed', arrayLine);
      return;
    }
    if (isArray && next === ']') {
      scanner.at++;
      scanner.skipBlank();
      if (scanner.at < text.length) scanner.fail('text follows after the end of the array');
      return;
    }
    const line = scanner.lineHere();
    const start = scanner.at;
    scanner.skipElement(line);
    yield { value: parse(text.slice(start, scanner.at), line), line };
  }
}

class Scanner {
  at = 0;
  private readonly text: string;
  private line = 1;
  /** Where the next line starts; 0 when there is none. */
  private nextLineAt: number;

  constructor(text: string) {
    this.text = text;
    this.nextLineAt = text.indexOf('\n') + 1;
    if (text.charCodeAt(0) === 0xfeff) this.at = 1;
  }

  skipBlank(): void {
    for (; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
    }
  }

  lineHere(): number {
    while (this.nextLineAt <= this.at && this.nextLineAt !== 0) {
      this.line++;
      this.nextLineAt = this.text.indexOf('\n', this.nextLineAt) + 1;
    }
    return this.line;
  }

  fail(reason: string): never {
    throw new UserError(reason, this.lineHere());
  }

  /** Moves past one object, array or scalar; does not validate. */
  skipElement(line: number): void {
    let depth = 0;
    for (; this.at < this.text.length; this.at++) {
      const char = this.text[this.at]!;
      if (char === '"') {
        this.skipString(line);
        if (depth === 0) return;
        this.at--;
      } else if (char === '{' || char === '[') {
        if (++depth > maxDepth) this.fail(`values are nested more than ${maxDepth} deep`);
      } else if (char === '}' || char === ']') {
        if (depth === 0) return;
        if (--depth === 0) {
          this.at++;
          return;
        }
      } else if (depth === 0 && (char === ',' || char <= ' ')) return;
    }
    if (depth > 0) throw new UserError('an element that starts here is never closed', line);
  }

  private skipString(line: number): void {
    for (this.at++; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at);
      if (code === 92) this.at++;
      else if (code === 34) {
        this.at++;
        return;
      }
    }
    throw new UserError('a string in the element that starts here is never closed', line);
  }
}

const hasLongNumber = /\d{16}/;

function parse(source: string, line: number): Value {
  try {
    const parsed: unknown = hasLongNumber.test(source) ? JSON.parse(source, exactIntegers) : JSON.parse(source);
    return toValue(parsed);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UserError(`not JSON: ${reason}`, line);
  }
}

function exactIntegers(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  return context?.source !== undefined && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}

function toValue(json: unknown): Value {
  if (Array.isArray(json)) return json.map(toValue);
  if (json !== null && typeof json === 'object') {
    return new ValueMap(Object.entries(json).map(([key, value]) => [key, toValue(value)] as const));
  }
  return json as Value;
}
