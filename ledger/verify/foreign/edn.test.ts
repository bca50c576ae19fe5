import { describe, expect, it } from 'vitest';
import { EdnReader } from './edn.ts';
import { UserError } from './user-error.ts';
import { valueText } from './value.ts';

const readAll = (text: string): string[] => {
  const reader = new EdnReader(text);
  const found: string[] = [];
  for (let form = reader.next(); form !== undefined; form = reader.next()) {
    found.push(`${form.line}: ${valueText(form.value)}`);
  }
  return found;
};

const failure = (text: string): UserError => {
  try {
    readAll(text);
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('was read');
};

describe('EdnReader', () => {
  it('reads scalars and collections', () => {
    expect(readAll('nil true -7 +3 1.5 1e3 2M "a\\n\\u0041" :k/w sym \\a \\newline')).toEqual(
      ['nil', 'true', '-7', '3', '1.5', '1000', '2', '"a\\nA"', ':k/w', 'sym', '"a"', '"\\n"'].map(
        (text) => `1: ${text}`,
      ),
    );
    expect(readAll('[1 (2 3)] {:a 1, :b [2]} #{3 1}')).toEqual(['1: [1 [2 3]]', '1: {:a 1, :b [2]}', '1: #{1 3}']);
  });

  it('keeps integers beyond 2^53 apart', () => {
    expect(readAll('9007199254740993 9007199254740992 12N')).toEqual([
      '1: 9007199254740993',
      '1: 9007199254740992',
      '1: 12',
    ]);
  });

  it('keeps decimals apart that a double would round to the same number', () => {
    const [first, second, third] = readAll('0.1234567890123456789M 0.1234567890123456788M 1e400');
    expect(new Set([first, second, third]).size).toBe(3);
    expect(readAll('0.5 0.50M 0.30000000000000004')).toEqual(['1: 0.5', '1: 0.5', '1: 0.30000000000000004']);
  });

  it('refuses a map that says something twice', () => {
    expect(failure('\n{:process 0, :process 1}').message).toBe('line 2: a map has the key :process twice');
    expect(readAll('{:a 1, "a" 2}')).toEqual(['1: {"a" 2, :a 1}']);
  });

  it('passes over comments, discarded forms, commas, CRLF and a byte-order mark', () => {
    expect(readAll('\ufeff; first\r\n1 ; c ] }\n#_ {:x [1 2]} #_#_ 8 9 2,3;end')).toEqual(['2: 1', '3: 2', '3: 3']);
    expect(readAll('[1 #_2 3 #_4]')).toEqual(['1: [1 3]']);
  });

  it('reads tagged forms, namespaced maps, metadata and regular expressions', () => {
    expect(readAll('#inst "2020" #jepsen.history.Op{:f :read} ^{:m 1} [1] #"a\\.b" ##NaN #:n{:a 1}')).toEqual(
      ['#inst "2020"', '#jepsen.history.Op {:f :read}', '[1]', '"a\\\\.b"', '##NaN', '#:n {:a 1}'].map(
        (text) => `1: ${text}`,
      ),
    );
  });

  it.each([
    ['[1\n{:a 2', 2, 'never closed'],
    ['\n\n[1 2}', 3, 'closes nothing'],
    ['1\n]', 2, 'closes nothing'],
    ['{:a}', 1, 'key without a value'],
    ['"abc\n\n', 1, 'never closed'],
    ['\n"\\q"', 2, 'unknown escape'],
    ['#_', 1, 'ends where'],
    ['[: ]', 1, 'no name'],
  ])('refuses %j with its line', (text, line, reason) => {
    const error = failure(text);
    expect(error.line).toBe(line);
    expect(error.message).toContain(reason);
  });

  it('refuses nesting without end instead of exhausting the stack', () => {
    expect(failure('['.repeat(100_000)).message).toContain('deep');
  });
});
